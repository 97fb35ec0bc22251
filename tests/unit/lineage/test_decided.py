"""Messages of aborted transactions never appear, and an undecided one is told."""

import random
from itertools import count, pairwise

import pytest

from tests.support.pulsar_entries import message
from tiering_assets.cold.transactions import ABORT, COMMIT
from tiering_assets.lineage.messages import decided
from tiering_assets.lineage.messages.hot_entries import entries_of
from tiering_assets.lineage.messages.options import cold_options
from tiering_assets.lineage.messages.read_messages import read_messages
from tiering_assets.lineage.placed_block import PlacedBlock, block_of_bookies
from tiering_assets.resources.errors import CatalogueError

ML_NAME = "public/default/persistent/orders"
TIME = 1_795_247_080_670
MOST, LEAST, MARKER = 23, 22, 20  # fields of the metadata


def of(txn, payload):
    return message(TIME, (MOST, txn[0]), (LEAST, txn[1]), payload=payload)


def marker(kind, txn):
    return message(TIME, (MARKER, kind), (MOST, txn[0]), (LEAST, txn[1]))


class Stream:
    """Entries of a topic in blocks of some ledgers."""

    def __init__(self, *blocks):
        self.blocks: list[PlacedBlock] = []
        self.read_blocks: list[PlacedBlock] = []
        self._payloads = {}
        for number, payloads in enumerate(blocks):
            ledger, part = divmod(number, 2)
            first = 0 if part == 0 else self.blocks[-1].last_entry_id + 1
            block = block_of_bookies(
                ML_NAME, ledger, part + 1, range(first, first + len(payloads)), length=100
            )
            self.blocks.append(block)
            self._payloads[block] = payloads

    def read(self, block):
        self.read_blocks.append(block)
        return entries_of(block.ledger_id, block.first_entry_id, self._payloads[block])

    def before(self, block):
        return reversed(self.blocks[: self.blocks.index(block)])

    def after(self, block):
        return iter(self.blocks[self.blocks.index(block) + 1 :])

    def rows(self, begin=0, upto=None, **options):
        given = {"topic": "public/default/orders", "columns": "payload,marker,error"}
        asked = cold_options({**given, "transactions": "committed", **options}).messages
        some = self.blocks[begin:upto]
        found = read_messages(self.read, some, asked, before=self.before, after=self.after)
        return [row for _, batch in found for row in batch.to_pylist()]

    def payloads(self, *where, **options):
        return [row["payload"] for row in self.rows(*where, **options)]


A, B, C = (0, 1), (0, 2), (7, 2**40)


def test_what_was_committed_is_told_and_what_was_aborted_is_not():
    stream = Stream(
        [message(TIME, payload=b"plain"), of(A, b"a1"), of(B, b"b1"), marker(COMMIT, A)],
        [of(C, b"c1"), marker(ABORT, B), marker(COMMIT, C), message(TIME, payload=b"last")],
    )
    assert stream.payloads() == [b"plain", b"a1", b"c1", b"last"]
    every = stream.payloads(transactions="all")
    assert every == [b"plain", b"a1", b"b1", b"c1", b"last"]
    kinds = [row["marker"] for row in stream.rows(markers="true")]
    assert kinds == [None, None, COMMIT, None, ABORT, COMMIT, None]


def test_an_end_in_a_later_ledger_is_looked_for_and_each_block_read_once_for_it():
    plain = [message(TIME, payload=b"x")]
    stream = Stream([of(A, b"a")], [of(A, b"b")], plain, plain, [marker(ABORT, A)], plain)
    assert stream.payloads(0, 1) == []
    assert stream.read_blocks == [stream.blocks[0], *stream.blocks[:5]]
    stream.read_blocks.clear()
    assert stream.payloads(0, 2) == []
    assert len(stream.read_blocks) == 2 + 5


def test_an_undecided_one_is_named_or_a_row():
    stream = Stream([message(TIME, payload=b"x"), of(A, b"a"), of(B, b"b")], [marker(COMMIT, B)])
    with pytest.raises(CatalogueError, match="ledger 0, entry 1: transaction 0:1 is neither"):
        stream.rows()
    rows = stream.rows(on_error="row")
    assert [row["payload"] for row in rows] == [b"x", None, b"b"]
    assert "transaction 0:1 is neither committed nor aborted" in rows[1]["error"]


def test_one_that_ends_too_far_on_is_undecided(monkeypatch):
    monkeypatch.setattr(decided, "LOOKED_MAX", 150)
    plain = [message(TIME, payload=b"x")]
    assert Stream([of(A, b"a")], [marker(COMMIT, A)]).payloads() == [b"a"]
    far = Stream([of(A, b"a")], plain, plain, [marker(COMMIT, A)])
    with pytest.raises(CatalogueError, match="transaction 0:1 is neither"):
        far.rows()


def test_a_marker_of_another_kind_decides_nothing():
    with pytest.raises(CatalogueError, match="neither committed nor aborted"):
        Stream([of(A, b"a"), marker(10, A), message(TIME, (MARKER, COMMIT))]).rows()


@pytest.mark.parametrize("seed", range(150))
def test_random_streams_are_as_their_coordinator_had_them(seed):
    """Begun anywhere, cut into blocks anywhere, with transactions that overlap."""
    chance, names = random.Random(seed), count(1)
    entries: list[bytes] = []
    sent: list[tuple[tuple[int, int] | None, bytes] | None] = []
    became: dict[tuple[int, int], bool] = {}
    going: list[tuple[int, int]] = []
    for number in range(chance.randrange(5, 60)):
        if chance.random() < 0.2:
            going.append((0, next(names)))
        if going and chance.random() < 0.3:
            ended = going.pop(chance.randrange(len(going)))
            became[ended] = chance.random() < 0.5
            entries.append(marker(COMMIT if became[ended] else ABORT, ended))
            sent.append(None)
            continue
        txn = chance.choice([None, *going])
        payload = b"%d" % number
        entries.append(message(TIME, payload=payload) if txn is None else of(txn, payload))
        sent.append((txn, payload))
    for ended in going:
        became[ended] = True
        entries.append(marker(COMMIT, ended))
        sent.append(None)
    cuts = sorted({0, len(entries), *(chance.randrange(len(entries)) for _ in range(4))})
    blocks = [entries[a:b] for a, b in pairwise(cuts)]
    begin = chance.randrange(len(blocks))
    wanted = [
        one[1]
        for one in sent[cuts[begin] :]
        if one is not None and (one[0] is None or became[one[0]])
    ]
    assert Stream(*blocks).payloads(begin) == wanted
