"""Every command line of README.md and docs/ runs on a cluster such as it was written for.

What a page calls 12345 or PLAN is put in; nothing else is changed. A page with a command, an option
or a file that does not exist fails here.
"""

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from tests.support.documented import ROOT, documented, mentioned
from tests.support.tiered_cluster import ml_names, post_all, tiered_cluster
from tiering_assets.batch.release_plan import make_plan, write_plan
from tiering_assets.cli.main import app, run
from tiering_assets.offload_format.keys import data_key
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.resources.errors import LedgerNotFoundError, ObjectNotFoundError, RefusedError
from tiering_assets.stream.switch import open_stream

pytestmark = [pytest.mark.stack, pytest.mark.slow]

LINES = documented("tierkeeper")
MENTIONED = mentioned("tierkeeper")
# They serve until they are stopped, or start servers of their own; their own tests run them.
SERVE = {
    "metrics serve": "test_metrics.py",
    "demo": "test_path.py has its steps; `make demo` is run before each release",
    "stack up": "test_devstack.py",
    "stack down": "test_devstack.py",
    "stack status": "test_devstack.py",
}
MISSING = ObjectNotFoundError.exit_code
# What ends with something else than 0 on a sound cluster, and why.
ENDS = {
    "auto on": {0, 1},  # 1: wanted, and no daemon runs here
    "auto status": {0, 1},
    "hold lift": {0, LedgerNotFoundError.exit_code, MISSING},  # there may be none
    "expired-copy delete --approved": {MISSING},  # nothing has expired, so there is no plan
    "gone-record delete --approved": {MISSING},
    "broker gone HOST:PORT": {RefusedError.exit_code},  # no such broker was ever seen here
    "broker gone broker-2:8080": {RefusedError.exit_code},
    "lineage coverage": {0, 1},  # 1: other commands publish, and nobody posts meanwhile
    "schema show": {0, 1},  # 1: the topic has no schema
    "ledger give-up": {0, 10, 20, 21, 22, 27},
    "stream give-up": {0, RefusedError.exit_code},  # no segment is stuck here
}
LIMITS = ("upload", "bookie-read", "requests", "topic-upload")


def commands():
    """Command paths by their words, from the command itself."""
    found = set()

    def walk(node, path):
        found.add(path)
        for name, child in getattr(node, "commands", {}).items():
            walk(child, (*path, name))

    walk(typer.main.get_command(app), ())
    return found


COMMANDS = commands()


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A stack of its own, because commands say --all: two topics with sealed and published
    ledgers.
    """
    folder = tmp_path_factory.mktemp("documented")
    with DevStack.start(folder / "stack") as running, tiered_cluster(running) as cluster:
        specs = [
            TopicSpec(topic=f"public/default/{name}", messages=30, payload_bytes=1000)
            for name in ("orders", "payments")
        ]
        for seed in range(4):
            cluster.fill(*(replace(spec, seed=seed) for spec in specs))
        first, second, *_rest = cluster.ledger_ids(specs[0], "sealed")
        cluster.offload([first, second])
        [ml_name] = ml_names(specs[0])
        open_stream(cluster.steps, ml_name, author="docs")
        post_all(cluster.steps)
        uid = cluster.context_uid(specs[0], first)
        (folder / "tiering.toml").write_text("[default]\noffloadTimeInMinutes = 60\n")
        (folder / "settings.toml").write_text("[metrics]\ntopics_max = 1\n")
        write_plan(make_plan(cluster.steps, {}), folder / "approved.json")
        home = folder / "home"
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        yield {
            "folder": folder,
            "environment": running.environment() | {"DAGSTER_HOME": str(home)},
            "words": [
                (r"3f1c9a52-[0-9a-f-]+-ledger-12345", data_key(uid, first)),
                (r"\bKEY\b", data_key(uid, first)),
                (r"0d1c0a7e-[0-9a-f-]+", cluster.steps.instance),
                (r"\b12345:250(:7)?", f"{first}:25"),  # 30 entries, none of them a batch
                (r"\b1048576\b", "1000"),
                (r"\b(12345|1234)\b", str(first)),
                (r"\b12346\b", str(second)),
                (r"\bPLAN\b", "0" * 64),
                (r"orders-partition-0", "orders"),
                (r"\bshop/eu\b", "public/default"),
                (r"/etc/tiering.toml", str(folder / "tiering.toml")),
                (r"/etc/tierkeeper/tierkeeper.toml", str(folder / "settings.toml")),
                (r"(?<=--approved )plan.json", str(folder / "approved.json")),
                (r"(?<=object scan )\S+", cluster.steps.settings.store.bucket),
            ],
        }


@pytest.fixture
def tierkeeper(scene, monkeypatch):
    for name, value in scene["environment"].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(scene["folder"]))  # where pages let a key be made
    monkeypatch.chdir(scene["folder"])

    def called(line):
        for pattern, said in scene["words"]:
            line = re.sub(pattern, said, line)
        return run(shlex.split(line)[1:])

    return called


def path_of(line):
    words: list[str] = line.split()[1:]
    path: tuple[str, ...] = ()
    for word in words:
        if (*path, word) not in COMMANDS:
            break
        path = (*path, word)
    return path, len(path) == len(words)


def test_the_pages_name_many_commands_and_each_command_is_on_a_page():
    assert len(LINES) > 100
    leaves = {p for p in COMMANDS if not any(o[: len(p)] == p and o != p for o in COMMANDS)}
    assert leaves <= {path_of(line)[0] for line in LINES}


@pytest.mark.parametrize("line", [x for x in LINES if " ".join(path_of(x)[0]) not in SERVE])
def test_it_runs(tierkeeper, capsys, line):
    path, bare = path_of(line)
    assert path or all(word.startswith("-") for word in line.split()[1:]), f"no command: {line}"
    if bare and line in MENTIONED:
        line += " --help"  # a page speaks of the command, or of a group of them, as such
    code = tierkeeper(line)
    said = capsys.readouterr()
    allowed = next((codes for start, codes in ENDS.items() if start in line), {0})
    assert code in allowed, f"{line}: {code}\n{said.out}\n{said.err}"
    assert said.out or said.err
    undo(tierkeeper, line)
    capsys.readouterr()


def undo(tierkeeper, line):
    """What a line bans is allowed again before the next, what it limits is as fast as before, and
    what it switches on is off: `doctor` misses the daemon.
    """
    if " auto on" in line:
        assert tierkeeper("tierkeeper auto off") == 0
    if " budget set " in line:
        lifted = " ".join(f"--{name} none" for name in LIMITS)
        assert tierkeeper(f"tierkeeper budget set {lifted}") == 0
    scope = re.search(r"--all|--(topic|namespace) \S+|(?<=set )\d+", line)
    if scope is None:
        return
    if " hold set " in line:
        assert tierkeeper(f"tierkeeper hold lift {scope[0]} --reason over --execute") == 0
    elif " tiering pause " in line:
        assert tierkeeper(f"tierkeeper tiering resume {scope[0]} --reason over --execute") == 0


@pytest.mark.parametrize("line", documented("make"))
def test_make_has_the_target(line):
    target = line.split()[1]
    assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.M), line


@pytest.mark.parametrize("line", documented("python tools/check_bucket.py"))
def test_the_second_checker_runs(scene, line):
    from tiering_assets.resources.settings_sources import load_settings

    store = load_settings(environ=scene["environment"]).settings.store
    for pattern, said in scene["words"]:
        line = re.sub(pattern, said, line)
    line = re.sub(r"--bucket \S+", f"--bucket {store.bucket}", line)
    line = re.sub(r" --endpoint \S+", "", line) + f" --endpoint {store.endpoint}"
    done = subprocess.run(
        [sys.executable, *shlex.split(line)[1:]],
        cwd=ROOT,
        env={
            "AWS_ACCESS_KEY_ID": store.access_key,
            "AWS_SECRET_ACCESS_KEY": store.secret_key,
            "PATH": str(Path(sys.executable).parent),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
