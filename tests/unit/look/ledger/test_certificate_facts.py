from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.audited_bucket import put_chain
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.two_checkers import tool
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.look.ledger.verification import gate_faults, inconsistencies
from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES
from tiering_assets.offload_format.digests import object_digest
from tiering_assets.records.codec import encode_record

STORE = SimulatedObjectStore()
CERTIFICATE = put_chain(STORE, RecordBook(STORE, "inst"), 41).certificate
AT = CERTIFICATE.verified_at
MINUTE = timedelta(minutes=1)
NUMBERS = ("part_number", "first_entry_id", "last_entry_id", "offset", "block_length")


def changed(number, **values):
    blocks = list(CERTIFICATE.blocks)
    blocks[number] = replace(blocks[number], **values)
    return replace(CERTIFICATE, blocks=tuple(blocks))


def test_a_certificate_as_it_was_written_holds_together():
    assert inconsistencies(CERTIFICATE) == []
    assert len(CERTIFICATE.blocks) > 1


@given(
    st.integers(0, len(CERTIFICATE.blocks) - 1),
    st.sampled_from((*NUMBERS, "payload_bytes")),
    st.integers(-3, 2**40).filter(bool),
)
def test_any_other_number_of_a_block_contradicts_the_rest(number, field, by):
    bad = changed(number, **{field: getattr(CERTIFICATE.blocks[number], field) + by})
    assert inconsistencies(bad)
    assert tool.contradictions(encode_record(bad))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"entries": 1}, "entries: expected 8, found 1"),
        ({"payload_bytes": 1}, "payload bytes: expected"),
        ({"blocks": ()}, "last entry of its blocks: expected 7, found -1"),
        ({"blocks": CERTIFICATE.blocks[:-1]}, "last entry of its blocks: expected 7"),
        ({"blocks": CERTIFICATE.blocks[::-1]}, "block 1: part number"),
        ({"uid": UUID(int=1)}, "data key: expected 00000000-0000-0000-0000-000000000001-ledger-41"),
        ({"data": replace(CERTIFICATE.data, sha256="0" * 64)}, "data digest: expected"),
        ({"data": replace(CERTIFICATE.data, size=1)}, "data object size: expected"),
        ({"index": replace(CERTIFICATE.index, sha256="?")}, "should hold a SHA-256 does not"),
        ({"ledger": replace(CERTIFICATE.ledger, ledger_id=42)}, "index key: expected"),
        ({"ledger": replace(CERTIFICATE.ledger, ledger_id=-1)}, "ledger id"),
        ({"index": replace(CERTIFICATE.index, sha256="0" * 63)}, "hold a SHA-256 does not"),
        ({"index": replace(CERTIFICATE.index, sha256="g" * 64)}, "hold a SHA-256 does not"),
    ],
)
def test_each_contradiction_is_named(values, said):
    bad = replace(CERTIFICATE, **values)
    assert any(said in one for one in inconsistencies(bad))
    assert tool.contradictions(encode_record(bad))


def gate(certificate, *, ledger_id=41, uid=CERTIFICATE.uid, now=AT):
    return gate_faults(certificate, ledger_id=ledger_id, uid=uid, now=now, skew=MINUTE)


def test_the_gate_is_told_of_the_wrong_ledger_attempt_time_and_sums():
    assert gate(CERTIFICATE) == []
    assert gate(CERTIFICATE, ledger_id=7) == ["the certificate is of ledger 41, not of 7"]
    [said] = gate(CERTIFICATE, uid=UUID(int=1))
    assert said.startswith(f"the certificate is of attempt {CERTIFICATE.uid}, not of")
    assert gate(CERTIFICATE, now=AT - MINUTE) == []
    [said] = gate(CERTIFICATE, now=AT - MINUTE - timedelta(microseconds=1))
    assert said.startswith("the certificate is dated in the future")
    [said] = gate(replace(CERTIFICATE, entries=1))
    assert said == "the certificate contradicts itself: entries: expected 8, found 1"


def consistent(blocks):
    """A certificate whose sums and digest are those of other blocks."""
    return replace(
        CERTIFICATE,
        blocks=tuple(blocks),
        payload_bytes=sum(block.payload_bytes for block in blocks),
        data=replace(
            CERTIFICATE.data,
            size=sum(block.block_length for block in blocks),
            sha256=object_digest(block.sha256 for block in blocks),
        ),
    )


def test_a_block_of_no_entries_is_none():
    first, *rest = CERTIFICATE.blocks
    empty = replace(first, part_number=1, last_entry_id=-1, payload_bytes=0, block_length=128)
    moved = [
        replace(block, part_number=block.part_number + 1, offset=block.offset + 128)
        for block in (first, *rest)
    ]
    assert inconsistencies(consistent([empty, *moved])) == [
        "block 1: 128 bytes cannot hold 0 entries of 0 payload bytes"
    ]


def test_a_block_of_less_than_no_bytes_is_none():
    first, second, *rest = CERTIFICATE.blocks
    by = first.payload_bytes + 1
    blocks = [
        replace(first, payload_bytes=-1),
        replace(
            second,
            payload_bytes=second.payload_bytes + by,
            block_length=second.block_length + by,
        ),
    ]
    for block in rest:
        blocks.append(replace(block, offset=block.offset + by))
    [said] = inconsistencies(consistent(blocks))
    assert said.startswith("block 1: ")
    assert said.endswith("of -1 payload bytes")


def test_a_block_that_is_too_short_for_its_entries_is_none():
    first, second, *rest = CERTIFICATE.blocks
    entries = first.last_entry_id - first.first_entry_id + 1
    short = HEADER_BYTES + FRAME_BYTES * entries + first.payload_bytes - 1
    blocks = [replace(first, block_length=short)]
    blocks.append(replace(second, offset=short))
    for block in rest:
        blocks.append(replace(block, offset=blocks[-1].offset + blocks[-1].block_length))
    [said] = inconsistencies(consistent(blocks))
    assert said.startswith(f"block 1: {short} bytes cannot hold")


def test_more_bytes_than_bookkeeper_counts_are_too_many():
    short = replace(CERTIFICATE.ledger, length=CERTIFICATE.payload_bytes - 1)
    [said] = inconsistencies(replace(CERTIFICATE, ledger=short))
    assert said == (
        f"payload bytes: at most {short.length} by BookKeeper, found {CERTIFICATE.payload_bytes}"
    )
