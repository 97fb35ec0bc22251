"""Does each record of a segment name the one before it, and repeat its facts? Pure.

Owns: opened -> assigned -> assigned of the next one, or the stream's end; assigned -> attempt ->
failed or offloaded; assigned -> given up. Each names the SHA-256 of the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tiering_assets.audit.streams.certified import places_of
from tiering_assets.audit.streams.stream_faults import Lain, StreamFault, StreamWrong
from tiering_assets.records.stream_models import StreamOpened


def link_faults(before: Lain, link: Lain, ledger_id: int | None) -> Iterator[StreamFault]:
    """Of an assignment, or the stream's end, behind another assignment or the opening."""
    first = isinstance(before.record, StreamOpened)
    named = "the stream's opening" if first else f"segment {before.record.number}"
    yield from _digest(link, ledger_id, named, before.sha256, link.record.previous)


def attempt_faults(assigned: Lain, attempt: Lain, ledger_id: int) -> Iterator[StreamFault]:
    yield from _digest(
        attempt, ledger_id, "the assignment", assigned.sha256, attempt.record.previous
    )
    yield from _ledgers(attempt, ledger_id, ledgers_of(assigned.record))


def failed_faults(attempt: Lain, failed: Lain, ledger_id: int | None) -> Iterator[StreamFault]:
    yield from _digest(failed, ledger_id, "the attempt", attempt.sha256, failed.record.previous)
    yield from _ledgers(failed, ledger_id, attempt.record.ledger_ids)


def given_up_faults(assigned: Lain, given_up: Lain, ledger_id: int) -> Iterator[StreamFault]:
    yield from _digest(
        given_up, ledger_id, "the assignment", assigned.sha256, given_up.record.previous
    )
    yield from _ledgers(given_up, ledger_id, ledgers_of(assigned.record))


def offloaded_faults(assigned: Lain, proof: Lain, ledger_id: int) -> Iterator[StreamFault]:
    """A certificate repeats the assignment: what it is of, and exactly its ranges."""
    yield from _digest(
        proof,
        ledger_id,
        "the assignment",
        assigned.sha256,
        proof.record.assigned_sha256,
        field="assigned_sha256",
    )
    yield from _facts(
        proof,
        ledger_id,
        ("ranges, as assigned", places_of(assigned.record.ranges), places_of(proof.record.ledgers)),
        ("ml_czxid", assigned.record.ml_czxid, proof.record.ml_czxid),
    )


def proven_faults(attempt: Lain, proof: Lain, ledger_id: int | None) -> Iterator[StreamFault]:
    """A certificate is of the copy that its attempt planned."""
    planned, proven = attempt.record, proof.record
    yield from _digest(proof, ledger_id, "the attempt", attempt.sha256, proven.previous)
    yield from _facts(
        proof,
        ledger_id,
        ("bucket", planned.bucket, proven.bucket),
        ("data key", planned.data_key, proven.data.key),
        ("index key", planned.index_key, proven.index.key),
        ("data object size", planned.object_bytes, proven.data.size),
        ("blocks", planned.blocks, sum(len(one.blocks) for one in proven.ledgers)),
    )


def ledgers_of(assigned: Any) -> tuple[int, ...]:
    return tuple(one.ledger_id for one in assigned.ranges)


def _ledgers(one: Lain, ledger_id: int | None, expected: tuple[int, ...]) -> Iterator[StreamFault]:
    yield from _facts(one, ledger_id, ("ledger_ids", expected, one.record.ledger_ids))


def _digest(
    one: Lain,
    ledger_id: int | None,
    named: str,
    expected: str,
    found: str,
    *,
    field: str = "previous",
) -> Iterator[StreamFault]:
    if expected != found:
        yield StreamFault(
            wrong=StreamWrong.LINK,
            key=one.key,
            ledger_id=ledger_id,
            what=f"{field}, SHA-256 of {named}",
            expected=expected,
            found=found,
        )


def _facts(
    one: Lain, ledger_id: int | None, *facts: tuple[str, object, object]
) -> Iterator[StreamFault]:
    for what, expected, found in facts:
        if expected != found:
            yield StreamFault(
                wrong=StreamWrong.FACT,
                key=one.key,
                ledger_id=ledger_id,
                what=what,
                expected=expected,
                found=found,
            )
