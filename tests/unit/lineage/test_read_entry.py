"""One entry out of a block: by few requests, whatever sizes entries have, and by its frames."""

import random
from dataclasses import replace

import pytest

from tests.unit.catalogue.desk import Desk
from tiering_assets.lineage import read_entry as reading
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.read_entry import read_at, read_entry
from tiering_assets.lineage.shown_entry import NoEntry, ReadCost
from tiering_assets.resources.errors import FormatError, ObjectNotFoundError


class Bucket(Desk):
    """Counts what is read of it."""

    def __init__(self, payloads):
        super().__init__()
        self.made = self.chain(42, payloads=payloads)
        self.payloads = payloads
        self.ranges: list[tuple[int, int]] = []
        really = self.objects.get_range

        def get_range(key, **how):
            self.ranges.append((how["start"], how["length"]))
            return really(key, **how)

        self.objects.get_range = get_range  # type: ignore[method-assign]
        self.spent: list[str] = []
        self.stack.spending_for = self.spending_for

    def spending_for(self, ml_name):
        self.spent.append(ml_name)
        return _Nothing()

    def blocks(self):
        return [placed(self.made.certificate, facts) for facts in self.made.certificate.blocks]

    def block_of(self, entry_id):
        return next(b for b in self.blocks() if b.first_entry_id <= entry_id <= b.last_entry_id)


class _Nothing:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None


def placed(record, facts):
    return PlacedBlock(
        topic=record.ml_name,
        ledger_id=42,
        part=facts.part_number,
        first_entry_id=facts.first_entry_id,
        last_entry_id=facts.last_entry_id,
        publish_min=None,
        publish_max=None,
        messages=None,
        bucket="b",
        data_key=record.data.key,
        version_id=record.data.version_id,
        offset=facts.offset,
        length=facts.block_length,
        payload_bytes=facts.payload_bytes,
        sha256=facts.sha256,
        uid=str(record.uid),
        certificate_sha256="c",
        run_id="r",
        written_by="tierkeeper",
        page=1,
        state="published",
        bookie_copy="there",
        counts=True,
    )


@pytest.fixture
def bucket():
    source = random.Random(3)
    return Bucket([source.randbytes(source.choice((0, 1, 20, 90))) for _ in range(60)])


def test_each_entry_is_read_from_its_place(bucket):
    data = bucket.made.data
    for entry_id, payload in enumerate(bucket.payloads):
        found = read_entry(bucket.stack, bucket.block_of(entry_id), entry_id)
        assert (found.entry_id, found.payload) == (entry_id, payload)
        assert data[found.offset + 12 : found.offset + 12 + len(payload)] == payload
        assert found.cost.requests == 1
    assert set(bucket.spent) == {bucket.made.certificate.ml_name}


def test_each_byte_belongs_to_an_entry_a_header_or_padding(bucket):
    seen = {"header": 0, "padding": 0, "entry": 0}
    for block in bucket.blocks():
        for offset in range(block.offset, block.end):
            found = read_at(bucket.stack, block, offset)
            if isinstance(found, NoEntry):
                seen[found.what] += 1
                continue
            seen["entry"] += 1
            assert found.offset <= offset < found.offset + 12 + len(found.payload)
            assert found.payload == bucket.payloads[found.entry_id]
    assert seen["header"] == 128 * len(bucket.blocks())
    assert seen["entry"] == sum(12 + len(payload) for payload in bucket.payloads)
    assert sum(seen.values()) == len(bucket.made.data)


def test_no_more_is_read_than_lies_before_an_entry_and_a_little(bucket, monkeypatch):
    monkeypatch.setattr(reading, "_MORE", 16)
    block = bucket.block_of(0)
    read_entry(bucket.stack, block, 0)
    assert bucket.ranges[0][0] == block.offset
    assert bucket.ranges[0][1] < 400 <= block.length + 30
    bucket.ranges.clear()
    assert read_at(bucket.stack, block, block.offset) == NoEntry(what="header", cost=ReadCost())
    assert bucket.ranges == []


def test_where_the_guess_falls_short_more_is_read_piece_by_piece(bucket, monkeypatch):
    monkeypatch.setattr(reading, "_MORE", 0)
    monkeypatch.setattr(reading, "_NEXT", 7)
    monkeypatch.setattr(reading, "PIECE_MAX", 50)
    for entry_id, payload in enumerate(bucket.payloads):
        found = read_entry(bucket.stack, bucket.block_of(entry_id), entry_id)
        assert found.payload == payload
    assert max(length for _start, length in bucket.ranges) == 50
    block = bucket.block_of(0)
    bucket.ranges.clear()
    found = read_entry(bucket.stack, block, block.last_entry_id)
    assert found.cost.requests == len(bucket.ranges) > 3
    assert found.cost.bytes_read == sum(length for _start, length in bucket.ranges)
    starts = [start for start, _length in bucket.ranges]
    assert starts[0] == block.offset
    assert starts == sorted(starts)


def test_frames_that_are_not_those_of_the_row_are_an_error(bucket):
    block = bucket.block_of(0)
    with pytest.raises(FormatError):
        read_entry(bucket.stack, replace(block, first_entry_id=1), 1)
    with pytest.raises(FormatError, match="does not have entry 1000"):
        read_entry(bucket.stack, block, 1000)


def test_an_object_that_is_gone_is_an_error_that_says_where_to_look(bucket):
    bucket.objects.delete(bucket.made.certificate.data.key)
    with pytest.raises(ObjectNotFoundError, match=r"as published: `tierkeeper ledger show 42`"):
        read_entry(bucket.stack, bucket.block_of(0), 0)
