"""One ledger of 2 GiB by two tasks at a time and by one, the store 50 ms away.

    .venv/bin/python -m benchmarks.backfill [--megabytes 2147] [--rounds 3] [--base COMMIT]

Starts real servers, makes one ledger, and lets three processes copy and verify it in turns: this
tree with two tasks at a time, this tree with one, and a commit from before. Bare clients then send
and fetch as many bytes with as many connections as two tasks have; and do, by two tasks, all that
cannot be left out: read entries, hash, send, fetch, hash. Every object is read and hashed: all must
be the same. The store is the gateway of versity.py, whose pace lets the wire's latency
show; where it cannot be built, the stack's own. Medians go to benchmarks/results/backfill.json.
What a live producer pays is measured by benchmarks/polite.py; `make bench-backfill` runs both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.agents import ROOT, Child, say, start_agent
from benchmarks.bare_clients import BareClients
from benchmarks.bench import admin, unbounded_ledgers
from benchmarks.content import Kind, produce
from benchmarks.figures import SEAWEED, VERSITY
from benchmarks.meters import machine_busy
from benchmarks.start import unpack
from benchmarks.told import TWO_OVER_ONE_MIN, why_no_faster
from benchmarks.versity import AbsentError, Gateway, build
from tiering_assets.automation.choices import sealed_ledgers
from tiering_assets.ground.stack import open_stack
from tiering_assets.resources.devstack.bucket import create_bucket, s3_client
from tiering_assets.resources.devstack.endpoints import Endpoints
from tiering_assets.resources.devstack.options import MIB
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.metastore.topic_names import parse_topic_name, with_scheme
from tiering_assets.resources.settings import Settings

RESULTS = ROOT / "benchmarks" / "results" / "backfill.json"
LOGS = ROOT / "build" / "bench"
FAR_MS = 50
BASE = "679759c"  # the last commit before tasks ran side by side and entries were looped over in C
SLOWER_MAX = 0.95  # the least of one worker over before: less than noise is slower
TWO, ONE, EARLIER, CEILING, LEAST = "two", "one", "before", "ceiling", "least work"
TASKS = 2
_KIND = Kind(name="backfill", message_bytes=100 * 1024, messages=0)
_SMALL_MB = 20  # what a process copies first, to have its imports and connections
_TIMEOUT_S = 900.0


@dataclass(frozen=True, slots=True)
class Pace:
    """One way's work in one round."""

    way: str
    round: int
    bytes: int
    seconds: float
    sha256: str = ""
    busy: float = 0.0  # share of all cores that the whole machine used

    @property
    def mb_per_s(self) -> float:
        return self.bytes / 1e6 / self.seconds


def summary(paces: Sequence[Pace]) -> dict[str, Any]:
    """Medians by way, what they are to each other, and whether the goal is met."""
    ways = list(dict.fromkeys(pace.way for pace in paces))
    medians = {
        way: statistics.median(pace.mb_per_s for pace in paces if pace.way == way) for way in ways
    }
    busy = {way: statistics.median(pace.busy for pace in paces if pace.way == way) for way in ways}
    hashes = {pace.sha256 for pace in paces if pace.sha256}
    found: dict[str, Any] = {
        "mb_per_s": {way: round(value, 1) for way, value in medians.items()},
        "ratio": _ratio(medians, TWO, ONE),
        "share_of_ceiling": _ratio(medians, TWO, CEILING),
        "share_of_least_work": _ratio(medians, TWO, LEAST),
        "one_over_before": _ratio(medians, ONE, EARLIER),
        "identical": len(hashes) == 1,
        "busy": {way: round(value, 3) for way, value in busy.items()},
        "cores_bear": round(1 / busy[ONE], 3) if busy.get(ONE) else None,
    }
    fast = (found["ratio"] or 0.0) >= TWO_OVER_ONE_MIN or why_no_faster(found) is not None
    slower = found["one_over_before"] is not None and found["one_over_before"] < SLOWER_MAX
    return found | {"met": fast and not slower and found["identical"]}


def _ratio(medians: Mapping[str, float], one: str, other: str) -> float | None:
    if one not in medians or other not in medians:
        return None
    return round(medians[one] / medians[other], 3)


@contextmanager
def store_of(dev: DevStack, directory: Path) -> Iterator[tuple[str, str]]:
    """Name and endpoint of the store: the gateway where it can be had."""
    ends = dev.endpoints
    try:
        program = build()
    except AbsentError as error:
        say(f"the stack's own store: {error}")
        yield SEAWEED, ends.s3_endpoint
        return
    with Gateway(
        program, directory, access_key=ends.s3_access_key, secret_key=ends.s3_secret_key
    ) as gateway:
        create_bucket(replace(ends, s3_endpoint=gateway.endpoint))
        yield VERSITY, gateway.endpoint


def fill(ends: Endpoints, name: str, megabytes: int) -> str:
    """A topic with one closed ledger of that size; its managed ledger's name."""
    produce(ends.service_url, name, _KIND, max(2, megabytes * 1_000_000 // _KIND.message_bytes))
    admin(ends, "PUT", name, "unload")
    admin(ends, "GET", name, "internalStats")
    return parse_topic_name(with_scheme(name)).managed_ledger_name


def measure(
    ways: Mapping[str, Child],
    least: Child,
    settings: Settings,
    near: Endpoints,
    ml_name: str,
    rounds: int,
) -> Iterator[Pace]:
    """Each way in each round, in turns that begin with another one each time; then both ceilings.

    `least` is an agent that has the ledger open.
    """
    bare = BareClients(settings.store)
    names = list(ways)
    size = 0
    for number in range(1, rounds + 1):
        turn = number % len(names)
        for way in names[turn:] + names[:turn]:
            with machine_busy() as busy:
                answer = _asked(ways[way], ml_name)
            size = answer["bytes"]
            found = _hash_and_remove(near, answer["keys"])
            yield Pace(way, number, size, answer["seconds"], found, busy[0])
        bare.make(size, settings.offload.block_bytes)
        with machine_busy() as busy:
            sent = bare.put_get(None, tasks=TASKS)
        bare.check_sent()
        yield Pace(CEILING, number, size, sent["seconds"], busy=busy[0])
        with machine_busy() as busy:
            done = least.ask(
                action="least_work",
                part_bytes=settings.offload.block_bytes,
                tasks=TASKS,
                timeout_s=_TIMEOUT_S,
            )
        yield Pace(LEAST, number, size, done["seconds"], busy=busy[0])


def _asked(child: Child, ml_name: str) -> dict[str, Any]:
    return child.ask(timeout_s=_TIMEOUT_S, ml_name=ml_name)


def _hash_and_remove(near: Endpoints, keys: Sequence[str]) -> str:
    """SHA-256 of the one data object, read without the delay."""
    if len(keys) != 1:
        raise IntegrityError(f"{len(keys)} ledgers were copied, expected one: {keys}")
    (key,) = keys
    client, found = s3_client(near), sha256()
    body = client.get_object(Bucket=near.s3_bucket, Key=key)["Body"]
    while piece := body.read(MIB):
        found.update(piece)
    for name in (key, f"{key}-index"):
        client.delete_object(Bucket=near.s3_bucket, Key=name)
    client.close()
    return found.hexdigest()


def workers(
    exits: ExitStack, environment: Mapping[str, str], base: str, scratch: Path
) -> dict[str, Child]:
    """A process for each way; that of the earlier commit runs this tree's worker on its code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    trees = {TWO: (ROOT, str(TASKS)), ONE: (ROOT, "1")}
    if base:
        tree = scratch / "before"
        unpack(base, tree)
        shutil.copy(Path(__file__).with_name("backfill_worker.py"), tree / "benchmarks")
        trees[EARLIER] = (tree, "0")
    started = {}
    for way, (tree, tasks) in trees.items():
        child = Child(
            "benchmarks.backfill_worker",
            tasks,
            environment={**environment, "PYTHONPATH": str(tree)},
            log=LOGS / f"backfill-{way}.log",
            tree=tree,
        )
        started[way] = exits.enter_context(child)
        child.line()
    return started


def run(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    began = time.monotonic()
    with ExitStack() as exits:
        dev = exits.enter_context(
            DevStack.start(scratch / "stack", unbounded_ledgers(options.block_mib))
        )
        store, endpoint = exits.enter_context(store_of(dev, scratch / "versity"))
        way_to = ("benchmarks.far_store", urlsplit(endpoint).netloc, str(FAR_MS))
        proxy = exits.enter_context(Child(*way_to, environment={}, log=scratch / "far.log"))
        far = f"http://127.0.0.1:{int(proxy.line())}"
        settings = dev.settings()
        settings = replace(settings, store=replace(settings.store, endpoint=far))
        environment = {**dev.environment(), "TIERKEEPER_STORE_ENDPOINT": far}
        ways = workers(exits, environment, options.base, scratch)
        small = fill(dev.endpoints, "public/default/backfill-small", _SMALL_MB)
        large = fill(dev.endpoints, "public/default/backfill", options.megabytes)
        for child in ways.values():
            _asked(child, small)
        least = exits.enter_context(start_agent("local", environment=environment, logs=LOGS))
        with open_stack(dev.settings()) as stack:
            (ledger_id,) = sealed_ledgers(stack, [large])
        least.ask(action="open_ledger", ledger_id=ledger_id, timeout_s=_TIMEOUT_S)
        near = replace(dev.endpoints, s3_endpoint=endpoint)
        paces = []
        for pace in measure(ways, least, settings, near, large, options.rounds):
            said = f"{pace.mb_per_s:7.1f} MB/s, {pace.busy:.0%} of the cores"
            say(f"round {pace.round}, {pace.way:10} {said}")
            paces.append(pace)
    return {
        "schema": 1,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds_taken": round(time.monotonic() - began),
        "cores": os.cpu_count(),
        "load_after": [round(x, 2) for x in os.getloadavg()],
        "rounds": options.rounds,
        "store": store,
        "store_ms": FAR_MS,
        "block_mib": options.block_mib,
        "ledger_mb": round(paces[0].bytes / 1e6),
        "base": options.base,
        "two_workers": summary(paces),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--megabytes", type=int, default=2148, help="of the ledger")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--block-mib", type=int, default=16)
    parser.add_argument("--base", default=BASE, help="the commit from before; empty for none")
    parser.add_argument("--accept", action="store_true", help=f"keep it in {RESULTS.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="backfill-") as scratch:
        found = run(options, Path(scratch))
    text = json.dumps(found, indent=1)
    if options.accept:
        RESULTS.write_text(text + "\n")
    print(text)
    sys.exit(0 if found["two_workers"]["met"] else 1)


if __name__ == "__main__":
    main()
