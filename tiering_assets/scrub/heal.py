"""Put sound copies in the place of broken ones while the bookies still have the ledgers.

Owns: a broken context is overwritten only by a certified attempt, in one compare-and-set that names
exactly the broken uid, followed by one unload and a rehearsal for all ledgers of a topic. The new
copy keeps the old one's offsets wherever those are known. The old objects stay where they are: a
sweep takes them, ours and a broker's, an hour after the confirmed reload at the earliest. Safe to
run again after a crash anywhere: what is certified is not copied again, what is written is
confirmed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from tiering_assets.change.change_topic import change_topic
from tiering_assets.change.publish import Published, ToPublish
from tiering_assets.copy.ask_first import require_proven
from tiering_assets.copy.offload import CopiedAttempt, copy_ledgers
from tiering_assets.copy.old_layout import find_old_layout
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.claims import claim_ledger, drop_claim
from tiering_assets.look.ledger.plan import LedgerPlan, plan_ledger
from tiering_assets.look.ledger.resume import Complete, Work, find_resumable
from tiering_assets.look.ledger.verification import object_differences
from tiering_assets.look.topic.publications import recorded_publications
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import LedgerNotFoundError, TierkeeperError
from tiering_assets.verify.verify import ToVerify, verify_attempts

OFFSETS_MOVED = (
    "the offsets of its entries could not be kept. The topic was reloaded, but a broker "
    "that read the old object remembers its offsets for half an hour; restart the "
    "brokers if reads fail"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Healed:
    """Readers get the ledger from attempt `uid` now. `note` is empty if all offsets were kept."""

    uid: UUID
    publication_key: str
    note: str = ""


HealResult = Healed | Wait | TierkeeperError


def heal_topic(stack: Stack, ml_name: str, broken: Mapping[int, UUID]) -> dict[int, HealResult]:
    """Copy, verify and publish anew, by ledger and broken attempt; one result each."""
    try:
        require_proven(stack)
    except TierkeeperError as error:
        return dict.fromkeys(broken, error)
    results: dict[int, HealResult] = {}
    claimed: list[int] = []
    try:
        for ledger_id in sorted(broken):
            try:
                other = claim_ledger(stack, ledger_id)
            except TierkeeperError as error:
                results[ledger_id] = error
                continue
            if other is None:
                claimed.append(ledger_id)
            else:
                said = f"run {other.run_id} works on it until {other.expires_at}"
                results[ledger_id] = Wait(Reason.CLAIMED, said)
        results.update(_heal(stack, ml_name, {i: broken[i] for i in claimed}))
    finally:
        for ledger_id in claimed:
            try:
                drop_claim(stack, ledger_id)
            except TierkeeperError as error:
                stack.tell(
                    f"ledger {ledger_id}: its claim stays until it runs out: {error}", ledger_id
                )
    return results


def finish_replacement(
    stack: Stack, ml_name: str, ledger_id: int, uid: UUID, broken: Sequence[UUID]
) -> HealResult | None:
    """Confirm a replacement whose run died before it was recorded; None where nothing is left.

    `broken` are the attempts in whose place it stands, one at least.
    """
    if _is_confirmed(stack, ml_name, ledger_id, uid):
        return None
    certificate = stack.book.read(Certificate, keys.certificate(ledger_id, uid))
    attempt = stack.book.read(Attempt, keys.attempt(ledger_id, uid))
    if certificate is None or attempt is None:
        return None
    czxid = attempt.record.ml_czxid
    certificates = {ledger_id: certificate}
    return _publish(stack, ml_name, certificates, {ledger_id: broken[-1]}, {}, czxid)[ledger_id]


def _is_confirmed(stack: Stack, ml_name: str, ledger_id: int, uid: UUID) -> bool:
    """Whether a record confirms the context that names this attempt now."""
    found = stack.topics.read(ml_name)
    listed = None if found is None else found[0].ledger(ledger_id)
    context = None if listed is None else listed.offload
    if context is None or context.uid != uid:
        return True  # it does not stand: there is nothing to confirm
    return recorded_publications(stack, ml_name).counted(ledger_id, context) is not None


@dataclass(frozen=True, slots=True)
class _Ready:
    plan: LedgerPlan
    note: str


def _heal(stack: Stack, ml_name: str, broken: Mapping[int, UUID]) -> dict[int, HealResult]:
    results: dict[int, HealResult] = {}
    certificates: dict[int, Stored[Certificate]] = {}
    ready: dict[int, _Ready] = {}
    to_copy: list[LedgerPlan] = []
    to_verify: list[ToVerify] = []
    for ledger_id, uid in broken.items():
        try:
            found = _plan(stack, ledger_id, uid)
            if isinstance(found, Wait):
                results[ledger_id] = found
                continue
            ready[ledger_id] = found
            again = _copy_of_before(stack, found.plan, uid)
            if again is None:
                to_copy.append(found.plan)
            elif isinstance(again, Complete):
                to_verify.append(ToVerify(plan=found.plan, attempt=again.attempt, source_rows=None))
            else:
                certificates[ledger_id] = again
        except TierkeeperError as error:
            results[ledger_id] = error
    for ledger_id, copied in (copy_ledgers(stack, to_copy) if to_copy else {}).items():
        if isinstance(copied, CopiedAttempt):
            to_verify.append(
                ToVerify(plan=copied.plan, attempt=copied.attempt, source_rows=copied.rows)
            )
        else:
            results[ledger_id] = copied.error
    for ledger_id, proof in (verify_attempts(stack, to_verify) if to_verify else {}).items():
        if isinstance(proof, TierkeeperError):
            results[ledger_id] = proof
        else:
            certificates[ledger_id] = proof
    if certificates:
        czxid = next(ready[i].plan.ml_czxid for i in certificates)
        notes = {i: ready[i].note for i in certificates}
        results.update(_publish(stack, ml_name, certificates, broken, notes, czxid))
    return results


def _plan(stack: Stack, ledger_id: int, broken: UUID) -> _Ready | Wait:
    old = find_old_layout(stack, ledger_id, broken)
    plan = plan_ledger(stack, ledger_id, replacing=broken, block_bytes=old.block_bytes)
    if isinstance(plan, Wait):
        if plan.reason is Reason.MISSING:
            raise LedgerNotFoundError(
                f"ledger {ledger_id}: no bookie copy is left to heal attempt {broken} from"
            )
        return plan
    note = "" if old.kept_by(plan.blocks) else OFFSETS_MOVED
    if note:
        stack.tell(f"ledger {ledger_id}: {note}", ledger_id)
    return _Ready(plan, note)


def _copy_of_before(
    stack: Stack, plan: LedgerPlan, broken: UUID
) -> Stored[Certificate] | Complete | None:
    """An earlier run's attempt with this very layout: certified and still so, or yet to verify."""
    found = find_resumable(stack, plan.ledger_id)
    if found is None or found.attempt.record.uid == broken:
        return None
    if isinstance(found, Complete):
        attempt = found.attempt.record
        left = Work(attempt.ledger, attempt.block_bytes, attempt.object_bytes)
        asked = Work(plan.facts, plan.block_bytes, plan.object_bytes)
        return found if left == asked else None
    record = found.certificate.record
    places = [(b.first_entry_id, b.offset, b.block_length) for b in record.blocks]
    wanted = [(b.first_entry_id, b.offset, b.block_length) for b in plan.blocks]
    if record.ledger != plan.facts or places != wanted:
        return None
    data, index = (
        stack.objects.head(record.data.key),
        stack.objects.get(record.index.key, bytes_max=INDEX_BYTES_MAX),
    )
    return None if object_differences(record, data=data, index=index) else found.certificate


def _publish(
    stack: Stack,
    ml_name: str,
    certificates: Mapping[int, Stored[Certificate]],
    broken: Mapping[int, UUID],
    notes: Mapping[int, str],
    czxid: int,
) -> dict[int, HealResult]:
    order = ToPublish(certificates=certificates, ml_czxid=czxid, replacing=broken)
    results: dict[int, HealResult] = {}
    for ledger_id, result in change_topic(stack, ml_name, publish=order).published.items():
        if isinstance(result, Published):
            uid = certificates[ledger_id].record.uid
            stack.tell(
                f"ledger {ledger_id}: attempt {uid} took the place of {broken[ledger_id]}",
                ledger_id,
                attempt=uid,
            )
            results[ledger_id] = Healed(
                uid=uid, publication_key=result.publication_key, note=notes.get(ledger_id, "")
            )
        else:
            results[ledger_id] = result
    return results
