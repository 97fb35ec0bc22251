"""Index and block decoding: any bytes decode or raise FormatError. Real bytes: tests/golden."""

from struct import pack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tiering_assets.offload_format.decoder import (
    BlockRange,
    BlockWalker,
    Index,
    block_lengths,
    decode_index,
    iter_block_entries,
)
from tiering_assets.resources.errors import FormatError

PAD = bytes.fromhex("fedcdead")


def index_bytes(
    rows: list[tuple[int, int, int]], *, data_length: int, metadata: bytes = b"meta", **change: int
) -> bytes:
    header = {"magic": 0xDE47DE47, "length": 32 + len(metadata) + 20 * len(rows), "header": 128}
    header |= {"count": len(rows), "metadata_length": len(metadata)} | change
    return (
        pack(
            ">Iiqqii",
            header["magic"],
            header["length"],
            data_length,
            *(header[name] for name in ("header", "count", "metadata_length")),
        )
        + metadata
        + b"".join(pack(">qiq", *row) for row in rows)
    )


def block_bytes(
    entries: list[bytes],
    *,
    first: int = 0,
    padding: bytes = b"",
    magic: int = 0xFBDBABCB,
    length: int | None = None,
) -> bytes:
    frames = b"".join(pack(">iq", len(e), first + i) + e for i, e in enumerate(entries))
    whole = 128 + len(frames) + len(padding) if length is None else length
    return pack(">Iqqq100x", magic, 128, whole, first) + frames + padding


ROWS = [(0, 1, 0), (2, 2, 256), (4, 3, 512)]


def test_an_index_decodes_to_its_blocks():
    index = decode_index(index_bytes(ROWS, data_length=702))
    assert index == Index(702, b"meta", tuple(ROWS))  # type: ignore[arg-type]  # plain tuples compare
    assert block_lengths(index) == [
        BlockRange(0, 256, 0, 1),
        BlockRange(256, 256, 2, 3),
        BlockRange(512, 190, 4, None),
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "index header at byte 0: expected 32 bytes, found 0"),
        (index_bytes(ROWS, data_length=702)[:-1], "index length at byte 4: expected 95, found 96"),
        (index_bytes(ROWS, data_length=702) + b"\0", "index length at byte 4"),
        (index_bytes(ROWS, data_length=702, magic=0xDE47DE46), "expected 0xde47de47, found 0xde47de46"),
        (index_bytes(ROWS, data_length=702, magic=0x3D1FB0BC), "streaming .PIP-76. index"),
        (index_bytes(ROWS, data_length=702, header=127), "block header length at byte 16"),
        (index_bytes([], data_length=702), "number of blocks at byte 24"),
        (index_bytes(ROWS, data_length=702, count=2), "expected 76 bytes, found 96"),
        (index_bytes(ROWS, data_length=702, metadata_length=5), "expected 97 bytes, found 96"),
        (index_bytes(ROWS, data_length=702, metadata_length=-1), "metadata length at byte 28"),
        (index_bytes([(1, 1, 0)], data_length=702), "first index entry at byte 36"),
        (index_bytes([(0, 0, 0)], data_length=702), "first index entry"),
        (index_bytes([(0, 1, 1)], data_length=702), "first index entry"),
        (index_bytes([(0, 1, 0), (2, 3, 256)], data_length=702), "part number at byte 64"),
        (index_bytes([(0, 1, 0), (0, 2, 256)], data_length=702), "first entry id at byte 56"),
        (index_bytes([(0, 1, 0), (2, 2, 151)], data_length=702), "expected at least 152, found 151"),
        (index_bytes([(0, 1, 0), (2, 2, 256)], data_length=395), "expected at least 396, found 395"),
        (index_bytes([(0, 1, 0)], data_length=-1), "data object length at byte 8"),
    ],
)  # fmt: skip
def test_an_index_that_does_not_add_up_is_refused(data, said):
    with pytest.raises(FormatError, match=said):
        decode_index(data)


def test_the_index_of_an_object_that_a_broker_truncated_is_refused_as_such():
    """Entry 5 did not fit a block: the broker uploaded an empty one and reported success."""
    data = index_bytes([(0, 1, 0), (5, 2, 5_242_880)], data_length=5_242_880)
    with pytest.raises(FormatError, match="stopped before entry 5"):
        decode_index(data)


def entries_of(block: bytes, chunk_bytes: int, **expected: int) -> list[tuple[int, bytes]]:
    walker = BlockWalker(block_length=len(block), **{"first_entry_id": 0} | expected)
    found = []
    for start in range(0, len(block), chunk_bytes):
        found += [(i, bytes(p)) for i, p in walker.feed(block[start : start + chunk_bytes])]
    walker.finish()
    assert walker.entries == len(found)
    return found


@given(
    st.lists(st.binary(max_size=30), min_size=1, max_size=8),
    st.integers(0, 2**40),
    st.integers(0, 40),
    st.integers(1, 400),
    st.booleans(),
)
def test_a_block_decodes_the_same_in_chunks_of_any_size(entries, first, pad, chunk, count_known):
    block = block_bytes(entries, first=first, padding=(PAD * 10)[:pad])
    expected = {"entries_expected": len(entries)} if count_known else {}
    found = entries_of(block, chunk, first_entry_id=first, **expected)
    assert found == list(enumerate(entries, start=first))


ONE = [b"one"]


@pytest.mark.parametrize(
    ("block", "expected", "said"),
    [
        (block_bytes(ONE, magic=0xFBDBABCA), {}, "block magic at byte 0"),
        (block_bytes(ONE, magic=0x26A66D32), {}, "streaming .PIP-76. one"),
        (block_bytes(ONE, length=144), {}, "block length at byte 12: expected 143, found 144"),
        (block_bytes(ONE, first=1), {}, "first entry id at byte 20: expected 0, found 1"),
        (block_bytes(ONE)[:127], {}, "at least one entry"),
        (block_bytes([]), {}, "at least one entry"),
        (block_bytes([], padding=PAD * 9), {}, "at least one entry"),
        (block_bytes(ONE, padding=b"\xfe\xdc\xde\xac"), {}, "padding at byte 146: expected 0xad, found 0xac"),
        (block_bytes(ONE, padding=PAD * 4 + b"\0"), {}, "padding at byte 159: expected 0xfe, found 0x00"),
        (block_bytes(ONE, padding=b"\x80" + bytes(11)), {}, "payload length at byte 143"),
        (block_bytes(ONE, padding=pack(">iq", 1, 1)), {}, "payload length at byte 143: expected 0 to 0"),
        (block_bytes(ONE, padding=pack(">iq", 0, 2)), {}, "entry id at byte 147: expected 1, found 2"),
        (block_bytes(ONE * 2), {"entries_expected": 1}, "padding at byte 143"),
        (block_bytes(ONE), {"entries_expected": 2}, "expected entries 0 to 1, found 1 of them"),
        (block_bytes(ONE, padding=PAD * 4), {"entries_expected": 2}, "entries 0 to 1, found 1"),
        (block_bytes(ONE), {"entries_expected": 0}, "padding at byte 128"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunk_bytes", [1, 7, 1000])
def test_a_block_that_does_not_add_up_is_refused(block, expected, said, chunk_bytes):
    with pytest.raises(FormatError, match=said):
        entries_of(block, chunk_bytes, **expected)


def test_offsets_in_messages_count_from_the_start_of_the_object():
    walker = BlockWalker(block_length=143, first_entry_id=0, offset=5_000)
    with pytest.raises(FormatError, match="block magic at byte 5000"):
        list(walker.feed(bytes(143)))


def test_more_bytes_than_the_block_has_are_refused():
    walker = BlockWalker(block_length=143, first_entry_id=0)
    list(walker.feed(block_bytes(ONE)))
    with pytest.raises(FormatError, match="block end at byte 143"):
        walker.feed(b"\xfb")


def test_entries_left_untaken_are_a_callers_mistake():
    walker = BlockWalker(block_length=143, first_entry_id=0)
    walker.feed(block_bytes(ONE))
    with pytest.raises(ValueError, match="not all been taken"):
        walker.finish()


def test_a_huge_payload_length_claims_no_memory():
    block = block_bytes([], padding=pack(">iq", 2**31 - 1, 0), length=2**33)
    walker = BlockWalker(block_length=2**33, first_entry_id=0)
    assert list(walker.feed(block)) == []
    with pytest.raises(FormatError, match="8589934592 bytes"):
        walker.finish()


@given(st.binary(max_size=200))
@example(index_bytes(ROWS, data_length=702))
def test_any_bytes_are_an_index_that_writes_back_or_a_format_error(data):
    try:
        index = decode_index(data)
    except FormatError:
        return
    rows = [tuple(entry) for entry in index.entries]
    written = index_bytes(
        rows,  # type: ignore[arg-type]
        data_length=index.data_object_length,
        metadata=index.ledger_metadata,
    )
    assert written == data


header_then_anything = st.builds(
    lambda rest: pack(">Iqqq100x", 0xFBDBABCB, 128, 128 + len(rest), 0) + rest,
    st.lists(
        st.one_of(
            st.binary(max_size=20),
            st.sampled_from([PAD, pack(">iq", 0, 0), pack(">iq", 2, 0) + b"ab", pack(">iq", 0, 1)]),
        )
    ).map(b"".join),
)


@given(st.one_of(st.binary(max_size=300), header_then_anything), st.integers(1, 64))
def test_any_bytes_are_a_block_that_writes_back_or_a_format_error(data, chunk_bytes):
    try:
        whole = [(i, bytes(p)) for i, p in iter_block_entries(data, first_entry_id=0)]
    except FormatError:
        with pytest.raises(FormatError):
            entries_of(data, chunk_bytes)
        return
    assert entries_of(data, chunk_bytes) == whole
    unpadded = block_bytes([payload for _, payload in whole], length=len(data))
    pad = len(data) - len(unpadded)
    assert unpadded + (PAD * (pad // 4 + 1))[:pad] == data
