"""How long people wait: from Enter, and from a run's start, to the first figure and to the end.

    .venv/bin/python -m benchmarks.waiting [--base COMMIT] [--rounds 3] [--runners local spark]

Commands and runs are processes of their own, on real servers that are started for it. Each round
offloads and releases new ledgers of the same messages, one of about 50 MB and a batch of twenty
topics. A line counts as the first when it names ledgers and bytes. With --base the code of that
commit takes turns with this tree's. `tierkeeper demo` follows, from nothing, of this tree alone.
Medians are written to benchmarks/results/waiting.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.start import unpack
from tiering_assets.ground.stack import open_stack
from tiering_assets.look.ledger.survey import survey
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec, consume_all, produce, seal

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "waiting.json"
LAG_S = 2.0
PAYLOAD_BYTES = 1000
ONE, MANY = 50_000, 2_500  # messages of a ledger
TOPICS = 20
NAMES_BOTH = re.compile(r"ledger.*\d (?:bytes|[kKMG]i?B)")
STARTED = "RUN_START"
DEMO = "demo"
COMMAND = "from tiering_assets.cli.main import main; main()"


@dataclass(frozen=True, slots=True)
class Waited:
    """Seconds to the first line that names ledgers and bytes, and to the end of what was asked.

    `cpu_s` is that of the process and what it waited for, a JVM included.
    """

    first_s: float
    end_s: float
    cpu_s: float


def watch(argv: list[str], code: Path, environment: dict[str, str], *, since: str = "") -> Waited:
    """Run a command and time what it says; from its line with `since`, or from its start."""
    began = time.monotonic()
    child = subprocess.Popen(
        argv,
        cwd=code,
        env=environment | {"PYTHONPATH": str(code), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert child.stdout is not None
    first: float | None = None
    said: list[str] = []
    for line in child.stdout:
        said.append(line)
        if since and since in line:
            began, since = time.monotonic(), ""
        elif first is None and not since and NAMES_BOTH.search(line):
            first = time.monotonic()
    _pid, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(argv)} ended with {child.returncode}:\n{''.join(said)}")
    ended = time.monotonic()
    cpu_s = usage.ru_utime + usage.ru_stime
    return Waited((ended if first is None else first) - began, ended - began, cpu_s)


def make_topics(stack: DevStack, prefix: str, messages: int, count: int) -> list[str]:
    """Topics of one sealed ledger each."""
    names = [f"public/default/{prefix}-{number}" for number in range(count)]
    for name in names:
        one = TopicSpec(
            topic=name,
            messages=messages,
            payload_bytes=PAYLOAD_BYTES,
            batched=True,
        )
        produce(stack.endpoints, one)
        seal(stack.endpoints, one)
        consume_all(stack.endpoints, one)
    return names


def ledgers_of(stack: DevStack, topics: Iterable[str]) -> list[int]:
    full = {f"persistent://{topic}" for topic in topics}
    with open_stack(stack.settings()) as opened:
        return [view.ledger_id for view in survey(opened) if view.topic in full and view.entries]


def commands(ids: list[int], runner: str) -> dict[str, list[str]]:
    named = [str(one) for one in ids]
    cli = [sys.executable, "-c", COMMAND]
    return {
        "offload": [*cli, "ledger", "offload", *named, "--execute", "--runner", runner],
        "release": [*cli, "ledger", "release", *named, "--execute"],
    }


def run_of(ids: list[int], file: Path) -> list[str]:
    """A run of the offload job; JSON is YAML."""
    dagster = str(Path(sys.executable).with_name("dagster"))
    config = {"ops": {"offload_ledgers": {"config": {"ledger_ids": ids}}}}
    file.write_text(json.dumps(config))
    job = ["-m", "tiering_assets.definitions", "-j", "offload", "--config", str(file)]
    return [dagster, "job", "execute", *job]


def measure(stack: DevStack, sides: dict[str, Path], scratch: Path, asked: Any) -> dict[str, Any]:
    base = {"PATH": os.environ["PATH"], "HOME": str(scratch)} | stack.environment()
    base["TIERKEEPER_RELEASE_DELETION_LAG_S"] = str(LAG_S)
    found: dict[str, dict[str, list[Waited]]] = {}

    def note(kind: str, side: str, waited: Waited) -> None:
        found.setdefault(kind, {}).setdefault(side, []).append(waited)
        print(f"{kind} ({side}): {waited}, load {os.getloadavg()[0]:.1f}", flush=True)

    def one_round(label: str, side: str, told: Callable[[str, str, Waited], None]) -> None:
        code = sides[side]
        for runner in asked.runners:
            for size, messages, count in (("one ledger", ONE, 1), ("twenty topics", MANY, TOPICS)):
                topics = make_topics(stack, f"{label}-{runner}-{count}", messages, count)
                ids = ledgers_of(stack, topics)
                for verb, argv in commands(ids, runner).items():
                    if verb == "release":
                        if runner != "local":
                            continue  # the command reads again in its own process
                        time.sleep(LAG_S + 1.5)
                    told(f"CLI {verb}, {size}, {runner}", side, watch(argv, code, base))
            home = scratch / f"home-{label}-{runner}"
            home.mkdir()
            ids = ledgers_of(stack, make_topics(stack, f"{label}-{runner}-run", ONE, 1))
            variables = base | {"DAGSTER_HOME": str(home), "TIERKEEPER_DAGSTER_RUNNER": runner}
            waited = watch(run_of(ids, home / "run.yaml"), code, variables, since=STARTED)
            told(f"Dagster run, one ledger, {runner}", side, waited)

    for number in range(asked.rounds):
        for side in sides:
            one_round(f"{side}{number}", side, note)
    return medians(found)


def demos(scratch: Path, rounds: int) -> dict[str, Any]:
    """`make demo` after set-up: servers, topics, everything that it shows, and its clean-up."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME")}
    waited = []
    for number in range(rounds):
        places = ("--dir", str(scratch / f"demo-{number}"), "--build", str(scratch / "build"))
        argv = [sys.executable, "-c", COMMAND, "demo", *places]
        waited.append(watch(argv, ROOT, environment))
        print(f"{DEMO}: {waited[-1]}, load {os.getloadavg()[0]:.1f}", flush=True)
    return medians({DEMO: {"after": waited}})


def medians(found: dict[str, dict[str, list[Waited]]]) -> dict[str, Any]:
    """Of each kind and side."""
    return {
        kind: {
            side: {
                "first_s": round(statistics.median(w.first_s for w in all_of), 2),
                "end_s": round(statistics.median(w.end_s for w in all_of), 2),
                "cpu_s": round(statistics.median(w.cpu_s for w in all_of), 2),
            }
            for side, all_of in by_side.items()
        }
        for kind, by_side in found.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--base", help="commit to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runners", nargs="+", default=["local", "spark"])
    parser.add_argument("--dry", action="store_true", help="write no file")
    asked = parser.parse_args()
    options = StackOptions(ledger_entries_max=100_000, ledger_megabytes_max=256)
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        sides = {"after": ROOT}
        if asked.base:
            unpack(asked.base, scratch / "base")
            sides = {"before": scratch / "base", **sides}
        with DevStack.start(scratch / "stack", options) as stack:
            kinds = measure(stack, sides, scratch, asked)
        kinds |= demos(scratch, asked.rounds)
    results = {
        "schema": 1,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "base": asked.base,
        "rounds": asked.rounds,
        "cores": os.cpu_count(),
        "load_after": [round(load, 2) for load in os.getloadavg()],
        "kinds": kinds,
    }
    if not asked.dry:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
