"""What questions and sensors cost over fleets of any size, at several sizes side by side.

    python -m benchmarks.scale [--fleets 10x100 10x1000 10x100000] [--rows 100x100000]
        [--blocks 1000x100x100] [--accept]

For each size (ledgers of a topic x topics x blocks of a ledger) servers are started and filled
(scale_fleet.py). In --fleets every sensor ticks, again and as after a start (one that asks each
topic also within its round, with a budget that no fleet's round ends in), topics are scanned, and
commands that list and count are run as a person runs them. In --rows those commands are run alone:
topics list their newest ledgers only. In --blocks it is lineage, and a single ledger. Requests to
the store are counted on the wire, those of the tables included. --accept writes
benchmarks/results/scale.json and docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from benchmarks.scale_fleet import (
    ScaleFleet,
    make_namespaces,
    write_attempt,
    write_nodes,
    write_rows,
)
from benchmarks.scale_goals import (
    COVERAGE,
    FIRST,
    LISTS,
    NEXT,
    ONE,
    WHOLE_SCANS,
    WITHIN,
    parts_of,
)
from benchmarks.scale_page import write_page
from tests.support.wiretap import Wiretap
from tiering_assets.ground.stack import open_stack
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[1]
CELL = Path(__file__).with_name("fleet_cell.py")
LAUNCHER = Path(__file__).with_name("launcher.py")
RESULT = Path(__file__).with_name("results") / "scale.json"
SENSORS: Final = (
    "catalogue",
    "offload_threshold",
    "release_due",
    "ledger_rollover",
    "stuck",
    "retire_partitions",
    "verify_due",
    "backlog_due",
)
_ENDPOINT: Final = "s3ManagedLedgerOffloadServiceEndpoint"
_ROUNDS: Final = ("offload_threshold",)
"""Sensors that ask each topic: a round of the largest fleet takes forty ticks."""
_SHORT_S: Final = 2.0  # of a tick's budget, within a round
_TOLD = ("topics_moved", "ledgers_written", "ticks_before", "round_over")
_METHOD = (
    "topics and ledgers' nodes in a real ZooKeeper, rows planted in real Delta tables of a real "
    "store, all of their tails absorbed, records of one ledger. In the fleet of rows topics list "
    "their newest three ledgers. "
    "Requests are counted on the wire, and each line is a process of its own"
)


@dataclass
class Measured:
    """One fleet that is being asked. `found` is by what was measured."""

    environment: Mapping[str, str]
    tap: Wiretap
    found: dict[str, Any] = field(default_factory=dict)

    def command(self, *words: str, name: str = "", codes: tuple[int, ...] = (0,)) -> None:
        program = str(ROOT / ".venv/bin/tierkeeper")
        self._run(name or " ".join(words), [program, *words], codes=codes)

    def sensor(self, name: str) -> None:
        """The first tick comes last, in a process of its own: what was due is done by then."""
        kinds = (NEXT, *((WITHIN,) if name in _ROUNDS else ()), FIRST)
        for what in (f"{kind}{name}" for kind in kinds):
            short = {"TIERKEEPER_AUTO_TICK_BUDGET_S": str(_SHORT_S)} if WITHIN in what else {}
            self._run(what, [sys.executable, str(CELL), what], short)

    def scan(self, name: str, root: str) -> None:
        """Into tables that lie at `root`, or in the bucket."""
        self.environment = {**self.environment, "TIERKEEPER_CATALOGUE_ROOT": root}
        self._run(name, [sys.executable, str(CELL), "scan"])

    def _run(
        self,
        name: str,
        argv: list[str],
        more: Mapping[str, str] = MappingProxyType({}),
        *,
        codes: tuple[int, ...] = (0,),
    ) -> None:
        self.tap.requests.clear()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                [sys.executable, str(LAUNCHER), str(out.fileno()), *argv],
                env={**os.environ, **self.environment, **more},
                cwd=ROOT,
                pass_fds=[out.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            assert child.stdin is not None
            assert child.stdout is not None
            printed = []
            for line in child.stdout:
                printed.append(line.decode())
                if printed[-1] == "ticked\n":
                    self.tap.requests.clear()
                    child.stdin.write(b"\n")
                    child.stdin.flush()
            child.wait()
            out.seek(0)
            errors.seek(0)
            used, said = json.loads(out.read()), errors.read().decode()
        lines = "".join(printed).splitlines()
        found: dict[str, Any] = {
            **used,
            "store_requests": len(self.tap.requests),
            "asked": _kinds(one.what for one in self.tap.requests),
        }
        if argv[1] == str(CELL) and child.returncode == 0:
            tick = json.loads(lines[-1])
            found |= {"tick_seconds": tick["seconds"], "tick_cpu_seconds": tick["cpu_seconds"]}
            found |= {name: tick[name] for name in _TOLD if name in tick}
        if child.returncode not in codes:
            found["failed"] = [child.returncode, *said.splitlines()[-2:], *lines[-1:]]
        self.found[name] = found
        _tell(f"{name}: {json.dumps(found)}")


def _kinds(requests: Iterable[str]) -> dict[str, int]:
    """By method and folder, as lists of records are what must not grow."""
    counted = Counter[str]()
    for what in requests:
        method, _, url = what.partition(" ")
        parts = urlsplit(url)
        path = unquote(parts.path)
        for option in parts.query.split("&"):
            name, _, value = option.partition("=")
            if name == "prefix":
                method, path = "LIST", unquote(value)
        kind = path.partition("tierkeeper/")[2].partition("/")[2].partition("/")[0]
        counted[f"{method} {kind or 'bucket'}"] += 1
    return dict(sorted(counted.items()))


@contextmanager
def asked(fleet: ScaleFleet) -> Iterator[Measured]:
    """Servers with this fleet. No threshold is reached, and the deletion lag is four hours."""
    with tempfile.TemporaryDirectory() as directory:
        policy = Path(directory) / "tiering.toml"
        policy.write_text("[default]\nmanagedLedgerOffloadThresholdInBytes = 1000000000000\n")
        options = StackOptions(zookeeper_mb=3000)
        with DevStack.start(Path(directory) / "stack", options) as running:
            endpoint = urlsplit(running.settings().store.endpoint or "")
            with Wiretap((endpoint.hostname or "", endpoint.port or 0)) as tap:
                # Topics of a broker that would read another endpoint are looked at again and again.
                running.stop_server("broker")
                running.start_server("broker", broker_conf={_ENDPOINT: tap.url})
                make_namespaces(running.settings().broker.admin_url)
                with open_stack(running.settings()) as stack:
                    write_nodes(stack, fleet, narrate=_tell)
                    write_rows(stack, fleet, narrate=_tell)
                    if fleet.blocks > 1:
                        write_attempt(stack, fleet, *fleet.middle)
                environment = running.environment() | {
                    "TIERKEEPER_AUTO_ENABLED": "true",
                    "TIERKEEPER_POLICY_FILE": str(policy),
                    "TIERKEEPER_STORE_ENDPOINT": tap.url,
                }
                yield Measured(environment, tap)


def measure_fleet(fleet: ScaleFleet) -> dict[str, Any]:
    with asked(fleet) as measured:
        for name in SENSORS:
            measured.sensor(name)
        _lists(measured)
        measured.scan("scan: what sensors moved", "")  # or what brokers wrote for them
        measured.scan(WHOLE_SCANS[1], "")
        with tempfile.TemporaryDirectory() as elsewhere:
            measured.scan(WHOLE_SCANS[0], elsewhere)
        return measured.found


def measure_rows(fleet: ScaleFleet) -> dict[str, Any]:
    with asked(replace(fleet, listed=3)) as measured:
        _lists(measured)
        return measured.found


def measure_blocks(fleet: ScaleFleet) -> dict[str, Any]:
    with asked(fleet) as measured:
        topic, ledger_id = fleet.middle
        name = fleet.name(topic).replace("/persistent/", "/")
        then = fleet.closed_at(ledger_id) - timedelta(minutes=12)
        until = then + timedelta(minutes=10)
        span = ["--at", then.isoformat(), "--until", until.isoformat()]
        measured.command("ledger", "list", str(ledger_id), name=ONE[0])
        measured.command("lineage", "message", f"{ledger_id}:5", name=ONE[1])
        measured.command("lineage", "topic", name, *span, name=ONE[2])
        measured.command("lineage", "coverage", "--all", name=COVERAGE)
        return measured.found


def _lists(measured: Measured) -> None:
    for name in LISTS:
        measured.command(*name.split())
    measured.command("catalogue", "sql", "select state, count(*) as n from ledgers group by state")


def _tell(line: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {line}\n")


def _size(text: str) -> ScaleFleet:
    per_topic, topics, blocks = parts_of(text)
    return ScaleFleet(per_topic=per_topic, topics=topics, blocks=blocks, now=datetime.now(UTC))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--fleets", nargs="*", default=["10x100", "10x1000", "10x100000"])
    parser.add_argument("--rows", nargs="*", default=["100x100000"])
    parser.add_argument("--blocks", nargs="*", default=["1000x100x100"])
    parser.add_argument("--accept", action="store_true")
    given = parser.parse_args()
    document: dict[str, Any] = {
        "schema": "tierkeeper/scale/1",
        "method": _METHOD,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "load_before": round(os.getloadavg()[0], 2)},
        "fleets": {one: measure_fleet(_size(one)) for one in given.fleets},
        "rows": {one: measure_rows(_size(one)) for one in given.rows},
        "blocks": {one: measure_blocks(_size(one)) for one in given.blocks},
    }
    document["machine"]["load_after"] = round(os.getloadavg()[0], 2)
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    if given.accept:
        RESULT.write_text(text)
        write_page(document)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
