"""Dagster on a real PostgreSQL, as deploy/ sets it up: `python -m tests.support.postgres_check
BIN`.

Owns: a server in a temporary folder that this process started and stops, listening on 127.0.0.1
alone. What is looked at: Dagster makes its tables; the jobs tell of ledgers (on simulated servers)
as they do on SQLite; a rebuild into a second, empty database tells the same; old runs are pruned
without loss; a pool takes its limit; and code server, daemon and web server of deploy/systemd find
each other by deploy/workspace.yaml.
"""

from __future__ import annotations

import json
import os
import pwd
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import dagster as dg
import yaml  # type: ignore[import-untyped]
from sqlalchemy import create_engine

from tests.support.default_cluster import (
    CERTIFICATES,
    CLUSTER,
    DELETED_BOOKIE_LEDGERS,
    OFFLOAD_CONTEXTS,
    PARTITION_SET,
)
from tests.support.sim_clients import Process
from tests.support.sim_dagster import executing
from tests.support.sim_world import World
from tiering_assets.definitions import defs
from tiering_assets.defs.prune import delete_runs, find_old_runs
from tiering_assets.defs.rebuild import rebuild
from tiering_assets.defs.shared.resources import TieringStack

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
TOPIC = "t/ns/persistent/orders"
LEDGERS = 20
OPS = {"discover": "discovered", "offload": "offload_ledgers", "release": "release_ledgers"}
CODE_PORT = 4000  # as in deploy/workspace.yaml; the copy used here has a free one


def main(arguments: Sequence[str]) -> int:
    [programs] = arguments
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="pg-check-")))
        url = opened.enter_context(_server(Path(programs), folder))
        with _home(folder / "home", f"{url}/dagster") as instance:
            _say("Dagster made its tables", _tables(instance))
            told = _jobs(instance, url, folder)
            _say("jobs and rebuild tell the same", told)
            _say("limits", _limits(instance))
        _say("four processes", _processes(folder, f"{url}/dagster"))
    _say("postgres-check", "all good")
    return 0


def _say(what: str, found: object) -> None:
    sys.stdout.write(f"{what}: {found}\n")
    sys.stdout.flush()


def _check(fact: bool, said: str) -> None:
    if not fact:
        raise SystemExit(f"postgres-check: {said}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _server(programs: Path, folder: Path) -> Iterator[str]:
    """PostgreSQL with two empty databases. It refuses to run as root, so then as `postgres`."""
    data, port = folder / "pg", _free_port()
    as_user: dict[str, Any] = {}
    data.mkdir()
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        folder.chmod(0o755)
        os.chown(data, account.pw_uid, account.pw_gid)
        as_user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": ()}

    def run(*words: str) -> None:
        subprocess.run(
            [str(programs / words[0]), *words[1:]],
            check=True,
            cwd=data,
            stdout=subprocess.DEVNULL,
            **as_user,
        )

    run("initdb", "--pgdata", str(data), "--username", "dagster", "--auth", "trust")
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={data}"
    run("pg_ctl", "-D", str(data), "-w", "-l", str(data / "log"), "-o", options, "start")
    try:
        url = f"postgresql+psycopg2://dagster:unused@127.0.0.1:{port}"
        with create_engine(f"{url}/postgres", isolation_level="AUTOCOMMIT").connect() as server:
            for name in ("dagster", "again"):
                server.exec_driver_sql(f"CREATE DATABASE {name}")
        yield url
    finally:
        run("pg_ctl", "-D", str(data), "-m", "fast", "-w", "stop")


def _environment(home: Path, url: str) -> dict[str, str]:
    """The variables of both example files of deploy/, with places of this check."""
    examples = [ROOT / f"deploy/{name}.env.example" for name in ("tierkeeper", "dagster")]
    lines = [line for example in examples for line in example.read_text().splitlines()]
    named = dict(
        line.split("=", 1) for line in lines if line and not line.startswith(("#", "TIERKEEPER_"))
    )
    return {
        **named,
        "DAGSTER_HOME": str(home),
        "DAGSTER_POSTGRES_URL": url,
        "DAGSTER_LOGS_STAGING": str(home / "logs"),
        "AWS_DEFAULT_REGION": "us-east-1",
    }


@contextmanager
def _home(home: Path, url: str) -> Iterator[dg.DagsterInstance]:
    home.mkdir()
    shipped = yaml.safe_load((ROOT / "deploy/dagster-postgres.yaml").read_text())
    del shipped["compute_logs"]  # a bucket; tests/stack has one
    shipped["python_logs"] = {"python_log_level": "ERROR"}
    (home / "dagster.yaml").write_text(yaml.safe_dump(shipped))
    with (
        mock.patch.dict(os.environ, _environment(home, url)),
        dg.DagsterInstance.from_config(str(home)) as instance,
    ):
        yield instance


def _tables(instance: dg.DagsterInstance) -> str:
    kind = type(instance.event_log_storage).__name__
    _check(kind == "PostgresEventLogStorage", f"events are stored by {kind}")
    return kind


def _jobs(instance: dg.DagsterInstance, url: str, folder: Path) -> dict[str, int]:
    """Twenty ledgers from sealed to released, then the same view rebuilt into another database."""
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    for _ledger in range(LEDGERS):
        site.broker.produce(TOPIC, [b"first", b"last"])
        world.scheduler.now += 60
        site.broker.roll_over(TOPIC)
    stack = Process(world, "dagster", site).stack()

    @contextmanager
    def connect(*_arguments: object, **_named: object) -> Iterator[object]:
        yield stack

    with (
        mock.patch.object(TieringStack, "connect", connect),
        mock.patch.object(TieringStack, "load", return_value=stack.settings),
    ):
        _run(instance, "discover")
        seconds = _run(instance, "offload", max_ledgers=LEDGERS)
        world.scheduler.now += 24 * 3600
        _run(instance, "release", ledger_ids=list(range(LEDGERS // 2 - 1)))
        _run(instance, "release", ledger_ids=list(range(LEDGERS // 2)))  # tells the first's again
    told = _counted(instance)
    with _home(folder / "again", f"{url}/again") as again:
        first = rebuild(stack, again, CLUSTER)
        _check(_counted(again) == told, f"jobs told {told}, the rebuild {_counted(again)}")
        second = rebuild(stack, again, CLUSTER)
        _check(
            sum(first.materializations.values()) > 0 and sum(second.materializations.values()) == 0,
            f"the second rebuild added {second.materializations}",
        )
    before = len(instance.get_runs())
    delete_runs(
        instance, find_old_runs(instance, CLUSTER, before=datetime.now(UTC) + timedelta(hours=1))
    )
    gone = before - len(instance.get_runs())
    _check(gone == 1 and _counted(instance) == told, f"{gone} runs pruned: {_counted(instance)}")
    return {**told, "seconds to offload": round(seconds), "runs pruned": gone}


def _run(instance: dg.DagsterInstance, job: str, **config: object) -> float:
    began = time.monotonic()
    result = defs.resolve_job_def(job).execute_in_process(
        instance=instance, run_config={"ops": {OPS[job]: {"config": executing(job, config)}}}
    )
    _check(result.success, f"{job} failed")
    return time.monotonic() - began


def _counted(instance: dg.DagsterInstance) -> dict[str, int]:
    """Partitions, and of each asset those that Dagster calls materialized."""
    found = {"partitions": len(instance.get_dynamic_partitions(PARTITION_SET))}
    for asset in (CERTIFICATES, OFFLOAD_CONTEXTS, DELETED_BOOKIE_LEDGERS):
        found[asset.path[-1]] = len(instance.get_materialized_partitions(asset))
    return found


def _limits(instance: dg.DagsterInstance) -> str:
    instance.event_log_storage.set_concurrency_slots("bookie_read", 4)
    limits = {found.name: found.limit for found in instance.event_log_storage.get_pool_limits()}
    _check(limits.get("bookie_read") == 4, f"pool limits are {limits}")
    return str(limits)


def _processes(folder: Path, url: str) -> str:
    """ExecStart of deploy/systemd on free ports, until the pages show our jobs and live daemons."""
    home = folder / "home"
    web, code = _free_port(), _free_port()
    workspace = home / "workspace.yaml"
    shipped = (ROOT / "deploy/workspace.yaml").read_text()
    workspace.write_text(shipped.replace(f"port: {CODE_PORT}", f"port: {code}"))
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        **_environment(home, url),
        "DAGSTER_CODE_HOST": "127.0.0.1",
    }
    places = {
        "/opt/tierkeeper/bin/": f"{BIN}/",
        "/etc/tierkeeper/workspace.yaml": str(workspace),
        f"--port {CODE_PORT}": f"--port {code}",
        "--port 3000": f"--port {web}",
    }
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name in ("code", "daemon", "webserver"):
            with (folder / f"{name}.log").open("wb") as log:
                started.append(
                    subprocess.Popen(
                        _exec_start(name, places),
                        cwd=home,
                        env=environment,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                )
        jobs = _wait(lambda: _ask(web, _JOBS), _jobs_of, "the code location did not load")
        daemons = _wait(lambda: _ask(web, _DAEMONS), _healthy, "not every daemon is healthy")
    except SystemExit:
        for name in ("code", "daemon", "webserver"):
            log_file = folder / f"{name}.log"
            if log_file.exists():
                sys.stderr.write(log_file.read_text(errors="replace")[-2000:])
        raise
    finally:
        for process in reversed(started):
            process.terminate()
        for process in reversed(started):
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
    return f"jobs {jobs}, healthy daemons {daemons}"


def _exec_start(name: str, places: dict[str, str]) -> list[str]:
    unit = (ROOT / f"deploy/systemd/tierkeeper-{name}.service").read_text()
    [line] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    for old, new in places.items():
        line = line.replace(old, new)
    return shlex.split(line.removeprefix("ExecStart="))


_JOBS = "{ repositoriesOrError { ... on RepositoryConnection { nodes { jobs { name } } } } }"
_DAEMONS = "{ instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } } }"


def _jobs_of(answer: dict[str, Any]) -> list[str]:
    nodes = answer["repositoriesOrError"].get("nodes", [])
    names = sorted(job["name"] for node in nodes for job in node["jobs"])
    return names if {"discover", "offload", "release"} <= set(names) else []


def _healthy(answer: dict[str, Any]) -> list[str]:
    statuses = answer["instance"]["daemonHealth"]["allDaemonStatuses"]
    required = [one for one in statuses if one["required"]]
    all_well = bool(required) and all(one["healthy"] for one in required)
    return sorted(one["daemonType"] for one in required) if all_well else []


def _ask(port: int, query: str) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        data=json.dumps({"query": query}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)["data"]
        return found


def _wait(
    ask: Callable[[], dict[str, Any]], judge: Callable[[dict[str, Any]], list[str]], else_: str
) -> list[str]:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        try:
            found = judge(ask())
        except OSError:
            found = []
        if found:
            return found
        time.sleep(1)
    raise SystemExit(f"postgres-check: {else_} within three minutes")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
