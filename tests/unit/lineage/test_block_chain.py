"""Blocks that follow have no finding, and each way not to follow has one of its own name."""

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.unit.lineage.fleets import SPOILED, drawn, sound_blocks
from tiering_assets.catalogue.columns import BLOCKS
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.lineage.block_chain import ODD_SQL, BlockSpan, Gap, chain_findings
from tiering_assets.resources.table_place import TablePlace


def test_blocks_that_follow_have_no_finding():
    for seed in range(1_000):
        source = drawn(seed)
        blocks, entries = sound_blocks(source)
        source.shuffle(blocks)
        assert chain_findings(blocks, entries) == []
        assert chain_findings(blocks, None) == []


@pytest.mark.parametrize("spoil", SPOILED)
def test_each_way_not_to_follow_is_found_by_its_name(spoil):
    for seed in range(200):
        source = drawn(seed)
        blocks, entries = spoil(source, *sound_blocks(source, blocks=source.randrange(4, 9)))
        source.shuffle(blocks)
        kinds = {kind for kind, _what in chain_findings(blocks, entries)}
        assert kinds & SPOILED[spoil]


def one(part, first, last, offset, length=10):
    return BlockSpan(part, first, last, offset, length)


@pytest.mark.parametrize(
    ("blocks", "entries", "told"),
    [
        ([one(2, 5, 9, 10)], 10, "the first block is missing: no block has entries 0 to 4"),
        ([one(1, 0, 4, 0)], 10, "the last block is missing: no block has entries 5 to 9"),
        ([one(1, 0, 4, 0), one(3, 6, 9, 20)], 10, "no block has entry 5"),
        ([one(1, 0, 4, 0), one(1, 0, 4, 0)], 5, "part 1 is there 2 times"),
        ([one(1, 0, 4, 0), one(2, 3, 9, 10)], 10, "part 2 has entries 3 to 4 once more"),
        ([one(2, 0, 4, 0), one(1, 5, 9, 10)], 10, "part 2 lies before part 1"),
        ([one(1, 0, 4, 0), one(3, 5, 9, 10)], 10, "no part is between parts 1 and 3"),
        ([one(2, 0, 4, 0), one(3, 5, 9, 10)], 10, "part 2 has the first entry, part 1 is missing"),
        ([one(1, 0, 4, 0), one(2, 5, 9, 12)], 10, "bytes 10 to 11 are of no block"),
        ([one(1, 0, 4, 3)], 5, "bytes 0 to 2 are of no block"),
        ([one(1, 0, 4, 0), one(2, 5, 9, 8)], 10, "part 2 begins at byte 8, before byte 10"),
        ([one(1, 0, 9, 0)], 8, "blocks have entries 8 to 9, the ledger has 8 entries"),
        ([one(1, 0, 4, 0, 0)], 5, "no block can be as part 1 is: (1, 0, 4, 0, 0)"),
        ([], 5, "the last block is missing: no block has entries 0 to 4"),
    ],
)
def test_a_finding_says_which_part_entries_or_bytes(blocks, entries, told):
    assert told in [what for _kind, what in chain_findings(blocks, entries)]


def test_a_swap_alone_is_nothing_else():
    blocks = [one(2, 0, 4, 0), one(1, 5, 9, 10)]
    assert [kind for kind, _what in chain_findings(blocks, 10)] == [Gap.SWAP]


def rows(blocks, ledger_id, uid):
    for block in blocks:
        yield {**block._asdict(), "ledger_id": ledger_id, "uid": uid, "topic": "t"}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """(oddness by the SQL, blocks) of each of many attempts, sound and spoiled."""
    place = TablePlace(root=str(tmp_path_factory.mktemp("chains")), options={})
    attempts = {}
    for seed in range(1_000):
        source = drawn(seed)
        blocks, entries = sound_blocks(source, blocks=source.randrange(4, 9))
        attempts[seed, "sound"] = blocks
        for spoil in SPOILED:
            attempts[seed, spoil.__name__] = spoil(source, blocks, entries)[0]
    attempts = {key: blocks for key, blocks in attempts.items() if blocks}
    made = [row for (seed, uid), blocks in attempts.items() for row in rows(blocks, seed, uid)]
    drawn(1).shuffle(made)
    write_deltalake(f"{place.root}/blocks", pa.Table.from_pylist(made, schema=BLOCKS))
    found = answer(Catalogue(place).opened(), ODD_SQL.format(where="topic = 't'")).to_pylist()
    assert len(found) == len(attempts)
    return [(row, attempts[row["ledger_id"], row["uid"]]) for row in found]


def test_the_question_finds_odd_what_has_findings_and_nothing_else(asked):
    """Whether entries reach to the ledger's end it is not told."""
    for row, blocks in asked:
        assert row["odd"] == bool(chain_findings(blocks, None)), (row, blocks)
        assert row["last_entry_id"] == max(block.last_entry_id for block in blocks)
    assert sum(row["odd"] for row, _blocks in asked) > 10_000


def test_numbers_as_great_as_columns_hold_do_not_overflow(tmp_path):
    place = TablePlace(root=str(tmp_path), options={})
    huge = 2**62
    blocks = [one(1, 0, huge - 1, 0, huge), one(2, huge, huge + 5, huge, 2**61)]
    made = [*rows(blocks, 1, "u"), *rows([blocks[0]], 2, "u"), *rows([blocks[1]], 3, "u")]
    write_deltalake(f"{place.root}/blocks", pa.Table.from_pylist(made, schema=BLOCKS))
    found = answer(Catalogue(place).opened(), ODD_SQL.format(where="true")).to_pylist()
    assert {row["ledger_id"]: row["odd"] for row in found} == {1: False, 2: False, 3: True}
