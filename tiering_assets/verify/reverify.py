"""Verify certified objects again: every byte and the index, against the certificate and the
bookies.

Reads only. Owns: a difference is a finding about the copy, an outage is an error that says nothing
about it; the two are never mixed up. The same tasks and the same decoder as the first verification,
and the same expectation suite over the index as it lies in the store now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import LedgerSight, facts_of, look_at, source_of
from tiering_assets.look.ledger.resume import Certified, find_resumable
from tiering_assets.look.ledger.survey import ml_names_of
from tiering_assets.look.ledger.verification import (
    certificate_differences,
    find_differences,
    rows_by_part,
)
from tiering_assets.offload_format.decoder import decode_index
from tiering_assets.offload_format.digests import DigestKind
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX, BlockPlan
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, SuiteResult
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import (
    FormatError,
    ObjectNotFoundError,
    ObjectStoreError,
    RefusedError,
    TierkeeperError,
)
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.object_store.store import ObjectHead, StoredObject
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, LedgerSource, TaskKind, revive
from tiering_assets.tasks.runner import split_task
from tiering_assets.verify.verify import read_headers


@dataclass(frozen=True, slots=True)
class IndexNow:
    """`facts` go to the expectation suite; None where there is nothing to judge."""

    facts: IndexFacts | None
    agrees: bool


def look_at_index(
    stack: Stack,
    certificate: Certificate | None,
    data: ObjectHead | None,
    index: StoredObject | None,
    listed: LedgerInfo | None,
) -> IndexNow:
    """Decode it, compare it with the certificate, and read the block headers back."""
    if certificate is None or data is None or index is None:
        return IndexNow(None, agrees=False)
    try:
        facts = index_facts(stack, certificate, data, index, listed)
        found = decode_index(index.body)
    except (FormatError, ObjectStoreError):
        return IndexNow(None, agrees=False)
    table = [(e.first_entry_id, e.part_number, e.offset) for e in found.entries]
    agrees = (
        sha256(index.body).hexdigest() == certificate.index.sha256
        and found.data_object_length == certificate.data.size
        and table == [(b.first_entry_id, b.part_number, b.offset) for b in certificate.blocks]
    )
    return IndexNow(facts, agrees)


def index_facts(
    stack: Stack,
    certificate: Certificate,
    data: ObjectHead,
    index: StoredObject,
    listed: LedgerInfo | None,
) -> IndexFacts:
    """What the expectation suite judges of a certified copy; reads its block headers."""
    return IndexFacts(
        ledger_id=certificate.ledger.ledger_id,
        index=index.body,
        index_size=index.head.size,
        data_size=data.size,
        headers=read_headers(stack, certificate),
        last_entry_id=certificate.ledger.last_entry_id,
        ledger_length=certificate.ledger.length,
        payload_bytes=certificate.payload_bytes,
        topic_entries=None if listed is None else listed.entries,
        topic_bytes=None if listed is None else listed.size,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverified:
    """What one ledger's objects hold now. No findings: every byte is as certified.

    `with_source` is False where the bookies were not asked; `notes` say why. `new` says of findings
    that nobody had recorded them before.
    """

    ledger_id: int
    uid: UUID
    ml_name: str
    certificate_key: str
    data_key: str
    blocks: int
    bytes_read: int
    with_source: bool
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    new: bool = False


def reverify_ledgers(
    stack: Stack, ledger_ids: Iterable[int], *, source: bool = False
) -> dict[int, Reverified | TierkeeperError]:
    """Read back what is certified of each ledger; one ledger's trouble is its own."""
    results: dict[int, Reverified | TierkeeperError] = {}
    for ledger_id in sorted(set(ledger_ids)):
        try:
            results[ledger_id] = _reverify(stack, ledger_id, source=source)
        except TierkeeperError as error:
            results[ledger_id] = error
    return results


def certified_copy(stack: Stack, ledger_id: int) -> tuple[Stored[Certificate], LedgerSight]:
    """The certificate of the published attempt, else of the one that would be published.

    Raises:
        RefusedError: there is none; says what the ledger has instead.
    """
    ml_name = ml_names_of(stack, [ledger_id]).get(ledger_id)
    sight = look_at(stack, ledger_id, ml_name=ml_name)
    context = None if sight.listed is None else sight.listed.offload
    if context is not None:
        found = stack.book.read(Certificate, keys.certificate(ledger_id, context.uid))
        if found is None:
            raise RefusedError(
                f"ledger {ledger_id}: attempt {context.uid} in its context has no certificate, so "
                f"somebody else made it: `tierkeeper object verify {context.uid}-ledger-{ledger_id}`"
            )
        return found, sight
    resumable = find_resumable(stack, ledger_id)
    if not isinstance(resumable, Certified):
        raise RefusedError(
            f"ledger {ledger_id} has no certified copy to verify: "
            f"`tierkeeper ledger offload {ledger_id}` makes one"
        )
    return resumable.certificate, sight


def read_back(
    stack: Stack,
    *,
    attempt: str,
    topic: str,
    source: LedgerSource,
    data_key: str,
    version_id: str | None,
    blocks: Sequence[BlockPlan],
    digest: DigestKind = "frames",
    with_source: bool = False,
) -> dict[TaskKind, list[BlockRow]]:
    """Rows of every block, failures included: one task a block, so one bad block hides no other."""
    whole = BlockTask(
        kind=TaskKind.READ_BACK,
        attempt=attempt,
        source=source,
        data_key=data_key,
        blocks=tuple(blocks),
        version_id=version_id,
        topic=topic,
        budget_key=stack.budget_key,
        digest=digest,
    )
    tasks = split_task(whole, bytes_max=1)
    if with_source:
        tasks += [replace(task, kind=TaskKind.READ_SOURCE, version_id=None) for task in tasks]
    rows: dict[TaskKind, list[BlockRow]] = {TaskKind.READ_BACK: [], TaskKind.READ_SOURCE: []}
    for row in stack.runner.run(tasks):
        rows[row.kind].append(row)
    return rows


def block_findings(rows: Iterable[BlockRow]) -> list[str]:
    """Blocks that do not decode, in words; an outage among them is raised instead."""
    found = []
    for row in rows:
        if row.error and row.retryable:
            raise revive(row, f"ledger {row.ledger_id} block {row.part_number}: {row.error}")
        if row.error:
            found.append(f"block {row.part_number}: {row.error}")
    return found


def without_bookies(ledger_id: int, *, last_entry_id: int, length: int) -> LedgerSource:
    """A source for tasks that read objects alone; it names no bookie."""
    return LedgerSource(
        ledger_id=ledger_id,
        last_entry_id=last_entry_id,
        length=length,
        ensemble_size=0,
        write_quorum=0,
        ack_quorum=0,
        digest_type="DUMMY",
        segments=(),
        addresses={},
    )


def _reverify(stack: Stack, ledger_id: int, *, source: bool) -> Reverified:
    started = stack.monotonic()
    stored, sight = certified_copy(stack, ledger_id)
    record = stored.record
    facts, blocks = record.ledger, tuple(plan_of(record))
    bookies, note = _bookies(stack, sight, record) if source else (None, "bookies not asked")
    data = stack.objects.head(record.data.key)
    index = stack.objects.get(record.index.key, bytes_max=INDEX_BYTES_MAX)
    rows: dict[TaskKind, list[BlockRow]] = {TaskKind.READ_BACK: [], TaskKind.READ_SOURCE: []}
    if data is not None:
        stack.tell(
            f"ledger {ledger_id}: reading {len(blocks)} blocks, {data.size} bytes", ledger_id
        )
        rows = read_back(
            stack,
            attempt=str(record.uid),
            topic=record.ml_name,
            source=bookies
            or without_bookies(ledger_id, last_entry_id=facts.last_entry_id, length=facts.length),
            data_key=record.data.key,
            version_id=data.version_id,
            blocks=blocks,
            digest=record.block_digest,
            with_source=bookies is not None,
        )
    stored_rows = rows_by_part(rows[TaskKind.READ_BACK])
    findings = block_findings([*rows[TaskKind.READ_BACK], *rows[TaskKind.READ_SOURCE]])
    findings += certificate_differences(record, data=data, index=index, rows=stored_rows)
    if bookies is not None and data is not None:
        findings += find_differences(
            plan=blocks,
            source=rows_by_part(rows[TaskKind.READ_SOURCE]),
            stored=stored_rows,
            last_entry_id=facts.last_entry_id,
        )
    return Reverified(
        ledger_id=ledger_id,
        uid=record.uid,
        ml_name=record.ml_name,
        certificate_key=stored.key,
        data_key=record.data.key,
        blocks=len(blocks),
        bytes_read=sum(row.block_length for row in stored_rows.values()),
        with_source=bookies is not None,
        findings=tuple(findings),
        notes=(note,) if note else (),
        seconds=round(stack.monotonic() - started, 3),
    )


def plan_of(certificate: Certificate) -> Iterable[BlockPlan]:
    """The certified blocks as a plan to read."""
    for block in certificate.blocks:
        yield BlockPlan(
            part_number=block.part_number,
            first_entry_id=block.first_entry_id,
            last_entry_id=block.last_entry_id,
            offset=block.offset,
            block_length=block.block_length,
            payload_bytes=block.payload_bytes,
        )


def _bookies(
    stack: Stack, sight: LedgerSight, certificate: Certificate
) -> tuple[LedgerSource | None, str]:
    """Where the entries still are, or why the bookies cannot be asked."""
    if sight.node is None:
        return None, "bookies not asked: the bookie copy is released or gone"
    if facts_of(sight.node) != certificate.ledger:
        return None, "bookies not asked: this is not the ledger that was certified any more"
    return source_of(stack, sight.node), ""


def recheck_indexes(
    stack: Stack, ledger_ids: Iterable[int]
) -> dict[int, SuiteResult | TierkeeperError]:
    """One validation over all indexes; one ledger's trouble is its own."""
    results: dict[int, SuiteResult | TierkeeperError] = {}
    facts: list[IndexFacts] = []
    for ledger_id in sorted(set(ledger_ids)):
        try:
            facts.append(_facts_now(stack, ledger_id))
        except TierkeeperError as error:
            results[ledger_id] = error
    return {**results, **(stack.judge(facts) if facts else {})}


def _facts_now(stack: Stack, ledger_id: int) -> IndexFacts:
    stored, sight = certified_copy(stack, ledger_id)
    record = stored.record
    data, index = (
        stack.objects.head(record.data.key),
        stack.objects.get(record.index.key, bytes_max=INDEX_BYTES_MAX),
    )
    if data is None or index is None:
        gone = record.index.key if data is not None else record.data.key
        raise ObjectNotFoundError(f"ledger {ledger_id}: object {gone} is not in {record.bucket}")
    return index_facts(stack, record, data, index, sight.listed)
