"""Release a batch of ledgers of any topics: one outcome each, topic by topic.

Owns: one topic's failure is its own, and every outcome comes with the records that prove it.
release.py decides and deletes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from resources.errors import LedgerNotFoundError, TierkeeperError
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, ReleaseIntent
from tiering_assets.records.models import Release as ReleaseRecord
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.release import Released, ReleaseResult, plan_release, release_topic
from tiering_assets.steps.shadows import Shadows, find_shadows
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.survey import ml_names_of, survey
from tiering_assets.tiering.release_audit import find_release_faults
from tiering_assets.tiering.release_gate import Release as ToRelease
from tiering_assets.tiering.states import LedgerState

DUE = frozenset({LedgerState.RELEASE_DUE, LedgerState.RELEASING})


@dataclass(frozen=True, slots=True)
class ReleaseRecords:
    """The records of one ledger's newest release."""

    certificate: Stored[Certificate] | None
    intent: Stored[ReleaseIntent] | None
    release: Stored[ReleaseRecord]

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with this release by its records; nothing, if the rules were kept."""
        certificate, intent = self.certificate, self.intent
        return find_release_faults(
            None if certificate is None else certificate.record,
            None if certificate is None else certificate.sha256,
            None if intent is None else intent.record,
            None if intent is None else intent.sha256,
            self.release.record,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOutcome:
    """`records` are there when the ledger is released."""

    ledger_id: int
    ml_name: str | None
    result: ReleaseResult | ToRelease
    records: ReleaseRecords | None = None


def due_ledgers(stack: Stack, topics: Iterable[str] | None = None) -> list[int]:
    """Ledgers whose lag has passed, or whose release was begun; the gate looks closer."""
    return [view.ledger_id for view in survey(stack, topics) if view.state in DUE]


def release_batch(
    stack: Stack, ledger_ids: Iterable[int], *, dry_run: bool = False
) -> list[ReleaseOutcome]:
    """Release, or with `dry_run` only decide; one outcome per ledger, in id order."""
    wanted = sorted(set(ledger_ids))
    owners = ml_names_of(stack, wanted)
    topics: dict[str, list[int]] = defaultdict(list)
    results: dict[int, ReleaseResult | ToRelease] = {}
    for ledger_id in wanted:
        if ledger_id in owners:
            topics[owners[ledger_id]].append(ledger_id)
        else:
            results[ledger_id] = LedgerNotFoundError(
                f"ledger {ledger_id}: neither BookKeeper nor a record names its topic"
            )
    shadows = find_shadows(stack) if topics else {}
    for ml_name, ids in sorted(topics.items()):
        try:
            results.update(_topic(stack, ml_name, ids, shadows, dry_run=dry_run))
        except TierkeeperError as error:
            results.update(dict.fromkeys(ids, error))
    return [
        ReleaseOutcome(
            ledger_id=ledger_id,
            ml_name=owners.get(ledger_id),
            result=results[ledger_id],
            records=release_records(stack, ledger_id)
            if isinstance(results[ledger_id], Released)
            else None,
        )
        for ledger_id in wanted
    ]


def _topic(
    stack: Stack, ml_name: str, ledger_ids: list[int], shadows: Shadows, *, dry_run: bool
) -> dict[int, ReleaseResult | ToRelease]:
    if dry_run:
        plan = plan_release(stack, ml_name, ledger_ids, shadows=shadows)
        return {item.ledger_id: item.decision for item in plan}
    return {**release_topic(stack, ml_name, ledger_ids, shadows=shadows)}


def release_records(stack: Stack, ledger_id: int) -> ReleaseRecords | None:
    """The newest release of a ledger with what stands before it; None when it was never released."""
    prefix = keys.release(ledger_id, UUID(int=0)).rsplit("/", 1)[0] + "/"
    found = [
        stack.book.require(ReleaseRecord, key)
        for key in stack.book.keys(prefix)
        if not key.endswith(".intent.json")
    ]
    if not found:
        return None
    newest = max(found, key=lambda stored: stored.stored_at)
    uid = newest.record.uid
    return ReleaseRecords(
        certificate=stack.book.read(Certificate, keys.certificate(ledger_id, uid)),
        intent=stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, uid)),
        release=newest,
    )
