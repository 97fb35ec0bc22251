"""Messages come out of Pulsar entries as they went in, and any other order or byte changes the
hash.
"""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.content import (
    KINDS,
    ContentHash,
    Kind,
    content_of,
    even_batch,
    iter_payloads,
    single_payload,
    split_batch,
)
from tiering_assets.resources.errors import FormatError

# As the public client wrote them for "first" and for a batch of "a", "bc": magic and CRC-32C,
# MessageMetadata (producer_name, sequence_id, publish_time), SingleMessageMetadata (payload_size,
# sequence_id).
METADATA = b"\x0a\x03p-1\x10\x00\x18\x01"
HEAD = b"\x0e\x01\xde\xad\xbe\xef" + struct.pack(">I", len(METADATA)) + METADATA


def in_batch(payload):
    metadata = b"\x12\x01k\x18" + bytes([len(payload)]) + b"\x40\x07"
    return struct.pack(">I", len(metadata)) + metadata + payload


def split(entry, *, batched):
    view = memoryview(entry)
    return [
        bytes(message) for message in (split_batch(view) if batched else [single_payload(view)])
    ]


def test_a_single_message_is_what_follows_the_metadata():
    assert split(HEAD + b"first", batched=False) == [b"first"]


def test_a_message_without_checksum_or_with_broker_metadata_is_found_too():
    bare = struct.pack(">I", len(METADATA)) + METADATA + b"first"
    assert split(bare, batched=False) == [b"first"]
    assert split(b"\x0e\x02" + struct.pack(">I", 3) + b"abc" + HEAD + b"x", batched=False) == [b"x"]


def test_a_batch_gives_its_messages_in_order():
    entry = HEAD + in_batch(b"a") + in_batch(b"") + in_batch(b"bc")
    assert split(entry, batched=True) == [b"a", b"", b"bc"]


@given(st.lists(st.binary(max_size=300)), st.booleans())
def test_the_size_of_a_message_is_read_wherever_its_metadata_has_it(payloads, size_first):
    """Of one byte or two, first as the public client writes it, or after another field."""

    def entry(payload):
        size = len(payload)
        varint = bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])
        metadata = b"\x18" + varint + b"\x40\x07" if size_first else b"\x40\x07\x18" + varint
        return struct.pack(">I", len(metadata)) + metadata + payload

    assert split(HEAD + b"".join(map(entry, payloads)), batched=True) == payloads


def numbered(payload, number):
    """As the public client writes it: size first, then a sequence id of one byte or two."""
    sequence = bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80, number >> 7])
    metadata = b"\x18" + bytes([len(payload)]) + b"\x40" + sequence
    return struct.pack(">I", len(metadata)) + metadata + payload


@given(
    st.integers(0, 127), st.integers(0, 260), st.integers(1, 9), st.integers(0, 3), st.booleans()
)
@example(1, 120, 9, 0, True)  # the last number is a byte longer, and its payload one shorter
def test_an_even_batch_is_taken_whole_and_no_other(size, first, count, cut, one_differs):
    payloads = [bytes([n]) * size for n in range(count)]
    if one_differs:
        payloads[-1] = payloads[-1][1:]
    entry = HEAD + b"".join(numbered(p, first + n) for n, p in enumerate(payloads))
    even = even_batch(memoryview(entry[: len(entry) - cut]))
    lengths = {(len(numbered(p, first + n)), len(p)) for n, p in enumerate(payloads)}
    if cut == 0 and len(lengths) == 1:
        assert even == (count, len(payloads[0]), b"".join(payloads))
    elif even is not None:
        assert cut
        assert even[2] == b"".join(split(entry[: len(entry) - cut], batched=True))


@given(st.lists(st.binary(max_size=12)), st.binary(max_size=20))
def test_what_is_taken_whole_is_what_is_split(payloads, rest):
    entry = memoryview(HEAD + b"".join(numbered(p, 5) for p in payloads) + rest)
    if (even := even_batch(entry)) is not None:
        found = split(entry, batched=True)
        assert (len(found), {len(p) for p in found}) == (even[0], {even[1]})
        assert b"".join(found) == even[2]


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_split_or_refused(data, batched):
    try:
        found = split(HEAD + data if batched else data, batched=batched)
    except FormatError:
        return
    assert sum(map(len, found)) <= len(data)


@pytest.mark.parametrize("cut", [1, 5, 8])
def test_an_entry_that_ends_too_early_is_refused(cut):
    with pytest.raises(FormatError):
        split((HEAD + in_batch(b"abc"))[: len(HEAD) + cut], batched=True)


def test_the_same_kind_gives_the_same_messages_and_more_of_them_a_longer_run():
    kind = Kind(name="x", message_bytes=33, messages=10)
    assert list(iter_payloads(kind, 5)) == list(iter_payloads(kind, 9))[:5]
    assert {len(p) for p in iter_payloads(kind, 9)} == {33}


def test_the_hash_depends_on_order_on_lengths_and_on_every_message():
    sent = [b"ab", b"c", b"d"]
    others = ([b"c", b"ab", b"d"], [b"a", b"bc", b"d"], [b"ab", b"c"], [b"ab", b"c", b"e"])
    assert content_of(sent) == content_of(list(sent))
    assert len({content_of(other).sha256 for other in (*others, sent)}) == len(others) + 1


def test_entries_give_the_hash_of_their_messages():
    batch, single = ContentHash(), ContentHash()
    batch.feeder(batched=True)(memoryview(HEAD + in_batch(b"a") + in_batch(b"bc")))
    for payload in (b"a", b"bc"):
        single.feeder(batched=False)(memoryview(HEAD + payload))
    assert batch.content() == single.content() == content_of([b"a", b"bc"])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_smaller_run_sends_whole_batches(kind):
    messages = kind.scaled(0.013)
    assert 0 < messages < kind.messages
    assert not kind.batched or messages % 500 == 0
