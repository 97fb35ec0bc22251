"""Read every byte back, compare it with what the bookies served, certify. design section 6.1, step
5.

The order is the contract: HEAD both objects, read back with the independent decoder, read the
bookies' digests (from the copy's rows, or from the bookies again when an earlier run copied),
compare, expectation suite, HEAD again, certificate, signed where a key is configured (only if
absent). A mismatch quarantines the attempt and nothing is ever published from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from tiering_assets.ground.effects import reach
from tiering_assets.ground.signing import load_signer
from tiering_assets.ground.stack import Stack
from tiering_assets.ground.task_progress import in_phase, telling
from tiering_assets.look.ledger.plan import LedgerPlan
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.ledger.verification import (
    block_facts,
    find_differences,
    rows_by_part,
    second_read_differences,
    second_read_parts,
)
from tiering_assets.offload_format.block import HEADER_BYTES
from tiering_assets.offload_format.decoder import decode_index
from tiering_assets.offload_format.digests import object_digest
from tiering_assets.offload_format.keys import check_format_version
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.records import keys
from tiering_assets.records.codec import encode_record
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    ObjectFacts,
    Signature,
    SuiteResult,
)
from tiering_assets.records.signature import Signer
from tiering_assets.records.stored import Stored
from tiering_assets.resources.bookkeeper.agreed_reads import replicas_wanted
from tiering_assets.resources.errors import (
    ExpectationError,
    IntegrityError,
    ObjectNotFoundError,
    TierkeeperError,
)
from tiering_assets.resources.object_store.store import ObjectHead
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, TaskKind, revive
from tiering_assets.tasks.runner import split_task


@dataclass(frozen=True, slots=True, kw_only=True)
class ToVerify:
    """An attempt whose objects are in the bucket. `source_rows` is None when its copy's are
    lost.
    """

    plan: LedgerPlan
    attempt: Stored[Attempt]
    source_rows: Mapping[int, BlockRow] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Objects:
    data: ObjectHead
    index: ObjectHead
    index_body: bytes


@in_phase("verify")
def verify_attempts(
    stack: Stack, attempts: Sequence[ToVerify]
) -> dict[int, Stored[Certificate] | TierkeeperError]:
    """Verify a batch; returns a certificate or the error of each ledger."""
    signer = load_signer(stack.settings)
    results: dict[int, Stored[Certificate] | TierkeeperError] = {}
    found: dict[int, _Objects] = {}
    for item in attempts:
        try:
            with stack.spending_for(item.plan.ml_name):
                found[item.plan.ledger_id] = _objects(stack, item.attempt.record)
        except TierkeeperError as error:
            results[item.plan.ledger_id] = error
    present = [item for item in attempts if item.plan.ledger_id in found]
    rows = _read(stack, present, found)
    reach("verify.read_back", *found)
    proven: list[ToVerify] = []
    for item in present:
        try:
            _compare(item, rows[str(item.attempt.record.uid)])
            _check_index(item, found[item.plan.ledger_id])
            proven.append(item)
        except TierkeeperError as error:
            results[item.plan.ledger_id] = _quarantined(stack, item, error)
    suites = stack.judge([_facts(item, found, rows) for item in proven]) if proven else {}
    for item in proven:
        ledger_id = item.plan.ledger_id
        try:
            stored = rows[str(item.attempt.record.uid)][TaskKind.READ_BACK]
            with stack.spending_for(item.plan.ml_name):
                results[ledger_id] = _certify(
                    stack, item, found[ledger_id], stored, suites[ledger_id], signer
                )
        except TierkeeperError as error:
            results[ledger_id] = _quarantined(stack, item, error)
    return results


Rows = dict[TaskKind, list[BlockRow]]


def _read(
    stack: Stack, items: Sequence[ToVerify], found: Mapping[int, _Objects]
) -> dict[str, Rows]:
    tasks: list[BlockTask] = []
    by_attempt: dict[str, Rows] = {}
    for item in items:
        record = item.attempt.record
        by_attempt[str(record.uid)] = {TaskKind.READ_BACK: [], TaskKind.READ_SOURCE: []}
        unchecked = item.plan.source.is_unchecked
        how_many = "all" if unchecked else stack.settings.verify.second_replica
        second = second_read_parts(item.plan.blocks, how_many)
        whole = BlockTask(
            kind=TaskKind.READ_BACK,
            attempt=str(record.uid),
            source=item.plan.source,
            data_key=record.data_key,
            blocks=item.plan.blocks,
            version_id=found[item.plan.ledger_id].data.version_id,
            topic=item.plan.ml_name,
            budget_key=stack.budget_key,
        )
        pieces = split_task(whole, bytes_max=stack.settings.offload.task_bytes)
        tasks += pieces
        for piece in pieces:
            # Without the copy's rows all blocks are read from the bookies again; with them only
            # those that verify.second_replica asks another replica for.
            blocks = tuple(
                b for b in piece.blocks if item.source_rows is None or b.part_number in second
            )
            if blocks:
                tasks.append(
                    replace(piece, kind=TaskKind.READ_SOURCE, blocks=blocks, version_id=None)
                )
    if tasks:
        with telling(stack, "reading back", tasks) as count:
            rows = stack.runner.run(tasks, progress=count)
        for row in rows:
            by_attempt[row.attempt][row.kind].append(row)
    return by_attempt


def _objects(stack: Stack, record: Attempt) -> _Objects:
    data, index = (
        stack.objects.head(record.data_key),
        stack.objects.get(record.index_key, bytes_max=INDEX_BYTES_MAX),
    )
    if data is None or index is None:
        key = record.data_key if data is None else record.index_key
        raise ObjectNotFoundError(
            f"ledger {record.ledger.ledger_id}: object {key} is not in {record.bucket}"
        )
    check_format_version(data.metadata)
    check_format_version(index.head.metadata)
    return _Objects(data=data, index=index.head, index_body=index.body)


def _compare(item: ToVerify, rows: Rows) -> None:
    failed = next((r for kind in rows.values() for r in kind if r.error), None)
    if failed is not None:
        raise revive(
            failed,
            f"ledger {item.plan.ledger_id} block {failed.part_number}: {failed.error}",
        )
    from_bookies = rows_by_part(rows[TaskKind.READ_SOURCE])
    unchecked = item.plan.source.is_unchecked
    differences = (
        [] if item.source_rows is None else second_read_differences(item.source_rows, from_bookies)
    )
    differences += find_differences(
        plan=item.plan.blocks,
        source=dict(item.source_rows)
        if item.source_rows is not None and not unchecked
        else from_bookies,
        stored=rows_by_part(rows[TaskKind.READ_BACK]),
        last_entry_id=item.plan.facts.last_entry_id,
    )
    if differences:
        raise IntegrityError(
            f"ledger {item.plan.ledger_id}: {item.attempt.record.data_key} differs from what the "
            f"bookies serve: {'; '.join(differences[:5])}"
        )


def _check_index(item: ToVerify, found: _Objects) -> None:
    """The index object must describe exactly the planned blocks of exactly this data object."""
    plan, index = item.plan, decode_index(found.index_body)
    want = [(b.first_entry_id, b.part_number, b.offset) for b in plan.blocks]
    have = [(e.first_entry_id, e.part_number, e.offset) for e in index.entries]
    for name, expected, value in (
        ("index entries", want, have),
        ("data object length in the index", plan.object_bytes, index.data_object_length),
        ("data object size", plan.object_bytes, found.data.size),
        ("index object size", len(found.index_body), found.index.size),
    ):
        if expected != value:
            raise IntegrityError(
                f"ledger {plan.ledger_id}: {name}: expected {expected}, found {value}"
            )


def _facts(item: ToVerify, found: Mapping[int, _Objects], rows: Mapping[str, Rows]) -> IndexFacts:
    plan, objects = item.plan, found[item.plan.ledger_id]
    read = rows_by_part(rows[str(item.attempt.record.uid)][TaskKind.READ_BACK])
    return IndexFacts(
        ledger_id=plan.ledger_id,
        index=objects.index_body,
        index_size=objects.index.size,
        data_size=objects.data.size,
        headers={part: bytes.fromhex(row.header) for part, row in read.items()},
        last_entry_id=plan.facts.last_entry_id,
        ledger_length=plan.facts.length,
        payload_bytes=plan.payload_bytes,
        topic_entries=plan.listed.entries,
        topic_bytes=plan.listed.size,
    )


def read_headers(stack: Stack, certificate: Certificate) -> dict[int, bytes]:
    """Block headers as they lie in the store now; the release gate's own look."""
    return {
        block.part_number: stack.objects.get_range(
            certificate.data.key,
            start=block.offset,
            length=HEADER_BYTES,
            version_id=certificate.data.version_id,
        )
        for block in certificate.blocks
    }


def _certify(
    stack: Stack,
    item: ToVerify,
    found: _Objects,
    stored_rows: Sequence[BlockRow],
    suite: SuiteResult,
    signer: Signer | None,
) -> Stored[Certificate]:
    record, plan = item.attempt.record, item.plan
    if not suite.success:
        raise ExpectationError(
            f"ledger {plan.ledger_id}: expectation suite {suite.name} failed: "
            f"{', '.join(suite.failed)}"
        )
    again = stack.objects.head(record.data_key)
    if again is None or again.etag != found.data.etag:
        raise IntegrityError(
            f"ledger {plan.ledger_id}: {record.data_key} changed while it was read back"
        )
    rows = rows_by_part(stored_rows)
    certificate = Certificate(
        ledger=record.ledger,
        uid=record.uid,
        ml_name=record.ml_name,
        bucket=record.bucket,
        entries=sum(row.entries for row in rows.values()),
        payload_bytes=sum(row.payload_bytes for row in rows.values()),
        data=ObjectFacts(
            key=record.data_key,
            size=found.data.size,
            etag=found.data.etag,
            sha256=object_digest(rows[b.part_number].sha256 for b in plan.blocks),
            version_id=found.data.version_id,
        ),
        index=ObjectFacts(
            key=record.index_key,
            size=found.index.size,
            etag=found.index.etag,
            sha256=sha256(found.index_body).hexdigest(),
            version_id=found.index.version_id,
        ),
        blocks=block_facts(plan.blocks, rows),
        suites=(suite,),
        verified_at=stack.now(),
        seconds=_seconds(rows),
        copy_seconds=None if item.source_rows is None else _seconds(item.source_rows),
        replicas_agreed=replicas_wanted(plan.source.write_quorum)
        if plan.source.is_unchecked
        else None,
        writer=stack.writer,
        previous=item.attempt.sha256,
        block_digest="frames",
    )
    if signer is not None:
        signed = Signature(**signer.sign(encode_record(certificate)))
        certificate = replace(certificate, signature=signed)
    written, _ours = stack.book.create_or_read(
        keys.certificate(plan.ledger_id, record.uid), certificate
    )
    reach("verify.certified", plan.ledger_id, topic=record.ml_name, attempt=record.uid)
    return written


def _seconds(rows: Mapping[int, BlockRow]) -> float:
    return round(sum(row.seconds for row in rows.values()), 3)


def _quarantined(stack: Stack, item: ToVerify, error: TierkeeperError) -> TierkeeperError:
    """Record an integrity failure; an outage says nothing about the bytes and records nothing."""
    if error.retryable:
        return error
    record = item.attempt.record
    quarantine(
        stack,
        record.ledger.ledger_id,
        record.uid,
        ml_name=record.ml_name,
        reason=str(error),
        previous=item.attempt.sha256,
    )
    reach("verify.quarantined", record.ledger.ledger_id, topic=record.ml_name, attempt=record.uid)
    return error
