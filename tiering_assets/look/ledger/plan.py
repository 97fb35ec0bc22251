"""Plan the copy of one ledger: fresh evidence, decision, layout. Reads everything, writes nothing.

The block boundaries come from cumulative lengths in the stored entries' headers (point reads), so
that every byte of both objects is determined before the first one is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.eligibility import (
    MayCopy,
    OffloadEvidence,
    decide_offload,
    owner_of,
)
from tiering_assets.offload_format.layout import BlockPlan, block_bytes_for, plan_layout
from tiering_assets.records.models import LedgerFacts
from tiering_assets.resources.bookkeeper.ledger_metadata import index_ledger_metadata
from tiering_assets.resources.errors import BookieError, FormatError, IntegrityError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, ManagedLedger
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.resources.metastore.store import Node
from tiering_assets.resources.metastore.topic_names import never_touched
from tiering_assets.tasks.descriptors import LedgerSource


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPlan:
    """All that is known of a copy before it starts. `index_metadata` are the index's M bytes."""

    ledger_id: int
    ml_name: str
    ml_czxid: int
    facts: LedgerFacts
    source: LedgerSource
    blocks: tuple[BlockPlan, ...]
    block_bytes: int
    index_metadata: bytes
    listed: LedgerInfo
    notes: tuple[str, ...]

    @property
    def payload_bytes(self) -> int:
        """Of all entries, which the length in BookKeeper's metadata may exceed."""
        return sum(block.payload_bytes for block in self.blocks)

    @property
    def object_bytes(self) -> int:
        return self.blocks[-1].offset + self.blocks[-1].block_length


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSight:
    """One ledger as both metadata trees show it at one moment; parts may be missing."""

    ledger_id: int
    ml_name: str | None
    node: LedgerNode | None
    topic: ManagedLedger | None
    topic_node: Node | None

    @property
    def listed(self) -> LedgerInfo | None:
        return None if self.topic is None else self.topic.ledger(self.ledger_id)


def look_at(stack: Stack, ledger_id: int, *, ml_name: str | None = None) -> LedgerSight:
    """Read a ledger's node and its topic's node. `ml_name` helps where the ledger node is gone."""
    node = stack.ledgers.read(ledger_id)
    owner = owner_of(node.metadata) if node is not None else None
    name = ml_name or (owner if owner is not None and "/" in owner else None)
    found = stack.topics.read(name) if name is not None else None
    return LedgerSight(
        ledger_id=ledger_id,
        ml_name=name,
        node=node,
        topic=None if found is None else found[0],
        topic_node=None if found is None else found[1],
    )


def facts_of(node: LedgerNode) -> LedgerFacts:
    """The immutable facts of a closed ledger; its creation time is ZooKeeper's when it has none."""
    metadata = node.metadata
    return LedgerFacts(
        ledger_id=metadata.ledger_id,
        last_entry_id=metadata.last_entry_id,
        length=metadata.length,
        digest_type=metadata.digest_type.name,
        ctime_ms=node.ctime_ms,
        czxid=node.stat.czxid,
    )


def decide_sight(sight: LedgerSight, *, replacing: UUID | None = None) -> MayCopy | Wait:
    """The eligibility decision for what was just seen."""
    if sight.node is None:
        context = None if sight.listed is None else sight.listed.offload
        if context is not None and context.complete and context.bookkeeper_deleted:
            return Wait(Reason.RELEASED, f"brokers read the copy {context.uid}")
        return Wait(Reason.MISSING, f"BookKeeper has no ledger {sight.ledger_id}")
    if sight.ml_name is None:
        owner = owner_of(sight.node.metadata)
        return Wait(Reason.FOREIGN, owner or "its metadata names no managed ledger")
    properties = sight.topic.properties if sight.topic is not None else {}
    return decide_offload(
        OffloadEvidence(
            ledger_id=sight.ledger_id,
            ml_name=sight.ml_name,
            never_touched=never_touched(sight.ml_name, properties),
            metadata=sight.node.metadata,
            listed=sight.listed,
            replacing=replacing,
        )
    )


def plan_ledger(
    stack: Stack,
    ledger_id: int,
    *,
    ml_name: str | None = None,
    replacing: UUID | None = None,
    block_bytes: int | None = None,
) -> LedgerPlan | Wait:
    """Decide and lay out one ledger. `ml_name` is its topic's, where BookKeeper may not tell any
    more.

    `replacing` is a broken attempt whose context may stand; its `block_bytes` keep its offsets.

    Raises:
        IntegrityError: the stored entries hold more than the metadata's length, or contradict it.
        EntryUnavailableError: too few bookies answer even for the plan.
    """
    sight = look_at(stack, ledger_id, ml_name=ml_name)
    decision = decide_sight(sight, replacing=replacing)
    if isinstance(decision, Wait):
        return decision
    node, listed, topic_node = sight.node, sight.listed, sight.topic_node
    if node is None or listed is None or topic_node is None or sight.ml_name is None:
        return Wait(Reason.MISSING, f"ledger {ledger_id} vanished while it was looked at")
    facts = facts_of(node)
    source = source_of(stack, node)
    chosen = block_bytes_for(
        facts.length, node.metadata.entries, block_bytes or stack.settings.offload.block_bytes
    )
    with stack.spending_for(sight.ml_name):
        blocks = lay_out(stack, source, chosen)
    return LedgerPlan(
        ledger_id=ledger_id,
        ml_name=sight.ml_name,
        ml_czxid=topic_node.stat.czxid,
        facts=facts,
        source=source,
        blocks=blocks,
        block_bytes=chosen,
        index_metadata=index_ledger_metadata(
            node.data, ledger_id=ledger_id, ctime_ms=facts.ctime_ms
        ),
        listed=listed,
        notes=(*decision.notes, *_length_notes(facts, blocks)),
    )


def _length_notes(facts: LedgerFacts, blocks: tuple[BlockPlan, ...]) -> tuple[str, ...]:
    beyond = facts.length - sum(block.payload_bytes for block in blocks)
    if not beyond:
        return ()
    return (
        f"BookKeeper's length counts {beyond} bytes beyond the last entry {facts.last_entry_id}: "
        f"recovery closed the ledger before an entry that was never acknowledged",
    )


def lay_out(stack: Stack, source: LedgerSource, block_bytes: int) -> tuple[BlockPlan, ...]:
    """Block boundaries by point reads of cumulative lengths."""
    with stack.open_points(stack.settings.bookies, source) as points:
        try:
            return plan_layout(
                last_entry_id=source.last_entry_id,
                ledger_length=source.length,
                block_bytes_max=block_bytes,
                cumulative_length=points.cumulative_length,
            )
        except IntegrityError as error:
            raise IntegrityError(f"ledger {source.ledger_id}: {error}") from error


def source_of(stack: Stack, node: LedgerNode) -> LedgerSource:
    """The ledger as tasks read it, with its bookies' pages of figures where politeness wants
    them.

    A bookie that is away keeps its id as its address. One that is away and whose id is a name has
    none, as one whose registration cannot be read. It is left out: whoever reads tries the other
    replicas, and names it where none is left.
    """
    members = {bookie for segment in node.metadata.segments for bookie in segment.bookies}
    addresses: dict[str, tuple[str, int]] = {}
    pages: dict[str, tuple[str, int]] = {}
    for bookie in sorted(members):
        try:
            known = stack.ledgers.bookie(bookie)
        except (BookieError, FormatError) as error:
            stack.tell(
                f"ledger {node.metadata.ledger_id}: read without one bookie: {error}",
                node.metadata.ledger_id,
            )
            continue
        addresses[bookie] = known.rpc
        page = known.page(stack.settings.bookies.http_port)
        if page is not None and stack.settings.budget.add_latency_max_s > 0:
            pages[bookie] = page
    return replace(LedgerSource.of(node.metadata, addresses), pages=pages)
