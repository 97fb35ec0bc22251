"""Brokers killed under load while their ledger's tail is read: is all of it in the sealed ledger?

    python -m tests.support.tail_kills [--kills 100] [--result build/tail-kills.json]

Owns: one kill is one new topic, one broker that dies by SIGKILL somewhere in a stream of pipelined
sends, and one comparison. What the reader had, entry by entry, must be in the ledger that recovery
closes, with the same bytes. Reads go on until the broker is dead.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pulsar

from tests.support.soak_traffic import Producer
from tests.support.tiered_cluster import TieredCluster, ml_names, tiered_cluster, wait_until
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState, LedgerMetadata
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.readable import proven_bound
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.tail import look_at_tail
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec

QUORUMS: Final = ((2, 2, 2), (3, 2, 2), (3, 3, 2))
"""Ensemble, write quorum, ack quorum."""
OPTIONS: Final = StackOptions(
    broker_conf={"managedLedgerMaxLedgerRolloverTimeMinutes": "60"}, short_lived=True
)
_PER_S: Final = 2000.0
_READ_LEAST: Final = 300
_LOOKS_LEAST: Final = 2
"""So that what one look proved is read on by another, however much a slow start let in at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What became of one ledger. `above` were visible on a bookie when the broker died and are not
    part of the ledger.
    """

    quorum: str
    ledger_id: int
    read: int
    sealed: int
    looks: int
    bound_by: Mapping[str, int]
    above: int
    missing: tuple[int, ...]
    different: tuple[int, ...]


class TailReader:
    """Reads a ledger while it grows, each entry once."""

    def __init__(self, cluster: TieredCluster, ledger_id: int, pool: BookiePool) -> None:
        self._cluster, self._ledger_id, self._pool = cluster, ledger_id, pool
        self.digests: list[str] = []
        self.bound_by: Counter[str] = Counter()
        self.visible = -1

    def look(self) -> bool:
        """Read what is proven by now; whether the ledger is still open."""
        metadata = self._cluster.ledger(self._ledger_id)
        if metadata.state is not BookKeeperState.OPEN:
            return False
        seen = look_at_tail(metadata, self._pool)
        bound = proven_bound(metadata, confirmed=seen.confirmed)
        self.visible = max(self.visible, seen.visible)
        self.bound_by[bound.by.value] += 1
        first = len(self.digests)
        if bound.entry_id >= first:
            reader = LedgerReader(
                metadata,
                self._pool,
                self._cluster.steps.settings.bookies,
                readable_to=bound,
                reresolve=lambda: self._cluster.ledger(self._ledger_id),
            )
            for batch in reader.iter_batches(first_entry_id=first, last_entry_id=bound.entry_id):
                self.digests += [sha256(payload).hexdigest() for _id, payload, _length in batch]
        return True


def kill_one(
    cluster: TieredCluster, quorum: tuple[int, int, int], name: str, source: random.Random
) -> Kill:
    """Kill the broker under load; its stack is whole again afterwards."""
    topic = f"public/{_namespace(quorum)}/{name}"
    spec = TopicSpec(topic=topic, messages=0, payload_bytes=0)
    until = source.randrange(_READ_LEAST, 8 * _READ_LEAST)
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(cluster.endpoints.service_url, logger=logger)
    settings = cluster.steps.settings.bookies
    try:
        producer = Producer(client, f"persistent://{topic}", _PER_S)
        producer.start()
        [ml_name] = ml_names(spec)
        wait_until(lambda: _lists_a_ledger(cluster, ml_name), f"{topic} has a ledger")
        ledger_id = cluster.managed_ledger(spec).ledgers[-1].ledger_id
        with BookiePool(settings, cluster.steps.ledgers.resolve) as pool:
            reader, looks = TailReader(cluster, ledger_id, pool), 0
            while (looks < _LOOKS_LEAST or len(reader.digests) < until) and reader.look():
                looks += 1
            cluster.running.stop_server("broker", kill=True)
            reader.look()
        cluster.running.start_server("broker")
        cluster.steps.broker.internal_stats(f"persistent://{topic}")
        wait_until(
            lambda: cluster.ledger(ledger_id).state is BookKeeperState.CLOSED,
            f"ledger {ledger_id} is closed",
        )
        producer.stop()
    finally:
        client.close()
    sealed = {
        entry_id: sha256(payload).hexdigest()
        for entry_id, payload in _entries(cluster, cluster.ledger(ledger_id))
    }
    read = dict(enumerate(reader.digests))
    return Kill(
        quorum="/".join(map(str, quorum)),
        ledger_id=ledger_id,
        read=len(read),
        sealed=len(sealed),
        looks=looks,
        bound_by=dict(reader.bound_by),
        above=max(0, reader.visible - len(sealed) + 1),
        missing=tuple(sorted(read.keys() - sealed.keys())),
        different=tuple(e for e in sorted(read.keys() & sealed.keys()) if read[e] != sealed[e]),
    )


def _lists_a_ledger(cluster: TieredCluster, ml_name: str) -> bool:
    """A broker makes the managed ledger's node before it lists the first ledger in it."""
    found = cluster.steps.topics.read(ml_name)
    return found is not None and bool(found[0].ledgers)


def _entries(cluster: TieredCluster, metadata: LedgerMetadata) -> Iterator[tuple[int, bytes]]:
    return cluster.bookie_entries(metadata.ledger_id) if metadata.entries else iter(())


def _namespace(quorum: tuple[int, int, int]) -> str:
    return "tail-{}{}{}".format(*quorum)


@contextmanager
def killing_cluster(folder: Path) -> Iterator[TieredCluster]:
    """Servers with a namespace of each quorum."""
    with DevStack.start(folder / "stack", OPTIONS) as dev, tiered_cluster(dev) as cluster:
        for quorum in QUORUMS:
            ensemble, write, ack = quorum
            cluster.make_namespace(
                f"public/{_namespace(quorum)}",
                persistence={
                    "bookkeeperEnsemble": ensemble,
                    "bookkeeperWriteQuorum": write,
                    "bookkeeperAckQuorum": ack,
                    "managedLedgerMaxMarkDeleteRate": 0.0,
                },
            )
        yield cluster


def run(kills: int, seed: int) -> dict[str, Any]:
    """So many kills, the quorums in turn."""
    source, found, began = random.Random(seed), list[Kill](), time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="tail-") as name,
        killing_cluster(Path(name)) as cluster,
    ):
        for number in range(kills):
            one = kill_one(cluster, QUORUMS[number % 3], f"kill-{number}", source)
            sys.stderr.write(f"{number + 1} of {kills}: {json.dumps(asdict(one))}\n")
            found.append(one)
    by_quorum = Counter(one.quorum for one in found)
    return {
        "schema": "tierkeeper/tail-kills/1",
        "seconds": round(time.monotonic() - began, 1),
        "seed": seed,
        "kills": len(found),
        "by_quorum": dict(by_quorum),
        "entries_read": sum(one.read for one in found),
        "entries_sealed": sum(one.sealed for one in found),
        "visible_and_not_sealed": sum(one.above for one in found),
        "missing": sum(len(one.missing) for one in found),
        "different": sum(len(one.different) for one in found),
        "of_each": [asdict(one) for one in found],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--result", type=Path, default=Path("build/tail-kills.json"))
    asked = parser.parse_args()
    found = run(asked.kills, asked.seed)
    asked.result.parent.mkdir(parents=True, exist_ok=True)
    asked.result.write_text(json.dumps(found, indent=1) + "\n")
    said = {name: value for name, value in found.items() if name != "of_each"}
    sys.stdout.write(json.dumps(said, indent=1) + "\n")
    return 1 if found["missing"] or found["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
