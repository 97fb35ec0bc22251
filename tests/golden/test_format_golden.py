"""What a Pulsar 4.0.8 broker wrote: decoded, compared with what the bookies held, and written
again.
"""

from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from uuid import UUID

import pytest

from tests.support.compare import first_byte_difference, first_entry_difference
from tests.support.golden_objects import GoldenLedger, golden_ledgers
from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.offload_format import keys
from tiering_assets.offload_format.decoder import (
    BlockWalker,
    block_lengths,
    decode_index,
    iter_block_entries,
)
from tiering_assets.offload_format.encoder import BlockEncoder, encode_index
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.bookkeeper.ledger_metadata import index_ledger_metadata

LEDGERS = golden_ledgers()
WITH_DATA = [ledger for ledger in LEDGERS if ledger.has_data]

every_ledger = pytest.mark.parametrize("ledger", LEDGERS, ids=str)
every_data_object = pytest.mark.parametrize("ledger", WITH_DATA, ids=str)


def test_the_golden_set_is_whole():
    """A parametrised test over nothing would pass."""
    assert len(LEDGERS) == 22
    assert [str(ledger) for ledger in LEDGERS if not ledger.has_data] == [
        "exact-fill-41",
        "multi-block-20",
    ]


def planned(ledger: GoldenLedger) -> tuple[BlockPlan, ...]:
    sizes = [length for _, length, _ in ledger.entries()]
    return plan_layout_from_sizes(sizes, block_bytes_max=ledger.facts["block_size_max"])


def walked(ledger: GoldenLedger, chunk_bytes: int) -> Iterator[tuple[int, memoryview]]:
    """Entries of the broker's data object, each block fed in chunks as ranged reads would give."""
    data = memoryview(ledger.data())
    for block in block_lengths(decode_index(ledger.index())):
        last = block.last_entry_id
        walker = BlockWalker(
            block_length=block.length,
            first_entry_id=block.first_entry_id,
            entries_expected=None if last is None else last - block.first_entry_id + 1,
            offset=block.offset,
        )
        end = block.offset + block.length
        for start in range(block.offset, end, chunk_bytes):
            yield from walker.feed(data[start : min(start + chunk_bytes, end)])
        walker.finish()


@every_ledger
def test_index_decodes_to_what_the_manifest_says(ledger):
    data, facts = ledger.index(), ledger.facts
    assert sha256(data).hexdigest() == facts["index_sha256"]
    index = decode_index(data)
    assert index.data_object_length == facts["data_size"]
    assert [list(entry) for entry in index.entries] == [
        [first, part, offset] for first, part, offset in facts["index"]["entries"]
    ]
    assert index.ledger_metadata.hex() == facts["index"]["metadata_hex"]
    assert [(b.first_entry_id, b.offset, b.length) for b in block_lengths(index)] == [
        (b["first"], b["offset"], b["length"]) for b in facts["blocks"]
    ]


@every_ledger
def test_layout_from_entry_lengths_is_the_brokers(ledger):
    plans = planned(ledger)
    assert [
        (p.first_entry_id, p.part_number, p.offset, p.block_length, p.entries) for p in plans
    ] == [
        (b["first"], b["part"], b["offset"], b["length"], b["entries"])
        for b in ledger.facts["blocks"]
    ]
    assert sum(p.payload_bytes for p in plans) == ledger.facts["payload_bytes"]


@every_ledger
def test_index_written_again_is_the_brokers_byte_for_byte(ledger):
    """From nothing but the entries' lengths and the ledger's node with its creation time."""
    metadata = index_ledger_metadata(
        ledger.znode(),
        ledger_id=ledger.ledger_id,
        ctime_ms=ledger.facts["bk_znode_stat"]["ctime"],
    )
    ours = encode_index(planned(ledger), metadata, ledger.facts["data_size"])
    assert first_byte_difference(ledger.index(), ours) is None


@every_data_object
@pytest.mark.parametrize("chunk_bytes", [8 * 1024 * 1024, 4093], ids=["8MiB", "4093B"])
def test_data_object_holds_what_the_bookies_held(ledger, chunk_bytes):
    found = [
        (entry_id, len(p), sha256(p).hexdigest()) for entry_id, p in walked(ledger, chunk_bytes)
    ]
    assert found == ledger.entries()


@every_data_object
def test_data_object_written_again_is_the_brokers_byte_for_byte(ledger):
    theirs = ledger.data()
    assert sha256(theirs).hexdigest() == ledger.facts["data_sha256"]
    entries = [bytes(payload) for _, payload in walked(ledger, len(theirs))]
    encoder = BlockEncoder(1024)  # grows
    for plan in planned(ledger):
        encoder.begin(plan)
        encoder.add_many(plan.first_entry_id, entries[plan.first_entry_id : plan.last_entry_id + 1])
        ours = encoder.finish()
        block = memoryview(theirs)[plan.offset : plan.offset + plan.block_length]
        assert first_byte_difference(block, ours) is None, f"part {plan.part_number}"
    assert sum(plan.block_length for plan in planned(ledger)) == len(theirs)


@every_ledger
def test_keys_and_user_metadata_are_the_brokers(ledger):
    facts = ledger.facts
    uid = UUID(facts["uuid"])
    assert keys.data_key(uid, ledger.ledger_id) == facts["data_key"]
    assert keys.index_key(uid, ledger.ledger_id) == facts["index_key"]
    assert keys.parse_key(facts["data_key"]) == (uid, ledger.ledger_id, False)
    assert keys.parse_key(facts["index_key"]) == (uid, ledger.ledger_id, True)
    for role in ("data", "index"):
        theirs = facts[f"{role}_head"]["metadata"]
        keys.check_format_version(theirs)
        ours = keys.user_metadata(
            role=role,
            ml_name=theirs["managedledgername"],
            software_version=theirs["s3managedledgeroffloadersoftwareversion"],
            git_sha=theirs["s3managedledgeroffloadersoftwaregitsha"],
            cluster=theirs["pulsarclustername"],
            instance="c0ffee",
        )
        assert ours == theirs | {"tierkeeperinstance": "c0ffee"}


def test_two_ledgers_of_one_topic_differ_in_some_entry():
    """All of their framing is equal, so nothing but the payloads can tell a swap."""
    one, other = (ledger for ledger in LEDGERS if str(ledger) in {"one-entry-25", "one-entry-26"})
    difference = first_entry_difference(
        iter_block_entries(one.data(), first_entry_id=0),
        iter_block_entries(other.data(), first_entry_id=0),
    )
    assert difference is not None
    assert (difference.entry_id, difference.what) == (0, "payload")


def test_index_entries_of_the_golden_multi_block_ledgers_end_where_the_next_begins():
    for ledger in LEDGERS:
        blocks = block_lengths(decode_index(ledger.index()))
        for block, after in pairwise(blocks):
            assert block.last_entry_id == after.first_entry_id - 1
            assert block.offset + block.length == after.offset
