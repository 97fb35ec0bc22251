"""May this ledger be copied at all? design section 6.1, step 1.

Owns: only a ledger that BookKeeper itself calls CLOSED is copied, from 0 to its last entry, and one
that the topic counts more entries for than BookKeeper has is quarantined: data is already missing.
We never fence, recover or close a ledger to make it eligible.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState, LedgerMetadata
from tiering_assets.resources.metastore.ledger_info import LedgerInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadEvidence:
    """What the two metadata trees say now. None means "the node or entry is not there".

    `replacing` is the attempt that was found broken: its context does not stand in the way.
    """

    ledger_id: int
    ml_name: str
    never_touched: str | None
    metadata: LedgerMetadata | None
    listed: LedgerInfo | None
    replacing: UUID | None = None


@dataclass(frozen=True, slots=True)
class MayCopy:
    """Copy entries 0 to `last_entry_id`. `notes` are recorded, they stop nothing."""

    last_entry_id: int
    notes: tuple[str, ...] = ()


def decide_offload(evidence: OffloadEvidence) -> MayCopy | Wait:
    """Return Copy only for a closed, listed, non-empty ledger of a topic we may touch."""
    wait = _refuse_topic(evidence) or _refuse_listing(evidence)
    if wait is not None:
        return wait
    metadata, listed = evidence.metadata, evidence.listed
    if metadata is None or listed is None:
        detail = f"no node for ledger {evidence.ledger_id}; it was trimmed or deleted"
        return Wait(Reason.MISSING, detail)
    if metadata.state is not BookKeeperState.CLOSED:
        return Wait(
            Reason.UNSEALED,
            f"BookKeeper says {metadata.state.name}; its owner must close it, we never recover",
        )
    return _compare_counts(evidence.ledger_id, metadata, listed)


def _refuse_topic(evidence: OffloadEvidence) -> Wait | None:
    if evidence.never_touched is not None:
        return Wait(Reason.NEVER_TOUCHED, evidence.never_touched)
    owner = owner_of(evidence.metadata) if evidence.metadata is not None else None
    if owner is not None and owner != evidence.ml_name:
        return Wait(Reason.FOREIGN, f"its metadata names {owner}, not {evidence.ml_name}")
    return None


def _refuse_listing(evidence: OffloadEvidence) -> Wait | None:
    listed = evidence.listed
    if listed is None:
        return Wait(Reason.NOT_IN_TOPIC, f"{evidence.ml_name} does not list it; nothing to publish")
    if listed.is_open:
        return Wait(Reason.OPEN, "the topic lists it as the one it writes to")
    if listed.offload is not None and listed.offload.uid != evidence.replacing:
        if listed.offload.complete:
            return Wait(Reason.PUBLISHED, f"as {listed.offload.uid}")
        return Wait(
            Reason.BROKER_COPYING,
            f"its context names the unfinished attempt {listed.offload.uid}",
        )
    return None


def _compare_counts(ledger_id: int, metadata: LedgerMetadata, listed: LedgerInfo) -> MayCopy | Wait:
    if listed.entries is not None and listed.entries > metadata.entries:
        return Wait(
            Reason.DATA_MISSING,
            f"the topic counts {listed.entries} entries of ledger {ledger_id}, "
            f"BookKeeper has {metadata.entries}",
        )
    if metadata.last_entry_id < 0:
        return Wait(Reason.EMPTY, "the broker drops empty ledgers when it next loads the topic")
    notes = []
    if listed.entries is not None and listed.entries < metadata.entries:
        notes.append(
            f"the topic counts {listed.entries} entries, BookKeeper has {metadata.entries}"
        )
    if listed.size is not None and listed.size != metadata.length:
        notes.append(f"the topic counts {listed.size} bytes, BookKeeper has {metadata.length}")
    return MayCopy(metadata.last_entry_id, tuple(notes))


def owner_of(metadata: LedgerMetadata) -> str | None:
    """Name of the managed ledger that a ledger's own metadata names, if any.

    Cursor, schema and compaction ledgers carry another component and are never a topic's data.
    """
    component = metadata.custom.get("component", b"managed-ledger")
    if component != b"managed-ledger":
        return f"component {component.decode(errors='replace')}"
    if "pulsar/cursor" in metadata.custom:
        return "component managed-ledger, a cursor"
    name = metadata.custom.get("pulsar/managed-ledger")
    return None if name is None else name.decode(errors="replace")
