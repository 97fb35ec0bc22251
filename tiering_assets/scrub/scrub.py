"""Look again at what brokers read from the bucket, and heal what is broken. docs/runbook.md.

Owns: looking changes nothing but our own records, and raises no alarm while writers run: a finding
counts only if a second look finds something wrong, too, and the topic's node, read again after it,
still names the attempt (an attempt that was abandoned or replaced meanwhile is no finding). A
finding quarantines the attempt; while bookies have the ledger it is healed, and where they do not,
the lost entries are named one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from tiering_assets.clean.removals import Removals, observe_removals
from tiering_assets.ground.effects import reach
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.models import EntryRange, Scrub
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import ObjectConflictError, ObjectExistsError, TierkeeperError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.scrub.broker_copy import record_copy
from tiering_assets.scrub.check import Checked, check_copy
from tiering_assets.scrub.fleet import Fleet, Nominated, find_fleet, find_nominated
from tiering_assets.scrub.heal import HealResult, finish_replacement, heal_topic
from tiering_assets.scrub.plan import (
    Candidate,
    Depth,
    DueLook,
    Intervals,
    RunBudget,
    ScrubPlan,
    due_looks,
    plan_scrub,
    to_heal,
)
from tiering_assets.verify.damage import Broken, damage_is_over, record_damage
from tiering_assets.verify.entry_loss import lost_entries

_LOT = 200  # looks that a page of the day book names


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What one look came to. Exactly one of: error, moved on, findings, or all is well.

    `moved` says that the topic's node no longer names the attempt. `lost` is empty while bookies
    have the ledger. `whole` is False where a budget ended it; the next run goes on from there.
    """

    candidate: Candidate
    depth: Depth
    checked: Checked | None = None
    moved: bool = False
    in_bookkeeper: bool = True
    lost: tuple[EntryRange, ...] = ()
    error: TierkeeperError | None = None

    @property
    def findings(self) -> tuple[str, ...]:
        return () if self.checked is None or self.moved else self.checked.findings

    @property
    def whole(self) -> bool:
        return self.checked is None or self.checked.whole


@dataclass(slots=True, kw_only=True)
class ScrubRun:
    """Everything one run did. `deferred` looks were due and found no budget left.

    `fleet` is what it found before it did anything. `needless` are nominated ledgers of which
    nothing was due: if these are most, all copies were `listed` after all. `removals` are the
    ledgers that a run over all topics saw to be gone from them.
    """

    fleet: Fleet
    needless: frozenset[int] = frozenset()
    listed: bool = True
    looked: list[Looked] = field(default_factory=list)
    healed: dict[int, HealResult] = field(default_factory=dict)
    deferred: list[DueLook] = field(default_factory=list)
    requests: int = 0
    bytes_read: int = 0
    removals: Removals = field(default_factory=Removals)

    @property
    def broken(self) -> list[Looked]:
        return [one for one in self.looked if one.findings]


def plan_run(
    stack: Stack,
    ml_names: Iterable[str] | None = None,
    only: Collection[int] | None = None,
    *,
    deep: bool = False,
) -> ScrubPlan:
    """What a run would do now, by estimates. Reads listings alone."""
    fleet = find_fleet(stack, ml_names, only)
    return plan_scrub(
        fleet.candidates,
        now=fleet.store_now,
        intervals=intervals_of(stack, deep=deep),
        budget=budget_of(stack),
    )


def scrub(
    stack: Stack,
    ml_names: Iterable[str] | None = None,
    only: Collection[int] | None = None,
    *,
    deep: bool = False,
    heal: bool = True,
    nominated: Nominated | None = None,
) -> ScrubRun:
    """Look at what is due of the given managed ledgers, of all without, as far as the budgets go.

    With `deep` every byte is due. Without `heal` nothing but our own records is written. One
    ledger's trouble is its own: its error is in its result. What is `nominated` of all topics is
    judged in their place, by the same rules.
    """
    intervals, fleet, needless = intervals_of(stack, deep=deep), None, frozenset[int]()
    if nominated is not None:
        fleet = find_nominated(stack, nominated)
        needless = _needless(nominated, fleet, intervals)
        if 2 * len(needless) > sum(map(len, nominated.values())):
            stack.narrate(f"{len(needless)} nominated copies are not due: all copies are listed")
            fleet = None
    listed = fleet is None
    if fleet is None:
        fleet = find_fleet(stack, ml_names, only)
    run = ScrubRun(
        fleet=fleet,
        needless=needless,
        listed=listed,
        removals=observe_removals(stack) if ml_names is None else Removals(),
    )
    pending = {c.ledger_id: c for c in to_heal(fleet.candidates)}
    if heal:
        _finish_replacements(stack, fleet, run)
        _heal_pending(stack, pending, run)
        skipped = {c.ledger_id for c in to_heal(fleet.candidates)}
    else:
        skipped = set()
    budget = budget_of(stack)
    due = due_looks(fleet.candidates, now=fleet.store_now, intervals=intervals)
    for look in _taken_up(stack, due):
        if look.candidate.ledger_id in skipped:
            continue  # just healed, or found broken a moment ago
        if heal and look.depth is Depth.DEEP:  # reading takes long, and a broker's lag runs
            _heal_pending(stack, pending, run)
        admitted = budget.admit(look)
        if admitted is None:
            run.deferred.append(look)
            continue
        found = _look(stack, admitted)
        run.looked.append(found)
        if found.checked is not None:
            budget = budget.spend(
                requests=found.checked.requests, bytes_read=found.checked.bytes_read
            )
            run.requests += found.checked.requests
            run.bytes_read += found.checked.bytes_read
        if found.findings:
            skipped.add(look.candidate.ledger_id)
            if found.in_bookkeeper:
                pending[look.candidate.ledger_id] = look.candidate
    if heal:
        _heal_pending(stack, pending, run)
    return run


def _needless(nominated: Nominated, fleet: Fleet, intervals: Intervals) -> frozenset[int]:
    """Ledgers of which nothing is due. Of what was broken or healed somebody always has to know."""
    said = {ledger_id for some in nominated.values() for ledger_id in some}
    due = due_looks(fleet.candidates, now=fleet.store_now, intervals=intervals)
    broken = {one.ledger_id for one in fleet.candidates if one.failed_at is not None}
    return frozenset(said - broken - {*fleet.replaced} - {one.candidate.ledger_id for one in due})


def _taken_up(stack: Stack, due: Iterable[DueLook]) -> Iterator[DueLook]:
    """The same, named in the day book so many at a time: the budget may end with the first."""
    looks = iter(due)
    while lot := [*islice(looks, _LOT)]:
        stack.book.take_up(look.candidate.ledger_id for look in lot)
        yield from lot


def budget_of(stack: Stack) -> RunBudget:
    """Of a whole run, as set."""
    settings = stack.settings
    return RunBudget(
        requests=settings.scrub.requests_max,
        bytes=settings.scrub.bytes_max,
        range_bytes=settings.offload.read_range_bytes,
    )


def intervals_of(stack: Stack, *, deep: bool) -> Intervals:
    """As set; with `deep` every byte is due."""
    settings = stack.settings.scrub
    return Intervals(settings.shallow_every_s, 0.0 if deep else settings.deep_every_s)


def _finish_replacements(stack: Stack, fleet: Fleet, run: ScrubRun) -> None:
    for candidate in fleet.candidates:
        broken = fleet.replaced.get(candidate.ledger_id)
        if broken is None:
            continue
        try:
            done = finish_replacement(
                stack, candidate.ml_name, candidate.ledger_id, candidate.uid, broken
            )
        except TierkeeperError as error:
            done = error
        if done is not None:
            run.healed[candidate.ledger_id] = done


def _heal_pending(stack: Stack, pending: dict[int, Candidate], run: ScrubRun) -> None:
    topics: dict[str, dict[int, UUID]] = {}
    for candidate in pending.values():
        topics.setdefault(candidate.ml_name, {})[candidate.ledger_id] = candidate.uid
    pending.clear()
    for ml_name, broken in topics.items():
        run.healed.update(heal_topic(stack, ml_name, broken))


def _look(stack: Stack, look: DueLook) -> Looked:
    candidate = look.candidate
    try:
        return _look_or_raise(stack, look)
    except TierkeeperError as error:
        return Looked(candidate=candidate, depth=look.depth, error=error)


def _look_or_raise(stack: Stack, look: DueLook) -> Looked:
    candidate = look.candidate
    listed = _named(stack, candidate)
    if listed is None:
        return Looked(candidate=candidate, depth=look.depth, moved=True)
    node = stack.ledgers.read(candidate.ledger_id)
    begun = _begun(stack, candidate) if look.depth is Depth.DEEP else None
    checked = check_copy(stack, look, listed, node, begun)
    if checked.findings:  # the bits may have flipped on the way here, and a finding costs a copy
        checked = check_copy(stack, look, listed, node, begun).after(checked)
    lost: tuple[EntryRange, ...] = ()
    if checked.findings:
        if _named(stack, candidate) is None:
            return Looked(candidate=candidate, depth=look.depth, checked=checked, moved=True)
        node = stack.ledgers.read(candidate.ledger_id)
        if node is None:
            last = _last_entry_id(checked, listed)
            lost = lost_entries(stack, checked.sight, last_entry_id=last) if last >= 0 else ()
        _record_damage(stack, checked)
    elif look.depth is Depth.DEEP and checked.whole and candidate.failing:
        damage_is_over(stack, candidate.ledger_id, candidate.uid)
    record_copy(stack, checked)
    _record(stack, checked, lost)
    for finding in checked.findings:
        stack.tell(
            f"ledger {candidate.ledger_id}, attempt {candidate.uid}: {finding}",
            candidate.ledger_id,
            attempt=candidate.uid,
        )
    return Looked(
        candidate=candidate,
        depth=look.depth,
        checked=checked,
        in_bookkeeper=node is not None,
        lost=lost,
    )


def _named(stack: Stack, candidate: Candidate) -> LedgerInfo | None:
    """What the topic's node says of the ledger now, if it still names this very attempt."""
    found = stack.topics.read(candidate.ml_name)
    listed = None if found is None else found[0].ledger(candidate.ledger_id)
    if listed is None or listed.offload is None or not listed.offload.complete:
        return None
    return listed if listed.offload.uid == candidate.uid else None


def _begun(stack: Stack, candidate: Candidate) -> Scrub | None:
    """A deep look that a budget ended, unless a whole one came after it."""
    found = stack.book.read(Scrub, keys.scrub(candidate.ledger_id, candidate.uid, "partial"))
    if found is None or (candidate.deep_at is not None and found.stored_at <= candidate.deep_at):
        return None
    return found.record


def _last_entry_id(checked: Checked, listed: LedgerInfo) -> int:
    sight = checked.sight
    if sight is not None and sight.certificate is not None:
        return sight.certificate.record.ledger.last_entry_id
    if sight is not None and sight.metadata is not None:
        return sight.metadata.last_entry_id
    return (listed.entries or 0) - 1


def _record_damage(stack: Stack, checked: Checked) -> None:
    candidate = checked.look.candidate
    broken = Broken(
        ledger_id=candidate.ledger_id,
        uid=candidate.uid,
        ml_name=candidate.ml_name,
        findings=checked.findings,
        found_by="scrub",
    )
    record_damage(stack, broken)
    reach(
        "scrub.quarantined",
        candidate.ledger_id,
        topic=candidate.ml_name,
        attempt=candidate.uid,
    )


def _record(stack: Stack, checked: Checked, lost: tuple[EntryRange, ...]) -> None:
    candidate, sight = checked.look.candidate, checked.sight
    data = None if sight is None else sight.data
    certificate = None if sight is None else sight.certificate
    what = "failed" if checked.findings else checked.look.depth.value
    if not checked.whole:
        what = "partial"
    record = Scrub(
        ledger_id=candidate.ledger_id,
        uid=candidate.uid,
        ml_name=candidate.ml_name,
        depth="deep" if checked.look.depth is Depth.DEEP else "shallow",
        data_bytes=0 if data is None else data.size,
        data_etag=None if data is None else data.etag,
        data_version_id=None if data is None else data.version_id,
        blocks=checked.blocks,
        blocks_read=checked.blocks_read,
        entries=checked.entries,
        payload_bytes=checked.payload_bytes,
        scrubbed_at=stack.now(),
        seconds=round(checked.seconds, 3),
        writer=stack.writer,
        findings=checked.findings,
        lost=lost,
        previous=None if certificate is None else certificate.sha256,
    )
    key = keys.scrub(candidate.ledger_id, candidate.uid, what)
    found: Stored[Scrub] | None = stack.book.read(Scrub, key)
    try:
        if found is None:
            stack.book.create(key, record)
        else:
            stack.book.replace(found, record)
    except (ObjectExistsError, ObjectConflictError):
        return  # another run looked at the same time; its record is as good
    reach("scrub.recorded", candidate.ledger_id, topic=candidate.ml_name, attempt=candidate.uid)
