"""Golden frames: bytes exchanged with Java bookies, from BookKeeper 4.17."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.bookkeeper import wire_v2
from tiering_assets.resources.bookkeeper.digest import master_key
from tiering_assets.resources.bookkeeper.wire_v2 import (
    AddEntry,
    AddReply,
    BatchReadEntry,
    BatchReply,
    ReadEntry,
    ReadReply,
    decode_reply,
    encode_request,
    error_for_status,
)
from tiering_assets.resources.errors import (
    BookieError,
    BookieNotAuthorizedError,
    FormatError,
    LedgerNotOnBookieError,
)

STORED = bytes.fromhex(
    "00000000000000010000000000000000ffffffffffffffff0000000000000005e3a5f74d68656c6c6f"
)

REQUESTS = [
    (ReadEntry(12345, 7), "000000140202000000000000000030390000000000000007"),
    (ReadEntry(12345, -1), "00000014020200000000000000003039ffffffffffffffff"),
    (
        BatchReadEntry(
            ledger_id=12345, first_entry_id=0, request_id=1, max_count=100, max_bytes=4_194_304
        ),
        "0000002802070000000000000000303900000000000000000000000000000001000000640000000000400000",
    ),
    (
        AddEntry(ledger_id=1, entry_id=0, master_key=master_key(b""), stored=STORED),
        "0000004102010000850bf1071c5e3d8c24235676f8816ae0cbe2f14f" + STORED.hex(),
    ),
]

REPLIES = [
    (
        "00000018020100000000000000000000000000010000000000000000",
        AddReply(status=0, ledger_id=1, entry_id=0),
    ),
    (
        "0000004102020000000000000000000000000001000000000000000000000000000000010000000000000000"
        "ffffffffffffffff0000000000000005e3a5f74d68656c6c6f",
        ReadReply(status=0, ledger_id=1, entry_id=0, stored=memoryview(STORED)),
    ),
    (
        "00000018020200000000000200000000000000010000000000000009",
        ReadReply(status=2, ledger_id=1, entry_id=9, stored=memoryview(b"")),
    ),
    (
        "0000004d02070000000000000000000000000001000000000000000000000000000000010000002900000000"
        "000000010000000000000000ffffffffffffffff0000000000000005e3a5f74d68656c6c6f",
        BatchReply(
            status=0,
            ledger_id=1,
            first_entry_id=0,
            request_id=1,
            records=memoryview(b"\x00\x00\x00\x29" + STORED),
        ),
    ),
]


@pytest.mark.parametrize(("request_", "frame"), REQUESTS)
def test_requests_are_the_bytes_a_java_bookie_reads(request_, frame):
    assert encode_request(request_).hex() == frame


@pytest.mark.parametrize(("frame", "reply"), REPLIES)
def test_replies_of_a_java_bookie_decode(frame, reply):
    data = bytes.fromhex(frame)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert decode_reply(data[4:]) == reply


@pytest.mark.parametrize(("frame", "reply"), REPLIES)
def test_a_reply_cut_short_never_passes_for_whole(frame, reply):
    body = bytes.fromhex(frame)[4:]
    fixed = 32 if isinstance(reply, BatchReply) else 24
    for length in range(fixed):
        with pytest.raises(FormatError):
            decode_reply(body[:length])


@given(st.binary(max_size=120))
def test_garbage_decodes_or_is_a_format_error(data):
    try:
        reply = decode_reply(data)
    except FormatError:
        return
    assert reply.status == int.from_bytes(data[4:8], "big", signed=True)


@given(st.binary(max_size=80), st.sampled_from([1, 2, 7]))
def test_garbage_behind_a_good_header_decodes_or_is_a_format_error(data, opcode):
    try:
        reply = decode_reply(bytes([2, opcode, 0, 0]) + data)
    except FormatError:
        return
    if isinstance(reply, ReadReply):
        assert bytes(reply.stored) == data[20:]
    elif isinstance(reply, BatchReply):
        assert bytes(reply.records) == data[28:]


@pytest.mark.parametrize(
    "header", ["02020001", "03020000", "01020000", "00000002", "02030000", "02040000"]
)
def test_another_version_flag_or_opcode_is_a_format_error(header):
    with pytest.raises(FormatError):
        decode_reply(bytes.fromhex(header) + bytes(20))


@pytest.mark.parametrize(
    ("status", "kind", "name", "retryable"),
    [
        (1, LedgerNotOnBookieError, "ENOLEDGER", False),
        (2, BookieError, "ENOENTRY", True),
        (100, BookieError, "EBADREQ", True),
        (101, BookieError, "EIO", True),
        (102, BookieNotAuthorizedError, "EUA", False),
        (103, BookieError, "EBADVERSION", True),
        (104, BookieError, "EFENCED", True),
        (105, BookieError, "EREADONLY", True),
        (106, BookieError, "ETOOMANYREQUESTS", True),
        (107, BookieError, "EUNKNOWNLEDGERSTATE", True),
        (4711, BookieError, "unknown status", True),
    ],
)
def test_each_status_becomes_its_error(status, kind, name, retryable):
    error = error_for_status(status, bookie_id="bk1:3181", request=ReadEntry(5, 6))
    assert type(error) is kind
    assert error.retryable is retryable
    for part in (name, str(status), "bk1:3181", "ledger 5", "entry 6"):
        assert part in str(error)


def test_no_request_has_anything_that_could_carry_a_flag():
    for kind in (ReadEntry, BatchReadEntry, AddEntry):
        names = {field.name for field in dataclasses.fields(kind)}
        assert not {n for n in names if "flag" in n or "fenc" in n or "recovery" in n}
    assert list(inspect.signature(wire_v2.encode_request).parameters) == ["request"]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_every_read_has_flags_zero(ledger_id, entry_id):
    batch = BatchReadEntry(
        ledger_id=ledger_id, first_entry_id=entry_id, request_id=1, max_count=1, max_bytes=1
    )
    assert encode_request(ReadEntry(ledger_id, entry_id))[6:8] == b"\0\0"
    assert encode_request(batch)[6:8] == b"\0\0"


def test_an_add_refuses_a_key_of_another_size():
    with pytest.raises(ValueError, match="19 bytes"):
        AddEntry(ledger_id=1, entry_id=0, master_key=bytes(19), stored=STORED)


def test_an_error_that_brings_more_bytes_is_a_format_error():
    body = next(
        bytes.fromhex(frame)[4:]
        for frame, reply in REPLIES
        if isinstance(reply, ReadReply) and reply.status == 2
    )
    with pytest.raises(FormatError, match="reply with status 2 and 1 more bytes; expected none"):
        decode_reply(body + b"x")
