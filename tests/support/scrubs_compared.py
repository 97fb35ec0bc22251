"""What a scrub looks at next, by the catalogue's rows and by listing everything: the same.

    python -m tests.support.scrubs_compared --seeds 1000

One seed is a fleet whose ledgers met random acts, and scrubs of random budgets at random times.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from tests.support.fleet_compared import OF_LEDGERS, TOPICS, Fleet
from tests.support.sim_scene import Scene
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.upkeep.settle import settle
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.defs import nominated_copies
from tiering_assets.defs.nominated_copies import NominatedCopies, nominate_copies
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.claims import longest_claim
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import survey
from tiering_assets.offload_format.keys import data_key
from tiering_assets.resources.settings import CatalogueSettings
from tiering_assets.scrub.fleet import find_fleet, find_nominated
from tiering_assets.scrub.plan import Candidate, Depth, DueLook, ScrubPlan, plan_scrub
from tiering_assets.scrub.scrub import budget_of, intervals_of, scrub

_DAY = 24 * 3600.0
_APART_S = 60.0  # clocks of writers, and a look from its record
Look = tuple[int, UUID, Depth]


@dataclass(frozen=True, slots=True)
class ScrubsCompared:
    """`problems` are differences that nothing explains; `told` says what the seeds had."""

    problems: tuple[str, ...]
    told: Counter[str]


class Scrubs:
    """What happens to copies and to records of looks."""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self.scene, self.chance, self._n = scene, chance, 0

    def stack(self, *, before: bool = False, **settings: Any) -> Stack:
        """A run's. `before` is one of a version that writes no pages."""
        self._n += 1
        stack = self.scene.process(f"scrub-{self._n}")
        scrubs = replace(stack.settings.scrub, **settings)
        stack = replace(stack, settings=replace(stack.settings, scrub=scrubs))
        if before:
            return replace(stack, book=RecordBook(stack.objects, stack.instance))
        return stack

    def look(self) -> None:
        """At some of what is due, or deeply at once; its run may die before its last page."""
        chance = self.chance
        stack = self.stack(
            before=chance.random() < 0.1,
            requests_max=chance.choice((7, 20, 60, 2000)),
            bytes_max=chance.choice((200, 5000, 10**9)),
        )
        scrub(stack, deep=chance.random() < 0.4, heal=chance.random() < 0.6)
        if chance.random() < 0.85:
            stack.book.close_page()

    def rot(self) -> None:
        """A copy that brokers read has another byte, or its object is gone."""
        copies = find_fleet(self.scene.stack).candidates
        if not copies:
            return
        one = self.chance.choice(copies)
        key = data_key(one.uid, one.ledger_id)
        objects = self.scene.world.objects
        found = objects.peek(key)
        self.scene.world.monitor.damaged.add(one.uid)
        self.scene.world.monitor.excused.add(("alpha", one.ledger_id))
        if found is not None:
            body = bytearray(found[0])
            body[-1] ^= 1
            objects.rot(key, bytes(body))


def compared(seed: int, folder: Path) -> ScrubsCompared:
    """A fleet of a seed, whose copies are chosen from both ways."""
    chance = random.Random(seed)
    scene = Scene(seed)
    fleet, scrubs = Fleet(scene, chance), Scrubs(scene, chance)
    for name in TOPICS:
        scene.broker.create_topic(name)
        for _ in range(chance.randrange(2, 5)):
            scene.fill(name)
    for _ in range(chance.randrange(2, 6)):
        for one in [one for one in survey(scene.stack) if one.state is LedgerState.SEALED]:
            act = chance.choice((Fleet.publish, *OF_LEDGERS))
            act(fleet, one.ledger_id)
            scene.wait(60)
        if chance.random() < 0.3:
            scrubs.rot()
        if chance.random() < 0.3:
            fleet.release_all(chance.choice(TOPICS))
        scene.wait(chance.choice((60, 3600, _DAY, 5 * _DAY, 31 * _DAY)))
        scrubs.look()
        scene.stack.book.close_page()
    # What runs left that died is known as such.
    scene.wait(longest_claim(scene.stack).total_seconds() + 400)
    scene.wait(chance.choice((60, 3600, _DAY, 31 * _DAY)))
    stack = scrubs.stack(
        requests_max=chance.choice((6, 12, 20, 60, 20_000)),
        bytes_max=chance.choice((200, 5000, 10**9)),
    )
    tables = CatalogueSettings(root=str(folder))
    stack = replace(stack, settings=replace(stack.settings, catalogue=tables))
    catalogue = Catalogue.of(stack)
    prove(stack, catalogue)
    scan(stack, catalogue)
    if chance.random() < 0.5:
        settle(catalogue, "ledgers", at=stack.now(), tail_max=0)
    return _compared(stack, deep=chance.random() < 0.3)


def nominated_of(stack: Stack, *, deep: bool = False) -> NominatedCopies | None:
    """As of a fleet that is so large that nobody lists it."""
    with patch.object(nominated_copies, "LISTED_IN_THE_TIME", 0):
        return nominate_copies(stack, deep=deep)


def surely_nominated(stack: Stack, **how: bool) -> NominatedCopies:
    """Where the catalogue is known to be asked."""
    found = nominated_of(stack, **how)
    assert found is not None
    return found


def _compared(stack: Stack, *, deep: bool) -> ScrubsCompared:
    chosen = nominated_of(stack, deep=deep)
    if chosen is None:
        return ScrubsCompared(("nobody was asked",), Counter())
    every, some = find_fleet(stack), find_nominated(stack, chosen.ledgers)
    of_all, of_rows = (
        plan_scrub(
            one.candidates,
            now=every.store_now,
            intervals=intervals_of(stack, deep=deep),
            budget=budget_of(stack),
        )
        for one in (every, some)
    )
    told = Counter(
        copies=len(every.candidates),
        nominated=len(some.candidates),
        heal=len(of_all.heal),
        shallow=sum(one.depth is Depth.SHALLOW for one in of_all.looks),
        deep=sum(one.depth is Depth.DEEP for one in of_all.looks),
        deferred=len(of_all.deferred),
        failing=sum(one.failing for one in every.candidates),
        replaced=len(every.replaced),
    )
    problems = [*_differences(of_all, of_rows, told, _DueNow(stack, every.store_now, deep=deep))]
    if every.replaced != some.replaced:
        problems.append(f"replaced: {every.replaced} listed, {some.replaced} by rows")
    by_id = {one.ledger_id: one for one in every.candidates}
    problems += [
        f"ledger {one.ledger_id}: {one} by itself, {by_id.get(one.ledger_id)} listed"
        for one in some.candidates
        if one != by_id.get(one.ledger_id)
    ]
    problems += _figures(chosen, [*every.candidates])
    return ScrubsCompared(tuple(problems), told)


def _figures(chosen: NominatedCopies, copies: list[Candidate]) -> Iterator[str]:
    figures = chosen.figures
    counts = {
        "copies": (figures.copies, len(copies)),
        "never_deep": (figures.never_deep, sum(one.deep_at is None for one in copies)),
    }
    for what, (by_rows, listed) in counts.items():
        if by_rows != listed:
            yield f"{what}: {by_rows} by rows, {listed} listed"
    broken = sum(one.failing for one in copies)
    ever = sum(one.failed_at is not None for one in copies)
    if not broken <= figures.broken <= ever:  # read well soon afterwards it still counts
        yield f"broken: {figures.broken} by rows, {broken} to {ever} listed"


class _DueNow:
    """Looks that came due a moment ago: by another clock they will in a moment."""

    def __init__(self, stack: Stack, now: datetime, *, deep: bool) -> None:
        self._now, self._intervals = now, intervals_of(stack, deep=deep)

    def __contains__(self, look: DueLook) -> bool:
        last = look.candidate.last(look.depth)
        if last is None:
            return False
        overdue = (self._now - last).total_seconds() - self._intervals.of(look.depth)
        return 0 <= overdue <= _APART_S


def _differences(
    of_all: ScrubPlan, of_rows: ScrubPlan, told: Counter[str], due_now: _DueNow
) -> Iterator[str]:
    if of_all.heal != of_rows.heal:
        yield f"heal: {of_all.heal} listed, {of_rows.heal} by rows"
    listed, by_rows = ([*map(_look, plan.looks)] for plan in (of_all, of_rows))
    if listed == by_rows:
        return
    missing = [one for one in of_all.looks if _look(one) not in by_rows]
    instead = [one for one in of_rows.looks if _look(one) not in listed]
    for one in missing:
        why = "due now" if one in due_now else "as old"
        if why == "as old" and not any(_as_old(one, other) for other in instead):
            yield f"{one} is not nominated; {instead} are, of {by_rows}"
        told[why] += 1
    if len(instead) > len(missing) or [one for one in listed if one in by_rows] != [
        one for one in by_rows if one in listed
    ]:
        yield f"order: {listed} listed, {by_rows} by rows"


def _as_old(one: DueLook, other: DueLook) -> bool:
    """Rows have times of other clocks than the store's: which of two is first may differ."""
    first, then = (look.candidate.last(look.depth) for look in (one, other))
    if first is None or then is None:
        return first is then
    return abs((first - then).total_seconds()) <= _APART_S


def _look(look: DueLook) -> Look:
    return look.candidate.ledger_id, look.candidate.uid, look.depth


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    bad, told = 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.first, given.first + given.seeds):
            found = compared(seed, Path(folder, str(seed)))
            told += found.told
            bad += bool(found.problems)
            for problem in found.problems:
                sys.stdout.write(f"seed {seed}: {problem}\n")
    sys.stdout.write(f"{dict(told)}\n{given.seeds} fleets, {bad} differ\n")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
