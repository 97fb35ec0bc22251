"""Messages in pieces: those that a consumer of the whole topic joins, wherever reading begins."""

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.support.cold_entries import CODECS, TIME, entries_of
from tests.support.pulsar_entries import CHUNK_ID, CHUNKS, UNCOMPRESSED_SIZE, UUID, message
from tests.unit.cold.test_decode import told
from tiering_assets.cold import joined as joining
from tiering_assets.cold.chunks import begun_by
from tiering_assets.cold.columns import COLUMNS
from tiering_assets.cold.decode import decode_entries
from tiering_assets.cold.joined import JoinChunks
from tiering_assets.cold.plain_rows import as_rows
from tiering_assets.resources.errors import FormatError

NAMES = COLUMNS.names
PLACE = ("first_chunk_entry_id", "entry_id", "payload")


def piece(uuid, which, of, content, *, codec="NONE", size=None, more=()):
    code, _ = CODECS[codec]
    size = len(content) if size is None else size
    fields = [(8, code), (UNCOMPRESSED_SIZE, size), (UUID, uuid.encode())]
    return message(TIME, *fields, (CHUNKS, of), (CHUNK_ID, which), *more, payload=content)


@dataclass
class Consumer:
    """Joins as the Java client does, from the first entry of a topic on."""

    waiting: dict[str, Any] = field(default_factory=dict)
    received: list[Any] = field(default_factory=list)

    def sees(self, entry_id, uuid, which, of, content):
        if which == 0:
            self.waiting[uuid] = [entry_id, 0, content]
        elif uuid in self.waiting:
            first, last, so_far = self.waiting[uuid]
            if which > last + 1:
                del self.waiting[uuid]
            elif which == last + 1:
                self.waiting[uuid] = [first, which, so_far + content]
                if which == of - 1:
                    self.received.append((first, entry_id, so_far + content))
                    del self.waiting[uuid]


def any_pieces(chance):
    """Of three producers, side by side; some are lost, some come again."""
    streams = []
    for name in ("a", "b", "c"):
        stream = []
        for number in range(3):
            of = chance.choice((2, 2, 3, 5))
            uuid = f"{name}-{number if chance.random() < 0.8 else 0}"
            whole = [(uuid, which, of, chance.randbytes(3)) for which in range(of)]
            if chance.random() < 0.3:
                del whole[chance.randrange(of)]
            if chance.random() < 0.3:
                at = chance.randrange(len(whole))
                whole.insert(at + chance.choice((0, 1)), whole[chance.randrange(at + 1)])
            stream += whole
        streams.append(stream)
    found = []
    while any(streams):
        stream = chance.choice([one for one in streams if one])
        found.append(stream.pop(0))
        if chance.random() < 0.3:
            found.append(None)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_messages_are_those_that_a_consumer_joins(seed):
    chance = random.Random(seed)
    pieces, consumer = any_pieces(chance), Consumer()
    for entry_id, one in enumerate(pieces):
        if one is None:
            consumer.received.append((None, entry_id, b"between"))
        else:
            consumer.sees(entry_id, *one)
    made = [message(TIME, payload=b"between") if one is None else piece(*one) for one in pieces]
    everything = as_rows(decode_entries(entries_of(made), NAMES))

    def earlier(row):
        before = everything[: row["entry_id"]]
        own = [one for one in before if one["chunk_uuid"] == row["chunk_uuid"]]
        firsts = [n for n, one in enumerate(own) if one["chunk"] == 0]
        return begun_by(own[firsts[-1] :]) if firsts else None

    begin = chance.choice((0, chance.randrange(len(made))))
    cuts = sorted({begin, len(made), *(chance.randrange(begin, len(made)) for _ in range(3))})
    chunks, found = JoinChunks(on_error="fail"), []
    for first, behind in pairwise(cuts):
        some = decode_entries(entries_of(made[first:behind], first=first), NAMES)
        batch = chunks.joined(some, earlier)
        batch.validate(full=True)
        found += [tuple(row[name] for name in PLACE) for row in told(batch)]
    assert found == [one for one in consumer.received if one[1] >= begin]


def join(made, names=NAMES, *, on_error="fail", first=0):
    found = decode_entries(entries_of(made, first=first), names, on_error=on_error)
    return told(JoinChunks(on_error=on_error).joined(found, lambda _row: None))


@pytest.mark.parametrize("codec", CODECS)
def test_the_joined_payload_is_inflated(codec):
    whole = b"the same words again and again, " * 40
    _, squeeze = CODECS[codec]
    stored = squeeze(whole)
    cut = len(stored) // 2
    made = [
        piece("p-1", which, 2, part, codec=codec, size=len(whole))
        for which, part in enumerate((stored[:cut], stored[cut:]))
    ]
    [row] = join(made, first=5)
    assert (row["payload"], row["codec"], row["entry_id"]) == (whole, codec, 6)
    assert (row["first_chunk_ledger_id"], row["first_chunk_entry_id"]) == (7, 5)
    assert (row["chunk"], row["chunks"], row["chunk_uuid"]) == (1, 2, "p-1")


def test_what_is_encrypted_stays_piece_behind_piece():
    closed = [(13, b"\x0a\x01k")]
    made = [piece("p-1", n, 2, b"ab"[n : n + 1], codec="LZ4", size=9, more=closed) for n in (0, 1)]
    [row] = join(made)
    assert (row["payload"], row["encrypted"]) == (b"ab", True)


@pytest.mark.parametrize(("codec", "why"), [(1, "does not decompress"), (9, "codec is unknown")])
def test_what_does_not_inflate_names_its_last_piece_or_is_a_row(codec, why):
    fields = [(8, codec), (UNCOMPRESSED_SIZE, 9), (UUID, b"p-1"), (CHUNKS, 2)]
    made = [message(TIME, *fields, (CHUNK_ID, n), payload=b"\xff\xff") for n in (0, 1)]
    with pytest.raises(FormatError, match=f"ledger 7, entry 1: .*{why}"):
        join(made)
    [row] = join(made, on_error="row")
    assert why in row["error"]
    assert {name for name, value in row.items() if value is not None} == {
        "ledger_id",
        "entry_id",
        "error",
    }
    names = [name for name in NAMES if name not in ("payload", "codec")]
    assert [row["first_chunk_entry_id"] for row in join(made, names)] == [0]


def test_one_whose_first_pieces_are_gone_is_no_row_unless_errors_are_rows():
    made = [piece("p-1", 1, 3, b"b"), piece("p-1", 2, 3, b"c"), message(TIME, payload=b"next")]
    assert [row["payload"] for row in join(made)] == [b"next"]
    gone, after = join(made, on_error="row")
    assert (gone["entry_id"], after["payload"]) == (1, b"next")
    assert "cannot be joined" in gone["error"]


def test_what_lies_before_is_looked_for_once_a_message():
    asked = []

    def earlier(row):
        asked.append((row["chunk_uuid"], row["chunk"]))

    made = [piece(uuid, n, 5, b"x") for n in (2, 3, 4) for uuid in ("p-1", "q-1")]
    chunks = JoinChunks(on_error="fail")
    assert chunks.joined(decode_entries(entries_of(made), NAMES), earlier).num_rows == 0
    assert asked == [("p-1", 2), ("q-1", 2)]


def test_the_message_that_waits_longest_goes_where_too_much_waits(monkeypatch):
    monkeypatch.setattr(joining, "PENDING_MAX", 10)
    made = [
        piece("a", 0, 2, b"aaaa"),
        piece("b", 0, 2, b"bbbb"),
        piece("c", 0, 2, b"cccc"),
        piece("a", 1, 2, b"a"),
        piece("b", 1, 2, b"b"),
        piece("c", 1, 2, b"c"),
    ]
    assert [row["payload"] for row in join(made)] == [b"bbbbb", b"ccccc"]


def test_a_batch_without_pieces_is_what_it_was():
    found = decode_entries(entries_of([message(TIME)]), NAMES)
    assert JoinChunks(on_error="fail").joined(found, lambda _row: None) is found
    assert np.all(found.column("chunks").is_null())
