"""What is counted and listed by the catalogue's rows, and by reading everything: the same.

    python -m tests.support.fleet_compared --seeds 1000

One seed is a fleet whose ledgers met random acts, of runs and of what happens to them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.metastore_sim import SimulatedStore
from tests.support.sim_scene import Scene
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.batch.release_batch import release_batch
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.upkeep.settle import settle
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.explain.backlog import ExplainedLedger
from tiering_assets.fleet.backlog import FleetBacklog, take_backlog
from tiering_assets.fleet.ledgers import list_ledgers
from tiering_assets.fleet.topics import list_all_topics
from tiering_assets.ground.own_policy import TieringMode
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.pauses import pause
from tiering_assets.look.brakes.scopes import Scope, ledger_scope
from tiering_assets.look.ledger.claims import claim_ledger, longest_claim
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import survey
from tiering_assets.records import keys
from tiering_assets.records.models import Quarantine
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.settings import CatalogueSettings

TOPICS = tuple(f"t/ns{n}/persistent/orders-{n}" for n in range(3))
READ = timedelta()
"""So fresh is no catalogue: everything is read."""


@dataclass(frozen=True, slots=True)
class Compared:
    """`problems` are differences; the others say what the fleet had."""

    problems: tuple[str, ...]
    reasons: Counter[str]
    states: Counter[str]


class _KilledError(BaseException):
    """A run ends in the middle of something."""


class Fleet:
    """Acts on one ledger or topic. Those of ledgers find it sealed."""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self.scene, self.chance = scene, chance

    # ----- of a ledger

    def leave(self, ledger_id: int) -> None:
        """Nobody takes it up."""

    def certify(self, ledger_id: int) -> None:
        self.scene.offload(ledger_id, publish=False)

    def publish(self, ledger_id: int) -> None:
        self.scene.offload(ledger_id)

    def hold_it(self, ledger_id: int) -> None:
        self.publish(ledger_id)
        hold(self.scene.stack, ledger_scope(ledger_id), reason="audit", author="kim")

    def quarantine(self, ledger_id: int) -> None:
        """A later check of its copy failed."""
        self.chance.choice((self.certify, self.publish))(ledger_id)
        stack = self.scene.stack
        for attempt in attempts_of(stack, ledger_id)[-1:]:
            record = attempt.record
            found = Quarantine(
                ledger_id=ledger_id,
                uid=record.uid,
                ml_name=record.ml_name,
                reason="block 2 differs",
                found_at=stack.now(),
                writer=stack.writer,
                previous=attempt.sha256,
            )
            stack.book.create(keys.quarantine(ledger_id, record.uid), found)

    def fail(self, ledger_id: int) -> None:
        """Its bookie has lost it."""
        entries = self.scene.cluster.bookies.pop(ledger_id, None)
        self.scene.offload(ledger_id)
        if entries is not None:
            self.scene.cluster.bookies[ledger_id] = entries

    def die(self, ledger_id: int) -> None:
        """Its run is killed behind so many writes."""
        left = [self.chance.randrange(1, 12)]
        objects = self.scene.world.objects
        really = objects.put

        def put(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                raise _KilledError
            return really(*args, **kwargs)

        with patch.object(objects, "put", put), suppress(_KilledError):
            self.scene.offload(ledger_id)

    def lose(self, ledger_id: int) -> None:
        """Before any copy is read. What brokers read elsewhere rows do not look for."""
        states = {one.ledger_id: one.state for one in survey(self.scene.stack)}
        if states[ledger_id] is LedgerState.SEALED:
            self.scene.cluster.delete_ledger(ledger_id)

    def brokers_offload(self, ledger_id: int) -> None:
        """Of the first that it has not."""
        del ledger_id
        stops = self.chance.choice((1, 2, 9))
        self.scene.broker.offload(self.chance.choice(TOPICS), stops_after=stops)

    # ----- of a topic

    def hold_all(self, ml_name: str) -> None:
        hold(self.scene.stack, Scope("topic", ml_name), reason="audit", author="kim")

    def pause_all(self, ml_name: str) -> None:
        mode = self.chance.choice((TieringMode.PAUSED, TieringMode.DISABLED))
        pause(self.scene.stack, Scope("topic", ml_name), mode, reason="repair", author="kim")

    def terminate(self, ml_name: str) -> None:
        metadata, path = self.scene.cluster.metadata, managed_ledger_path(ml_name)
        found = decode_managed_ledger(metadata.nodes[path].data)
        message = found.message_copy()
        message.terminatedPosition.ledgerId = found.ledgers[-1].ledger_id
        message.terminatedPosition.entryId = 0
        metadata.put(path, encode_managed_ledger(found.with_message(message)))
        self.scene.cluster.close_ledger(found.ledgers[-1].ledger_id)

    def set_policy(self, ml_name: str) -> None:
        threshold = self.chance.choice((-1, 0, 9, 10**6))
        policies = {"offload_threshold": threshold} if threshold >= 0 else {}
        path = f"/admin/policies/{ml_name.partition('/persistent/')[0]}"
        self.scene.cluster.metadata.put(path, json.dumps(policies).encode())

    def release_all(self, ml_name: str) -> None:
        due = [one.ledger_id for one in survey(self.scene.stack, [ml_name])]
        release_batch(self.scene.process("release"), due)

    def release_some(self, ml_name: str) -> None:
        """The run is killed between the mark and the bookies."""

        def delete(*_args: Any, **_kwargs: Any) -> Any:
            raise _KilledError

        with patch.object(SimulatedStore, "check_and_delete", delete), suppress(_KilledError):
            self.release_all(ml_name)


OF_LEDGERS: tuple[Callable[[Fleet, int], None], ...] = (
    Fleet.leave,
    Fleet.certify,
    Fleet.publish,
    Fleet.hold_it,
    Fleet.quarantine,
    Fleet.fail,
    Fleet.die,
    Fleet.lose,
    Fleet.brokers_offload,
)
OF_TOPICS: tuple[Callable[[Fleet, str], None], ...] = (
    Fleet.hold_all,
    Fleet.pause_all,
    Fleet.terminate,
    Fleet.set_policy,
    Fleet.release_all,
    Fleet.release_some,
)


def compared(seed: int, folder: Path) -> Compared:
    """A fleet of a seed, asked both ways."""
    chance = random.Random(seed)
    scene = Scene(seed)
    for name in TOPICS:
        scene.broker.create_topic(name)
    fleet = Fleet(scene, chance)
    for name in TOPICS:
        fleet.set_policy(name)
        for _ in range(chance.randrange(1, 4)):
            scene.fill(name)
    for _ in range(2):
        for one in [one for one in survey(scene.stack) if one.state is LedgerState.SEALED]:
            chance.choice(OF_LEDGERS)(fleet, one.ledger_id)
            scene.wait(60)  # further than clocks are apart
        scene.wait(chance.choice((1, 3600, scene.stack.settings.release.deletion_lag_s + 60)))
        for name in TOPICS:
            if chance.random() < 0.5:
                chance.choice(OF_TOPICS)(fleet, name)
        scene.fill(chance.choice([t for t in TOPICS if t in scene.broker.topics] or [TOPICS[0]]))
    scene.stack.book.close_page()
    scene.wait(longest_claim(scene.stack).total_seconds() + 60)  # what runs left is known as such
    last = scene.process("last")
    for one in [one for one in survey(scene.stack) if one.state is LedgerState.SEALED]:
        act = chance.randrange(5)
        if act == 0:
            claim_ledger(scene.process("other"), one.ledger_id)
        elif act == 1:
            offload_batch(last, [one.ledger_id])
    last.book.close_page()
    settings = replace(scene.stack.settings, catalogue=CatalogueSettings(root=str(folder)))
    stack = replace(scene.process("asker"), settings=settings)
    catalogue = Catalogue.of(stack)
    prove(stack, catalogue)
    scan(stack, catalogue)
    if chance.random() < 0.5:
        settle(catalogue, "ledgers", at=stack.now(), tail_max=0)
    found = take_backlog(stack, fresh=READ).figures.total
    return Compared(
        tuple(differences(stack, seed)),
        Counter({row.reason.value: row.ledgers for row in found.reasons}),
        Counter({row.state.value: row.ledgers for row in found.states}),
    )


def differences(stack: Stack, seed: int = 0) -> Iterator[str]:
    """Of a stack whose catalogue is proven and scanned, and on which nothing happens."""
    chance = random.Random(seed)
    topics = [one.ml_name for one in list_all_topics(stack, fresh=READ).topics]
    kinds: dict[str, Any] = {
        "backlog": _backlog,
        "backlog of one": lambda stack, **how: _backlog(stack, topics[:1], **how),
        "counts": lambda stack, **how: _counts(take_backlog(stack, **how)),
        "ledgers": _ledgers,
        "ledgers of one": lambda stack, **how: _ledgers(stack, topics=topics[:1], **how),
        "three ledgers": lambda stack, **how: _ledgers(stack, most=3, **how),
        "topics": lambda stack, **how: list_all_topics(stack, **how).topics,
        **{
            f"ledgers that are {one.value}": lambda stack, state=one, **how: _ledgers(
                stack, states=frozenset({state}), **how
            )
            for one in chance.sample([*LedgerState], 4)
        },
    }
    for what, ask in kinds.items():
        with patch("tiering_assets.fleet.source.NAMED_MAX", 0):  # one topic's rows are rows, too
            by_rows = ask(stack)
        by_reading = ask(stack, fresh=READ)
        yield from (f"{what}: {one}" for one in _different(by_rows, by_reading))


def _backlog(stack: Stack, *topics: Any, **how: Any) -> Any:
    each: dict[int, tuple[Any, ...]] = {}

    def told(one: ExplainedLedger) -> None:
        each[one.view.ledger_id] = one.view, str(one.because), one.due_at

    found = take_backlog(stack, *topics, each=told, **how)
    assert (found.source is None) == bool(how)
    return {**_counts(found), "each": each}


def _counts(found: FleetBacklog) -> Any:
    topics = found.figures.topics
    figures = asdict(replace(found.figures, topics={}))  # type: ignore[arg-type]
    del figures["taken_at"]  # asking takes time
    told = {
        "number": len(topics),  # before any topic is asked for
        "lagging": {name: asdict(one) for name, one in topics.lagging()},
        "topics": {name: asdict(one) for name, one in topics.items()},
        "largest": [name for name, _figures in topics.largest(2)],
        "most released": [name for name, _figures in topics.largest(2, LedgerState.RELEASED)],
    }
    return {"figures": {**figures, **told}, "steps": found.steps}


def _ledgers(stack: Stack, **how: Any) -> Any:
    return [(one.ledger_id, one) for one in list_ledgers(stack, **how).views]


def _different(by_rows: Any, by_reading: Any, where: str = "") -> Iterator[str]:
    if isinstance(by_rows, dict) and isinstance(by_reading, dict):
        # What is settled is told by reading alone.
        names = by_rows if where.endswith("each") else {**by_rows, **by_reading}
        for name in names:
            one, other = by_rows.get(name), by_reading.get(name)
            yield from _different(one, other, f"{where} {name}")
    elif isinstance(by_rows, list | tuple) and len(by_rows) == len(by_reading or ()):
        for n, (one, other) in enumerate(zip(by_rows, by_reading, strict=True)):
            yield from _different(one, other, f"{where} {n}")
    elif where.endswith("oldest_s") and by_rows is not None and by_reading is not None:
        if abs(by_rows - by_reading) > 60:
            yield f"{where}: {by_rows} by rows, {by_reading} by reading"
    elif by_rows != by_reading:
        yield f"{where}: {by_rows} by rows, {by_reading} by reading"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    bad, reasons, states = 0, Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.first, given.first + given.seeds):
            found = compared(seed, Path(folder, str(seed)))
            reasons, states = reasons + found.reasons, states + found.states
            bad += bool(found.problems)
            for problem in found.problems:
                sys.stdout.write(f"seed {seed}: {problem}\n")
    sys.stdout.write(f"{dict(reasons)}\n{dict(states)}\n{given.seeds} fleets, {bad} differ\n")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
