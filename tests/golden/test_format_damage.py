"""Damage done to what a broker wrote is never read as the undamaged original."""

from collections.abc import Iterator
from hashlib import sha256

import pytest

from tests.support.golden_objects import EntryFact, golden_ledger
from tiering_assets.offload_format.decoder import block_lengths, decode_index, iter_block_entries
from tiering_assets.offload_format.digests import EntriesDigest
from tiering_assets.resources.errors import FormatError

FRAME_HEAD_BYTES = 12
HEADER_BYTES = 128


def flips(data: bytearray, offsets: Iterator[int] | range) -> Iterator[tuple[int, int]]:
    """Flip each bit at each of `offsets` in place, one at a time, and back again."""
    for offset in offsets:
        for bit in range(8):
            data[offset] ^= 1 << bit
            yield offset, bit
            data[offset] ^= 1 << bit


def entry_facts(block: bytes | bytearray | memoryview, first_entry_id: int) -> list[EntryFact]:
    """As weakly as it can be asked: the number of entries is not known beforehand."""
    entries = iter_block_entries(block, first_entry_id=first_entry_id)
    return [(entry_id, len(p), sha256(p).hexdigest()) for entry_id, p in entries]


@pytest.mark.parametrize(
    ("case", "ledger_id"), [("one-entry", 25), ("exact-fill", 42), ("multi-block", 20)]
)
def test_each_flipped_bit_of_an_index_shows(case, ledger_id):
    original = golden_ledger(case, ledger_id).index()
    metadata = range(32, 32 + len(decode_index(original).ledger_metadata))
    data = bytearray(original)
    refused = 0
    for offset, bit in flips(data, range(len(data))):
        try:
            index = decode_index(bytes(data))
        except FormatError:
            refused += 1
            assert offset not in metadata  # theirs to judge who decode it
        else:
            assert index != decode_index(original), f"bit {bit} of byte {offset}"
    assert refused > 300


@pytest.mark.parametrize(("case", "ledger_id"), [("one-entry", 25), ("terminated", 48)])
def test_each_flipped_bit_of_a_block_shows(case, ledger_id):
    ledger = golden_ledger(case, ledger_id)
    expected = ledger.entries()
    data = bytearray(ledger.data())
    assert entry_facts(data, 0) == expected
    for offset, bit in flips(data, range(len(data))):
        try:
            found = entry_facts(data, 0)
        except FormatError:
            continue
        assert found != expected, f"bit {bit} of byte {offset}"


def test_each_flipped_bit_around_the_payloads_of_a_padded_block_is_refused():
    """Headers, frame heads and six bytes of padding of a full block, with its entry count known."""
    ledger = golden_ledger("exact-fill", 42)
    block = block_lengths(decode_index(ledger.index()))[1]
    assert block.last_entry_id is not None
    data = bytearray(ledger.data()[block.offset : block.offset + block.length])
    count = block.last_entry_id - block.first_entry_id + 1
    heads = list(range(HEADER_BYTES))
    position = HEADER_BYTES
    for _, length, _ in ledger.entries()[block.first_entry_id : block.last_entry_id + 1]:
        heads += range(position, position + FRAME_HEAD_BYTES)
        position += FRAME_HEAD_BYTES + length
    padding = range(position, block.length)
    assert len(padding) == 6
    first = block.first_entry_id
    for offset, bit in flips(data, iter([*heads, *padding])):
        entries = iter_block_entries(data, first_entry_id=first, entries_expected=count)
        with pytest.raises(FormatError, match="at byte"):
            pytest.fail(f"bit {bit} of byte {offset} gave {len(list(entries))} entries")


def test_each_flipped_payload_bit_changes_the_entries_digest():
    ledger = golden_ledger("one-entry", 25)
    data = bytearray(ledger.data())

    def digest() -> str:
        running = EntriesDigest()
        for entry_id, payload in iter_block_entries(data, first_entry_id=0):
            running.update(entry_id, payload)
        return running.hexdigest()

    original = digest()
    seen = {digest() for _ in flips(data, range(HEADER_BYTES + FRAME_HEAD_BYTES, len(data)))}
    assert len(seen) == 8 * ledger.facts["payload_bytes"]
    assert original not in seen


def test_a_block_cut_short_anywhere_is_refused():
    data = golden_ledger("terminated", 48).data()
    for length in range(len(data)):
        with pytest.raises(FormatError):
            list(iter_block_entries(data[:length], first_entry_id=0))


def test_an_index_cut_short_anywhere_is_refused():
    data = golden_ledger("multi-block", 20).index()
    for length in range(len(data)):
        with pytest.raises(FormatError):
            decode_index(data[:length])
