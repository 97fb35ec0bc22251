"""Published copies whose ledgers retention or a topic's deletion took: plan, then delete the
objects.

The order is the contract: bucket listed, metadata read, decided, the plan recorded as the intent;
later, with a person's approval, all of that again from scratch, right before each delete, then the
planned versions of the objects are deleted and the record `swept` is written. Versions that the
store would not delete are tried again in the same way, by a plan that names them. Brokers delete
such objects themselves; these are those that they left. Records stay: they are how people see what
happened, and follow later (forget.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from tiering_assets.clean.deleting import Going, delete_leavings, record_swept
from tiering_assets.clean.expired_rules import Expired, ExpiredEvidence, decide_expired
from tiering_assets.clean.gone import Whereabouts
from tiering_assets.clean.gone_rules import Fate
from tiering_assets.clean.removals import observe_removals
from tiering_assets.clean.sweep import (
    readable_attempts,
    refuse_mass_delete,
    refuse_old_metadata,
)
from tiering_assets.ground.evidence import Dated, Effect
from tiering_assets.ground.reasons import NotNow, not_now
from tiering_assets.ground.record_book import narrate_unreadable
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.bucket_listing import BucketListing, Pair, list_bucket
from tiering_assets.look.topic.publications import recorded_publications
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Outcome, ReleaseIntent
from tiering_assets.records.stored import Stored
from tiering_assets.records.sweep_models import ExpiredPlan, NamedVersion, PlannedExpiry, Swept
from tiering_assets.resources.errors import FormatError
from tiering_assets.retention.approved_plan import (
    RecordedPlan,
    approved_plan,
    carry_out,
    keep_others,
    record_plan,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredCopy:
    """A published attempt that its topic no longer lists, and the decision about it.

    `objects` are its keys in the bucket, and those that only hidden versions are left of.
    """

    attempt: Stored[Attempt]
    outcome: Stored[Outcome]
    objects: tuple[str, ...]
    bytes: int
    only_copy: bool
    decision: Expired | NotNow[str]
    done: Swept | None = None
    error: str = ""

    @property
    def pair(self) -> Pair:
        return self.attempt.record.ledger.ledger_id, self.attempt.record.uid

    @property
    def fate(self) -> Fate | None:
        return self.decision.fate if isinstance(self.decision, Expired) else None

    @property
    def why_kept(self) -> str:
        return "" if isinstance(self.decision, Expired) else str(self.decision)

    def kept(self, why: str) -> ExpiredCopy:
        return replace(self, decision=not_now(why))

    def failed(self, error: str) -> ExpiredCopy:
        return replace(self, error=error)


def find_expired(
    stack: Stack, listing: BucketListing | None = None, *, plan: Stored[ExpiredPlan] | None = None
) -> list[ExpiredCopy]:
    """Copies in the bucket whose topic does not list their ledger. Writes nothing.

    With a `plan` those that it names, and none that is younger than it may be.

    Raises:
        RefusedError: metadata went backwards.
    """
    listing = listing or list_bucket(stack)
    attempts = list(readable_attempts(stack))
    doubtful = refuse_old_metadata(stack)
    look = _ExpiredLook(stack, plan)
    named = None if plan is None else {(one.ledger_id, one.uid) for one in plan.record.copies}
    hidden = _hidden(stack)
    found = []
    for attempt in attempts:
        pair = attempt.record.ledger.ledger_id, attempt.record.uid
        objects = tuple(sorted({*listing.keys_of(pair), *hidden.get(pair, ())}))
        if not objects or (named is not None and pair not in named):
            continue
        if keys.topic_hash(attempt.record.ml_name) in doubtful:
            continue
        try:
            copy = look.at(attempt, objects, listing.bytes_of(pair))
        except FormatError as error:
            stack.tell(f"ledger {pair[0]}: its copy stays: {error}", pair[0])
            continue
        if copy is not None:
            found.append(copy)
    return found


def _hidden(stack: Stack) -> Mapping[Pair, tuple[str, ...]]:
    """Keys of swept attempts of which locked versions are left, behind a marker."""
    return {
        (one.record.ledger_id, one.record.uid): one.record.objects
        for one in stack.book.iter_readable(Swept, "sweeps/", narrate_unreadable(stack))
        if one.record.bytes_stay
    }


def plan_expired(stack: Stack) -> tuple[RecordedPlan[ExpiredPlan] | None, list[ExpiredCopy]]:
    """Record what may go as a plan to be approved; None when nothing may. Deletes nothing.

    Raises:
        RefusedError: metadata went backwards, or too much of the fleet would go.
    """
    found = find_expired(stack)
    going = [one for one in found if isinstance(one.decision, Expired)]

    def make(fleet: int) -> ExpiredPlan:
        return ExpiredPlan(
            instance=stack.instance,
            bucket=stack.settings.store.bucket,
            planned_at=stack.now(),
            copies=tuple(_planned(stack, one) for one in going),
            fleet=fleet,
            writer=stack.writer,
        )

    return record_plan(stack, len(going), make, keys.expired_plan), found


def preview_expired(stack: Stack, digest: str) -> list[ExpiredCopy]:
    """What carrying the plan out would take now. Errors as in `execute_expired`."""
    return find_expired(stack, plan=_approved(stack, digest))


def execute_expired(
    stack: Stack, digest: str, only: Collection[Pair] | None = None
) -> list[ExpiredCopy]:
    """Delete what the plan lists and what may still go; the rest says why it stays.

    Of what it lists no more than `only`, where a person said yes to exactly these.

    Safe to run again: what an earlier run deleted without saying so is recorded.

    Raises:
        ObjectNotFoundError: there is no such plan.
        RefusedError: the plan as a whole may not be carried out; nothing was deleted.
    """
    plan = _approved(stack, digest)
    listing = list_bucket(stack)
    found = keep_others(find_expired(stack, listing, plan=plan), only, lambda one: one.pair)
    going = sum(isinstance(one.decision, Expired) for one in found)
    refuse_mass_delete(stack, going, fleet=len(stack.book.pairs("attempts/")))
    observe_removals(stack, [one.pair for one in found])
    _finish(stack, plan.record, listing)
    look = _ExpiredLook(stack, plan)
    planned = {(one.ledger_id, one.uid): one for one in plan.record.copies}
    stack.book.take_up(one.pair[0] for one in found if not one.why_kept)
    return carry_out(
        stack,
        found,
        lambda seen: _again(look, seen),
        lambda copy: _delete(stack, look, copy, planned[copy.pair]),
    )


def _approved(stack: Stack, digest: str) -> Stored[ExpiredPlan]:
    made_by = "tierkeeper expired-copy delete --plan"
    return approved_plan(stack, ExpiredPlan, keys.expired_plan(digest), made_by=made_by)


def _finish(stack: Stack, plan: ExpiredPlan, listing: BucketListing) -> None:
    """Write what a run that died after its deletes had no time to write."""
    swept = stack.book.pairs("sweeps/")
    for one in plan.copies:
        pair = one.ledger_id, one.uid
        if pair in swept or listing.keys_of(pair):
            continue
        outcome = stack.book.require(Outcome, keys.outcome(*pair))
        going = Going(
            ledger_id=one.ledger_id,
            uid=one.uid,
            ml_name=one.ml_name,
            objects=(),
            uploads=(),
            intent=outcome.sha256,
            effect=Effect.EXPIRE,
            evidence=Dated(),
        )
        record_swept(stack, going, bytes_freed=None, bytes_stay=None)


def _again(look: _ExpiredLook, seen: ExpiredCopy) -> ExpiredCopy | None:
    """The decision as it is now."""
    look.renew()
    try:
        return look.at(seen.attempt, seen.objects, seen.bytes)
    except FormatError as error:
        return seen.kept(f"cannot be judged: {error}")


def _delete(
    stack: Stack, look: _ExpiredLook, copy: ExpiredCopy, planned: PlannedExpiry
) -> ExpiredCopy:
    if not planned.versions:
        return copy.kept("the plan names no versions: make a new one")
    going = Going(
        ledger_id=planned.ledger_id,
        uid=planned.uid,
        ml_name=planned.ml_name,
        objects=planned.objects,
        uploads=(),
        intent=copy.outcome.sha256,
        effect=Effect.EXPIRE,
        evidence=look.evidence,
        versions=planned.versions,
    )
    done = delete_leavings(stack, going)
    stack.tell(
        f"ledger {going.ledger_id}: deleted the copy of a ledger that is gone", going.ledger_id
    )
    return replace(copy, done=done)


def _planned(stack: Stack, copy: ExpiredCopy) -> PlannedExpiry:
    record = copy.attempt.record
    versions = tuple(
        NamedVersion(key, version.version_id or "null")
        for key in copy.objects
        for version in stack.objects.list_versions(key)
        if not version.is_marker
    )
    return PlannedExpiry(
        ledger_id=record.ledger.ledger_id,
        uid=record.uid,
        ml_name=record.ml_name,
        fate="" if copy.fate is None else copy.fate.value,
        bytes=copy.bytes,
        objects=copy.objects,
        only_copy=copy.only_copy,
        versions=versions,
    )


class _ExpiredLook:
    """Each attempt's ledger where it may still be; the publications of each topic once."""

    def __init__(self, stack: Stack, plan: Stored[ExpiredPlan] | None) -> None:
        self._stack = stack
        self._planned_at = None if plan is None else plan.stored_at
        self._where = Whereabouts(stack)
        self._czxids: dict[str, Mapping[Pair, int]] = {}

    @property
    def evidence(self) -> Dated:
        return self._where.evidence

    def renew(self) -> None:
        self._where.renew()

    def at(
        self, attempt: Stored[Attempt], objects: tuple[str, ...], size: int
    ) -> ExpiredCopy | None:
        """None for an attempt that is not published, or whose topic lists its ledger."""
        record, stack, where = attempt.record, self._stack, self._where
        ledger_id, uid, ml_name = record.ledger.ledger_id, record.uid, record.ml_name
        topic = where.own_topic(ml_name)
        outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
        if ledger_id in topic.listed or outcome is None or outcome.record.outcome != "publish":
            return None
        intent = stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, uid))
        published = self._published_in(ml_name).get((ledger_id, uid))
        evidence = ExpiredEvidence(
            gone=where.judged(ledger_id, ml_name, topic, planned_at=self._planned_at),
            uid=uid,
            outcome=outcome.record.outcome,
            published_czxid=published,
            attempt_stored_at=attempt.stored_at,
        )
        return ExpiredCopy(
            attempt=attempt,
            outcome=outcome,
            objects=objects,
            bytes=size,
            only_copy=intent is not None,
            decision=decide_expired(
                evidence,
                guard_age=timedelta(seconds=stack.settings.release.guard_age_s),
            ),
        )

    def _published_in(self, ml_name: str) -> Mapping[Pair, int]:
        if ml_name not in self._czxids:
            publications = recorded_publications(self._stack, ml_name)
            self._czxids[ml_name] = {
                pair: newest.record.node_czxid
                for pair in publications.pairs
                if (newest := publications.newest(*pair)) is not None
            }
        return self._czxids[ml_name]
