"""Delete bookie copies of published ledgers, or say why not. design section 6.3.

The order is the contract: fresh evidence, decision, intent records, every byte read again where no
key vouches for the certificates (release_reread.py), one change of the topic (topic_change.py:
marks, confirmed unload, first and last entry read through the broker), fresh read and re-check of
the node, one transaction that deletes the ledger nodes only if the topic's node is still that
version, release records. A crash between any two leaves a ledger that the next run finishes, never
one that is lost. Deleting before the broker has reloaded would stall its readers for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from tiering_assets.change.change_topic import Half
from tiering_assets.change.confirm import settle_undos
from tiering_assets.change.disturb import Seen
from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Kind
from tiering_assets.ground.reasons import NotNow, not_now
from tiering_assets.ground.stack import Stack, is_young
from tiering_assets.look.ledger.plan import facts_of
from tiering_assets.look.topic.topic_evidence import Shadows, deleted, find_shadows
from tiering_assets.records import keys
from tiering_assets.records.models import BegunRelease, Release, ReleaseIntent
from tiering_assets.records.stored import Stored
from tiering_assets.release.approval import Approval
from tiering_assets.release.evidence import Evidence, gather
from tiering_assets.release.gate import MayRelease, Voucher
from tiering_assets.release.look import gather_topic
from tiering_assets.release.reread import reread_before_release
from tiering_assets.release.work import (
    Due,
    Released,
    ReleaseResult,
    ReleaseWork,
    decide_now,
    gate_again,
    record_release,
    refuse_old_metadata,
)
from tiering_assets.resources.bookkeeper.ledger_metadata import encode_ledger_metadata
from tiering_assets.resources.errors import FormatError, RefusedError
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.resources.metastore.store import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ToRelease:
    """Ledgers of one topic that are due.

    `shadows` is for callers with many topics; without it every topic's node is read to find them.
    With `approval` only what a plan lists is released, and only as it was planned.
    """

    ledger_ids: Sequence[int]
    shadows: Shadows | None = None
    approval: Approval | None = None

    def prepare(self, stack: Stack, ml_name: str, seen: Seen) -> Half[ReleaseResult]:
        """What may be released now, with its intents written.

        Raises:
            RefusedError: nothing may be released where this one runs; or the topic was deleted.
        """
        return prepare_release(stack, ml_name, self, seen).half


def prepare_release(stack: Stack, ml_name: str, order: ToRelease, seen: Seen) -> ReleaseWork:
    """Gather evidence, decide, and write the intent of each ledger that goes."""
    ledger_ids, approval = order.ledger_ids, order.approval
    found = stack.topics.read(ml_name)
    if found is None:
        raise deleted(ml_name, "released")
    topic, node = found
    wait = settle_undos(stack, ml_name)
    known = find_shadows(stack) if order.shadows is None else order.shadows
    about = gather_topic(stack, ml_name, topic, known, seen)
    refuse_old_metadata(about, node)
    if wait is not None:
        waits = not_now(str(wait))
        return ReleaseWork(
            ml_name=ml_name,
            czxid=node.stat.czxid,
            due={},
            settled=dict.fromkeys(ledger_ids, waits),
            seen=seen,
            about=about,
            shadows=known,
        )
    gathered = gather(stack, about, ledger_ids)
    with stack.memory.turns.of("intents"):  # those of another topic count against the same hour
        results, due = _intend_all(stack, ml_name, topic, node, gathered, approval)
    claims = {
        i: (item.evidence.certificate, item.ledger)
        for i, item in due.items()
        if item.evidence.look.voucher is Voucher.READING
    }
    reread = reread_before_release(stack, {i: (c, n) for i, (c, n) in claims.items() if c})
    results.update(reread.waiting)
    due = {
        i: replace(item, read=reread.dated(i)) for i, item in due.items() if i not in reread.waiting
    }
    work = ReleaseWork(
        ml_name=ml_name,
        czxid=node.stat.czxid,
        due=due,
        settled=results,
        seen=seen,
        about=about,
        shadows=known,
    )
    # Every byte was read meanwhile, or many intents were written: nothing is marked on old answers.
    young = is_young(stack, work.evidence, Kind.OBJECTS)
    return work if young and not claims else gate_again(stack, work)


def _intend_all(
    stack: Stack,
    ml_name: str,
    topic: ManagedLedger,
    node: Node,
    gathered: Mapping[int, Evidence],
    approval: Approval | None,
) -> tuple[dict[int, ReleaseResult], dict[int, Due]]:
    """What waits or was done before, and what goes, its intent written."""
    results: dict[int, ReleaseResult] = {}
    going: dict[int, MayRelease] = {}
    begun_at = stack.objects.server_time()  # of all: they begin together
    room = _room(stack, begun_at)
    for ledger_id, evidence in gathered.items():
        finished = _finished_before(stack, ml_name, topic, ledger_id, evidence)
        if finished is not None:
            results[ledger_id] = finished
            continue
        decision = decide_now(stack, evidence)
        moved = None if approval is None else _moved(approval, evidence, decision)
        if isinstance(decision, NotNow):
            results[ledger_id] = decision
        elif moved is not None:
            results[ledger_id] = NotNow((moved,))
        elif len(going) >= room:
            results[ledger_id] = NotNow(
                (f"capped: {room} more ledgers may be released in this run or hour",)
            )
        else:
            going[ledger_id] = decision
    plan = None if approval is None else approval.plan

    def intend(ledger_id: int) -> Due | FormatError:
        decision = going[ledger_id]
        try:
            made = _intend(stack, ml_name, node, gathered[ledger_id], decision, plan, begun_at)
        except FormatError as error:  # an intent that lies there and cannot be read
            return error
        reach("release.intended", ledger_id, topic=ml_name, attempt=decision.uid)
        return made

    due: dict[int, Due] = {}
    for ledger_id, made in zip(going, stack.in_parallel(intend, list(going)), strict=True):
        if isinstance(made, Due):
            due[ledger_id] = made
        else:
            results[ledger_id] = made
    return results, due


def _room(stack: Stack, store_now: datetime) -> int:
    """How many ledgers the caps of this run and of the last hour still allow."""
    limits = stack.settings.release
    return max(0, min(limits.per_run_max, limits.per_hour_max - recently_begun(stack, store_now)))


def recently_begun(stack: Stack, store_now: datetime) -> int:
    """Ledgers whose release was begun in the last hour: one listing of these alone."""
    since = store_now - timedelta(hours=1)
    lately = stack.book.filed_since(keys.BEGUN_RELEASES, since)
    return len({key.rpartition("/")[2] for key in lately})  # a retry is filed once an hour


def _finished_before(
    stack: Stack, ml_name: str, topic: ManagedLedger, ledger_id: int, evidence: Evidence
) -> Released | None:
    intent = intent_of_finished(stack, topic, ledger_id, evidence)
    if intent is None:
        return None
    if stack.book.read(Release, keys.release(ledger_id, intent.record.uid)) is None:
        record_release(stack, ml_name, intent, notes=("found deleted by an earlier run",))
    return Released(bytes_released=intent.record.ledger.length, noop=True)


def intent_of_finished(
    stack: Stack, topic: ManagedLedger, ledger_id: int, evidence: Evidence
) -> Stored[ReleaseIntent] | None:
    """A ledger whose node is gone, marked, with an intent of ours: an earlier run deleted it.

    Without an intent somebody else did, and the gate says what is missing.
    """
    listed = topic.ledger(ledger_id)
    if evidence.ledger is not None or listed is None or listed.offload is None:
        return None
    if not listed.offload.bookkeeper_deleted:
        return None
    return stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, listed.offload.uid))


def _moved(
    approval: Approval, evidence: Evidence, decision: MayRelease | NotNow[str]
) -> str | None:
    certificate = evidence.certificate
    if isinstance(decision, NotNow) or certificate is None:
        return None
    return approval.difference(evidence.ledger_id, decision.uid, certificate.sha256)


def _intend(
    stack: Stack,
    ml_name: str,
    node: Node,
    evidence: Evidence,
    decision: MayRelease,
    plan: str | None,
    begun_at: datetime,
) -> Due:
    certificate, ledger, publication = evidence.certificate, evidence.ledger, evidence.publication
    if certificate is None or ledger is None or publication is None:
        raise RefusedError(f"ledger {evidence.ledger_id}: released without its evidence")
    entry = next(p for p in publication.record.ledgers if p.uid == decision.uid)
    _file(stack, ml_name, evidence.ledger_id, decision.uid, begun_at)
    intent, _ours = stack.book.create_or_read(
        keys.release_intent(evidence.ledger_id, decision.uid),
        ReleaseIntent(
            ledger=facts_of(ledger),
            uid=decision.uid,
            ml_name=ml_name,
            certificate_sha256=certificate.sha256,
            deletion_lag_s=stack.settings.release.deletion_lag_s,
            published_at=publication.record.confirmed_at,
            ml_version=node.stat.version,
            ledger_metadata_hex=_without_password(ledger),
            intended_at=stack.now(),
            writer=stack.writer,
            previous=entry.previous,
            plan=plan,
        ),
    )
    return Due(evidence=evidence, uid=decision.uid, intent=intent, ledger=ledger)


def _file(stack: Stack, ml_name: str, ledger_id: int, uid: UUID, begun_at: datetime) -> None:
    """Say that this release begins, where the releases of the hour are counted.

    `begun_at` is the store's time.
    """
    stack.book.create_or_read(
        keys.begun_release(begun_at, ledger_id, uid),
        BegunRelease(
            ledger_id=ledger_id,
            uid=uid,
            ml_name=ml_name,
            begun_at=stack.now(),
            writer=stack.writer,
        ),
    )
    reach("release.begun", ledger_id, topic=ml_name, attempt=uid)


def _without_password(ledger: LedgerNode) -> str:
    """The node's bytes, so that a person could undo the delete until bookies collect; no secret."""
    return encode_ledger_metadata(replace(ledger.metadata, password=b"")).hex()
