"""Records of ledgers that are gone, objects and all: plan, then delete the records.

The order is the contract: bucket listed, records listed, metadata read, decided, the plan recorded
as the intent; later, with a person's approval, all of that again, then the records of each ledger
are deleted, its attempts last: they are where the next run begins again. What stays is the plan, by
which an audit knows what it need not miss, and the topic's publications, which name several ledgers
and tell when metadata went back in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from tiering_assets.clean.gone import Whereabouts
from tiering_assets.clean.sweep import refuse_mass_delete, refuse_old_metadata
from tiering_assets.ground.evidence import Dated, Effect
from tiering_assets.ground.stack import Stack, require_fresh
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.look.topic.bucket_listing import BucketListing, list_bucket
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.records.stored import Stored
from tiering_assets.records.sweep_models import ForgetPlan, PlannedForget, Swept
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.deletion import delete_object
from tiering_assets.retention.approved_plan import (
    RecordedPlan,
    approved_plan,
    carry_out,
    keep_others,
    record_plan,
)
from tiering_assets.retention.forget_rules import RecordsEvidence, why_records_stay

LEDGERS_MAX = 10_000  # of one plan, so that it stays a record
# Attempts come last. Plans, publications, lifts and what is counted by the hour are no one
# ledger's.
_BY_ATTEMPT = (
    "scrubs",
    "damage",
    "broker-copies",
    "releases",
    "certificates",
    "quarantines",
    "sweep-intents",
    "leftovers",
    "sweeps",
    "removals",
    "outcomes",
    "attempts",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneLedger:
    """A ledger that its topic no longer lists. `why_kept` is empty where its records may go.

    `deleted` counts the records that went; None where nothing was tried.
    """

    ledger_id: int
    ml_name: str
    uids: tuple[UUID, ...]
    records: tuple[str, ...]
    why_kept: str
    deleted: int | None = None
    error: str = ""

    def kept(self, why: str) -> GoneLedger:
        return replace(self, why_kept=why)

    def failed(self, error: str) -> GoneLedger:
        return replace(self, error=error)


def find_gone(stack: Stack) -> list[GoneLedger]:
    """Ledgers that have records and that their topics do not list, by id. Writes nothing.

    Raises:
        RefusedError: metadata went backwards.
    """
    return _find_gone(stack, _ForgetLook(stack, list_bucket(stack), None), None)


def _find_gone(
    stack: Stack, look: _ForgetLook, plan: Stored[ForgetPlan] | None
) -> list[GoneLedger]:
    """With a `plan` those that it names, and none that is younger than it may be."""
    named = None if plan is None else {one.ledger_id for one in plan.record.ledgers}
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    kept: set[int] = set()

    def tell(key: str, error: FormatError) -> None:
        stack.narrate(f"{key}: the records of its ledger stay: {error}")
        kept.add(keys.pair_of(key)[0])

    for stored in stack.book.iter_readable(Attempt, "attempts/", tell):
        attempts[stored.record.ledger.ledger_id].append(stored.record)
    doubtful = refuse_old_metadata(stack)
    found = []
    for ledger_id, made in sorted(attempts.items()):
        if ledger_id in kept or {keys.topic_hash(one.ml_name) for one in made} & doubtful:
            continue
        if named is None or ledger_id in named:
            one = look.at(ledger_id, made)
            if one is not None:
                found.append(one)
    return found


def plan_forget(stack: Stack) -> tuple[RecordedPlan[ForgetPlan] | None, list[GoneLedger]]:
    """Record whose records may go as a plan to be approved; None when none may. Deletes nothing.

    Raises:
        RefusedError: metadata went backwards, or too much of the fleet would go.
    """
    found = find_gone(stack)
    going = [one for one in found if not one.why_kept][:LEDGERS_MAX]
    attempts = sum(len(one.uids) for one in going)

    def make(fleet: int) -> ForgetPlan:
        return ForgetPlan(
            instance=stack.instance,
            bucket=stack.settings.store.bucket,
            planned_at=stack.now(),
            ledgers=tuple(
                PlannedForget(ledger_id=one.ledger_id, ml_name=one.ml_name, uids=one.uids)
                for one in going
            ),
            fleet=fleet,
            writer=stack.writer,
        )

    return record_plan(stack, attempts, make, keys.forget_plan), found


def preview_forget(stack: Stack, digest: str) -> list[GoneLedger]:
    """What carrying the plan out would take now. Errors as in `execute_forget`."""
    plan = _approved(stack, digest)
    return _find_gone(stack, _ForgetLook(stack, list_bucket(stack), plan.stored_at), plan)


def execute_forget(
    stack: Stack, digest: str, only: Collection[int] | None = None
) -> list[GoneLedger]:
    """Delete the records of what the plan lists and what may still go; the rest says why it stays.

    Of what it lists no more than `only`, where a person said yes to exactly these.

    Raises:
        ObjectNotFoundError: there is no such plan.
        RefusedError: the plan as a whole may not be carried out; nothing was deleted.
    """
    plan = _approved(stack, digest)
    look = _ForgetLook(stack, list_bucket(stack), plan.stored_at)
    found = keep_others(_find_gone(stack, look, plan), only, lambda one: one.ledger_id)
    going = sum(len(one.uids) for one in found if not one.why_kept)
    refuse_mass_delete(stack, going, fleet=plan.record.fleet)
    planned = {one.ledger_id: frozenset(one.uids) for one in plan.record.ledgers}
    return carry_out(
        stack,
        found,
        lambda seen: _again(stack, look, seen),
        lambda one: _delete(stack, look, one, planned[one.ledger_id]),
    )


def _approved(stack: Stack, digest: str) -> Stored[ForgetPlan]:
    made_by = "tierkeeper gone-record delete --plan"
    return approved_plan(stack, ForgetPlan, keys.forget_plan(digest), made_by=made_by)


def _again(stack: Stack, look: _ForgetLook, seen: GoneLedger) -> GoneLedger | None:
    """What keeps its records now; where another run took its attempts, the rest follows them."""
    look.renew()
    attempts = [stored.record for stored in attempts_of(stack, seen.ledger_id)]
    return look.at(seen.ledger_id, attempts, now=True) if attempts else seen


def _delete(
    stack: Stack, look: _ForgetLook, one: GoneLedger, planned: frozenset[UUID]
) -> GoneLedger:
    what = f"ledger {one.ledger_id}"
    allowed = partial(require_fresh, stack, Effect.FORGET, look.evidence, what=what)
    strangers = set(one.uids) - planned
    if strangers:
        return one.kept(f"attempt {min(strangers)} is not in the plan")
    stack.book.take_away(one.records)
    for key in one.records:
        delete_object(stack.objects, stack.book.prefix + key, allowed=allowed)
    stack.tell(f"ledger {one.ledger_id}: its {len(one.records)} records are deleted", one.ledger_id)
    return replace(one, deleted=len(one.records))


class _ForgetLook:
    """All records by ledger, from listings, and where each ledger still may be."""

    def __init__(self, stack: Stack, listing: BucketListing, planned_at: datetime | None) -> None:
        self._stack, self._listing, self._planned_at = stack, listing, planned_at
        self._records: dict[int, list[tuple[str, datetime]]] = defaultdict(list)
        for ledger_id, key, stored_at in _list_records(stack):
            self._records[ledger_id].append((key, stored_at))
        self._locked = _bytes_locked(stack)
        self._where = Whereabouts(stack)

    @property
    def evidence(self) -> Dated:
        return self._where.evidence

    def renew(self) -> None:
        self._where.renew()

    def at(
        self, ledger_id: int, attempts: list[Attempt], *, now: bool = False
    ) -> GoneLedger | None:
        """None where a topic of one of its attempts lists it; `now` asks for its objects anew."""
        where, records = self._where, self._records[ledger_id]
        pairs = [(ledger_id, one.uid) for one in attempts]
        kept = []
        for ml_name in dict.fromkeys(one.ml_name for one in attempts):
            topic = where.own_topic(ml_name)
            if ledger_id in topic.listed:
                return None
            evidence = RecordsEvidence(
                gone=where.judged(ledger_id, ml_name, topic, planned_at=self._planned_at),
                objects=self._objects_now(attempts)
                if now
                else sum(len(self._listing.keys_of(pair)) for pair in pairs),
                uploads=sum(len(self._listing.uploads_of(pair)) for pair in pairs),
                bytes_locked=self._locked.get(ledger_id, 0),
                newest_record_at=max((stored_at for _key, stored_at in records), default=None),
            )
            allowed = timedelta(seconds=self._stack.settings.release.records_kept_s)
            kept.append(why_records_stay(evidence, kept=allowed))
        return GoneLedger(
            ledger_id=ledger_id,
            ml_name=attempts[0].ml_name,
            uids=tuple(one.uid for one in attempts),
            records=tuple(key for key, _stored_at in records),
            why_kept=next((why for why in kept if why is not None), ""),
        )

    def _objects_now(self, attempts: list[Attempt]) -> int:
        keys_of_all = [key for one in attempts for key in (one.data_key, one.index_key)]
        return sum(self._stack.objects.head(key) is not None for key in keys_of_all)


def _list_records(stack: Stack) -> Iterator[tuple[int, str, datetime]]:
    """(ledger id, key, when stored) of claim, failure and every attempt's records, attempts
    last.
    """
    for folder in ("claims", "failures", *_BY_ATTEMPT):
        for key, summary in stack.book.listed(f"{folder}/"):
            yield int(key.split("/")[1].removesuffix(".json")), key, summary.last_modified


def _bytes_locked(stack: Stack) -> Mapping[int, int]:
    found: dict[int, int] = defaultdict(int)

    def tell(key: str, _error: FormatError) -> None:
        found[keys.pair_of(key)[0]] += 1  # at least; so its records stay

    for stored in stack.book.iter_readable(Swept, "sweeps/", tell):
        found[stored.record.ledger_id] += stored.record.bytes_stay or 0
    return found
