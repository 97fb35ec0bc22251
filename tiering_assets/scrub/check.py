"""One look at one attempt's objects, shallow or deep, whoever wrote them. Reads only.

Owns: a difference is a finding, an outage is an error that says nothing about the objects.
Certified objects are compared with their certificate; those that a broker's offloader wrote with
the ledger metadata in their own index, with what the topic lists, and while they live with the
bookies, entry by entry. Nothing here decides whether a finding still counts: scrub/scrub.py reads
metadata again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.object_class import can_be_read
from tiering_assets.look.ledger.plan import source_of
from tiering_assets.look.ledger.verification import (
    block_differences,
    block_facts,
    object_differences,
    rows_by_part,
)
from tiering_assets.offload_format.keys import data_key
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.records.models import BlockFacts, Certificate, Scrub
from tiering_assets.resources.errors import ObjectNotFoundError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.resources.object_store.store import ObjectHead
from tiering_assets.scrub.plan import LOOK_REQUESTS, Depth, DueLook
from tiering_assets.tasks.descriptors import BlockRow, TaskKind
from tiering_assets.verify.object_check import (
    ObjectSight,
    look_at_object,
    plans_of_index,
    topic_spending,
    total_findings,
)
from tiering_assets.verify.reverify import (
    block_findings,
    plan_of,
    read_back,
    without_bookies,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What one look saw. `blocks_read`, `entries` and `payload_bytes` count the looks it continues.

    `sight` is None where both objects are gone. `read` are the blocks that this very look read.
    Without a certificate it compared them with the bookies, if the ledger is `in_bookkeeper`.
    """

    look: DueLook
    sight: ObjectSight | None
    findings: tuple[str, ...]
    blocks: int
    blocks_read: int
    entries: int
    payload_bytes: int
    bytes_read: int
    requests: int
    seconds: float
    read: tuple[BlockFacts, ...] = ()
    in_bookkeeper: bool = False

    @property
    def whole(self) -> bool:
        """False where the budget ended before the object did and nothing wrong was found."""
        return (
            bool(self.findings)
            or self.look.depth is Depth.SHALLOW
            or self.blocks_read == self.blocks
        )

    def after(self, earlier: Checked) -> Checked:
        """The same with what an earlier look at the same bytes cost."""
        return replace(
            self,
            bytes_read=self.bytes_read + earlier.bytes_read,
            requests=self.requests + earlier.requests,
            seconds=self.seconds + earlier.seconds,
        )


def check_copy(
    stack: Stack, look: DueLook, listed: LedgerInfo, node: LedgerNode | None, begun: Scrub | None
) -> Checked:
    """Look at both objects and, if deep, read blocks: behind `begun` and as far as the budget goes.

    At least one block is read, however small the budget.
    """
    started = stack.monotonic()
    candidate = look.candidate
    try:
        sight = look_at_object(stack, data_key(candidate.uid, candidate.ledger_id))
    except ObjectNotFoundError as error:
        return Checked(
            look=look,
            sight=None,
            findings=(str(error),),
            blocks=0,
            blocks_read=0,
            entries=0,
            payload_bytes=0,
            bytes_read=0,
            requests=LOOK_REQUESTS,
            seconds=stack.monotonic() - started,
        )
    findings = _object_findings(stack, sight, listed, node)
    blocks = blocks_of(sight, findings)
    totals = _begin(begun, sight, blocks)
    wanted = _within(blocks[totals.blocks :], look.bytes_max)
    rows: dict[int, BlockRow] = {}
    requests = LOOK_REQUESTS
    if look.depth is Depth.DEEP and not findings:
        requests += _reads(wanted, stack.settings.offload.read_range_bytes)
        rows = _read_blocks(stack, sight, node, wanted, findings)
    entries = totals.entries + sum(row.entries for row in rows.values())
    payload_bytes = totals.payload_bytes + sum(row.payload_bytes for row in rows.values())
    read = totals.blocks + len(rows)
    if look.depth is Depth.DEEP and read == len(blocks) and not findings:
        findings += _total_findings(sight, entries, payload_bytes)
    return Checked(
        look=look,
        sight=sight,
        findings=tuple(dict.fromkeys(findings)),
        blocks=len(blocks),
        blocks_read=read,
        entries=entries,
        payload_bytes=payload_bytes,
        bytes_read=sum(row.block_length for row in rows.values()),
        requests=requests,
        seconds=stack.monotonic() - started,
        read=block_facts((one for one in wanted if one.part_number in rows), rows),
        in_bookkeeper=node is not None,
    )


def blocks_of(sight: ObjectSight, findings: list[str]) -> list[BlockPlan]:
    """Where the blocks should lie: by the certificate, or without one by the index."""
    if sight.certificate is not None:
        return [*plan_of(sight.certificate.record)]
    return plans_of_index(sight, findings)


def _object_findings(
    stack: Stack, sight: ObjectSight, listed: LedgerInfo, node: LedgerNode | None
) -> list[str]:
    found = [*sight.problems]
    heads = [("data", sight.data), ("index", None if sight.index is None else sight.index.head)]
    for name, head in heads:
        found += [] if head is None else _lifecycle(stack, name, head)
    if sight.certificate is not None:
        found += object_differences(sight.certificate.record, data=sight.data, index=sight.index)
        return found + _index_table(sight, sight.certificate.record)
    metadata = sight.metadata
    if metadata is None:
        return found
    # What the topic counts may be less than there is (its last update may have been lost).
    if listed.entries is not None and metadata.entries < listed.entries:
        found.append(
            f"entries: the topic counts {listed.entries}, the index's ledger metadata has "
            f"{metadata.entries}"
        )
    if node is not None:
        now = (node.metadata.last_entry_id, node.metadata.length)
        if now != (metadata.last_entry_id, metadata.length):
            found.append(
                f"last entry and length: BookKeeper has {now}, the index's ledger metadata "
                f"{(metadata.last_entry_id, metadata.length)}"
            )
    return found


def _lifecycle(stack: Stack, name: str, head: ObjectHead) -> list[str]:
    found = []
    if head.expiration is not None:
        found.append(f"{name} object: a lifecycle rule deletes it: {head.expiration}")
    if not can_be_read(stack, head):
        found.append(f"{name} object: no broker can read storage class {head.storage_class}")
    return found


def _index_table(sight: ObjectSight, certificate: Certificate) -> list[str]:
    if sight.decoded is None:
        return []  # told already
    want = [(b.first_entry_id, b.part_number, b.offset) for b in certificate.blocks]
    have = [(e.first_entry_id, e.part_number, e.offset) for e in sight.decoded.entries]
    return [] if want == have else [f"index: blocks: expected {want[:5]}, found {have[:5]}"]


@dataclass(frozen=True, slots=True)
class _Totals:
    blocks: int = 0
    entries: int = 0
    payload_bytes: int = 0


def _begin(begun: Scrub | None, sight: ObjectSight, blocks: Sequence[BlockPlan]) -> _Totals:
    """Where an earlier look ended, if the object is still the one that it read."""
    if begun is None or sight.data is None or begun.blocks_read >= len(blocks):
        return _Totals()
    same = (sight.data.etag, sight.data.version_id, sight.data.size, len(blocks))
    if same != (begun.data_etag, begun.data_version_id, begun.data_bytes, begun.blocks):
        return _Totals()
    return _Totals(begun.blocks_read, begun.entries, begun.payload_bytes)


def _within(blocks: Sequence[BlockPlan], bytes_max: int) -> list[BlockPlan]:
    taken: list[BlockPlan] = []
    size = 0
    for block in blocks:
        size += block.block_length
        if taken and size > bytes_max:
            break
        taken.append(block)
    return taken


def _reads(blocks: Iterable[BlockPlan], range_bytes: int) -> int:
    return sum(-(-block.block_length // range_bytes) for block in blocks)


def _read_blocks(
    stack: Stack,
    sight: ObjectSight,
    node: LedgerNode | None,
    blocks: Sequence[BlockPlan],
    findings: list[str],
) -> dict[int, BlockRow]:
    """Good rows by part; everything wrong is added to the findings."""
    if sight.data is None:
        return {}
    asked = node if sight.certificate is None else None  # a certificate says what they would
    if asked is not None:
        source = source_of(stack, asked)
    else:
        source = without_bookies(sight.ledger_id, last_entry_id=blocks[-1].last_entry_id, length=0)
    rows = read_back(
        stack,
        attempt=str(sight.uid),
        topic=topic_spending(sight),
        source=source,
        data_key=sight.data_key,
        version_id=sight.data.version_id,
        blocks=blocks,
        digest=sight.block_digest,
        with_source=asked is not None,
    )
    findings += block_findings([*rows[TaskKind.READ_BACK], *rows[TaskKind.READ_SOURCE]])
    stored = rows_by_part(rows[TaskKind.READ_BACK])
    served = None if asked is None else rows_by_part(rows[TaskKind.READ_SOURCE])
    read = _without_gap(blocks, stored, served)
    if sight.certificate is not None:
        certified = [b for b in sight.certificate.record.blocks if b.part_number in read]
        findings += block_differences(certified, read)
    if served is not None:
        findings += _source_differences(read, served)
    return read


def _without_gap(
    blocks: Sequence[BlockPlan],
    stored: Mapping[int, BlockRow],
    served: Mapping[int, BlockRow] | None,
) -> dict[int, BlockRow]:
    """Rows up to the first block that a task said nothing about: a lost row is no difference.

    The next look begins there; what was read behind it would count twice.
    """
    seen = stored.keys() if served is None else stored.keys() & served.keys()
    read = takewhile(lambda block: block.part_number in seen, blocks)
    return {block.part_number: stored[block.part_number] for block in read}


def _source_differences(
    stored: Mapping[int, BlockRow], source: Mapping[int, BlockRow]
) -> list[str]:
    found = []
    for part, theirs in sorted(source.items()):
        ours = stored.get(part)
        if ours is not None and ours.entries_sha256 != theirs.entries_sha256:
            found.append(
                f"block {part}: entries digest: bookies serve {theirs.entries_sha256}, the object "
                f"has {ours.entries_sha256}"
            )
    return found


def _total_findings(sight: ObjectSight, entries: int, payload_bytes: int) -> list[str]:
    if sight.certificate is not None:
        record = sight.certificate.record
        return [
            f"{name}: the certificate says {want}, found {have}"
            for name, want, have in (
                ("entries", record.entries, entries),
                ("payload bytes", record.payload_bytes, payload_bytes),
            )
            if want != have
        ]
    if sight.metadata is not None:
        return total_findings(sight.metadata, entries, payload_bytes)
    return []
