"""One entry by the index cache: few requests, few bytes, and the answer there is without it."""

import random
import shutil
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.cached_blocks import MIB, CachedBucket, encoded, placed, placed_plans
from tests.support.golden_objects import golden_ledgers
from tiering_assets.cold.frames import entries_of_block
from tiering_assets.lineage import known_places as known_module
from tiering_assets.lineage import places as places_module
from tiering_assets.lineage import read_entry as reading
from tiering_assets.lineage.known_places import KnownPlaces, known_places
from tiering_assets.lineage.places import (
    BEGINNING,
    FramePlace,
    Places,
    decode_places,
    encode_places,
)
from tiering_assets.lineage.read_entry import read_at, read_entry
from tiering_assets.lineage.shown_entry import NoEntry, ReadCost
from tiering_assets.resources.errors import FormatError, ObjectNotFoundError
from tiering_assets.resources.kept_files import KeptFiles

BLOCK = 64 * MIB
SOURCE = random.Random(11)


def sizes_that_fill(*runs):
    """Sizes of entries, run by run, as many of the last as have room in one block."""
    sizes, left = [], BLOCK - 128
    for size, count in runs:
        count = min(count, left // (12 + size))
        sizes += [size] * count
        left -= count * (12 + size)
    return sizes


# What a block's own figures foretell is right for the first, and as wrong as can be for others.
SHAPES = {
    "messages of 1 KiB": sizes_that_fill((1024, 10**6)),
    "twelve of 5 MiB, then of 1 byte": sizes_that_fill((5 * MIB, 12), (1, 200_000)),
    "of 1 byte, then twelve of 5 MiB": sizes_that_fill((1, 200_000), (5 * MIB, 12)),
    "1 KiB among 1 byte and 5 MiB": [
        size
        for _ in range(10)
        for size in (*[1] * 500, 1024, 5 * MIB, 1024, *[60_000] * 3, 300_000)
    ],
}


def payload_of(entry, size):
    """Of each entry another one, of which the ends tell which it is."""
    told = b"%d|" % entry
    return told[:size] if size < 64 else told + bytes(size - 2 * len(told)) + told


@pytest.fixture(scope="module", params=SHAPES, ids=[name.replace(" ", "-") for name in SHAPES])
def large(request):
    """Object, row and sizes of a block of 64 MiB."""
    sizes = SHAPES[request.param]
    data, plans = encoded([payload_of(*one) for one in enumerate(sizes)], BLOCK)
    [block] = placed_plans(data, plans)
    return data, block, sizes


def some_entries(sizes):
    """The first, the last, some between, and the neighbours of each kind of size."""
    last = len(sizes) - 1
    edges = [n for n in range(1, len(sizes)) if sizes[n] != sizes[n - 1]]
    near = {min(last, max(0, n + by)) for n in edges[:4] + edges[-4:] for by in (-1, 0, 1)}
    return sorted({0, last, *near, *(SOURCE.randrange(len(sizes)) for _ in range(6))})


def test_a_cold_read_takes_four_requests_at_most_and_a_warm_one_a_step(large, tmp_path):
    """Two, and 2 MiB, are what was asked for; an entry that is larger takes its own bytes."""
    data, block, sizes = large
    bucket = CachedBucket(data, tmp_path / "cache")
    for first in (0, len(sizes) - 1, len(sizes) // 2):
        shutil.rmtree(bucket.folder, ignore_errors=True)
        found = read_entry(bucket.stack, block, first)
        assert found.payload == payload_of(first, sizes[first])
        assert found.cost == ReadCost(1, block.length, "filled")
        for entry in some_entries(sizes):
            found = read_entry(bucket.stack, block, entry)
            assert found.payload == payload_of(entry, sizes[entry])
            assert found.cost.requests == 1
            assert found.cost.bytes_read <= max(places_module.STEP, 12 + sizes[entry])
            assert found.cost.index_cache == "used"
            assert data[found.offset + 12 : found.offset + 12 + sizes[entry]] == found.payload


def test_without_a_cache_four_requests_are_enough_as_well(large, tmp_path):
    data, block, sizes = large
    bucket = CachedBucket(data, tmp_path / "none", bytes_max=0)
    most = 0
    for entry in some_entries(sizes):
        bucket.ranges.clear()
        found = read_entry(bucket.stack, block, entry)
        assert found.payload == payload_of(entry, sizes[entry])
        assert found.cost == ReadCost(
            len(bucket.ranges), sum(length for _, length in bucket.ranges), "not used"
        )
        most = max(most, found.cost.requests)
    assert most <= 4
    assert not bucket.folder.exists()


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Two blocks with places every few entries, and empty entries."""
    monkeypatch.setattr(places_module, "STEP", 100)
    source = random.Random(4)
    payloads = [source.randbytes(source.choice((0, 1, 20, 90, 300, 40, 40))) for _ in range(70)]
    data, plans = encoded(payloads, 3000)
    blocks = placed_plans(data, plans)
    assert len(blocks) > 1
    assert blocks[0].payload_bytes + 12 * blocks[0].entries + 128 < blocks[0].length  # padding
    return CachedBucket(data, tmp_path / "cache"), blocks, payloads


def asked(act, *words):
    """What comes of it, without its cost."""
    try:
        found = act(*words)
    except FormatError as error:
        return str(error)
    return replace(found, cost=ReadCost())


def each_answer(stack, block):
    """All that can be asked of a block, in any order."""
    questions: list[partial[Any]] = [
        *(partial(read_entry, stack, block, one) for one in entries_in(block)),
        *(partial(read_at, stack, block, one) for one in range(block.offset, block.end, 7)),
    ]
    order = list(range(len(questions)))
    SOURCE.shuffle(order)
    found = {n: asked(questions[n]) for n in order}
    return [found[n] for n in range(len(questions))]


def entries_in(block):
    return range(block.first_entry_id, block.last_entry_id + 1)


def test_every_entry_and_every_byte_are_as_without_it(small):
    bucket, blocks, payloads = small
    for block in blocks:
        for offset in range(block.offset, block.end):
            found = read_at(bucket.stack, block, offset)
            plain = read_at(bucket.uncached, block, offset)
            assert replace(found, cost=ReadCost()) == replace(plain, cost=ReadCost())
        for entry in entries_in(block):
            found = read_entry(bucket.stack, block, entry)
            assert (found.payload, found.cost.index_cache) == (payloads[entry], "used")


def test_padding_and_header_take_no_more_than_they_must(small):
    bucket, blocks, _payloads = small
    block = blocks[0]
    assert read_at(bucket.stack, block, block.offset) == NoEntry(what="header", cost=ReadCost())
    assert bucket.ranges == []
    read_at(bucket.stack, block, block.end - 1)
    bucket.ranges.clear()
    found = read_at(bucket.stack, block, block.end - 1)
    [(start, length)] = bucket.ranges
    assert found == NoEntry(what="padding", cost=ReadCost(1, length, "used"))
    assert start > block.offset
    assert start + length == block.end


@pytest.mark.parametrize("most", [0, 500, 1200])
def test_of_a_large_block_as_much_is_known_as_was_walked(small, monkeypatch, most):
    """Where more is left than is read on for, the rest is learnt when it is asked for."""
    bucket, blocks, payloads = small
    monkeypatch.setattr(reading, "READ_ON_MAX", most)
    monkeypatch.setattr(reading, "_MORE", 30)
    monkeypatch.setattr(reading, "_NEXT", 50)
    monkeypatch.setattr(reading, "PIECE_MAX", 400)
    block = blocks[0]
    walked = 0
    for entry in (0, 1, block.entries // 3, 2, block.entries // 2, 5, block.last_entry_id, 9):
        bucket.ranges.clear()
        found = read_entry(bucket.stack, block, entry)
        assert found.payload == payloads[entry]
        known = decode_places(bucket.file_of(block).read_bytes(), block)
        assert known.of_entry(entry) is not None
        if found.cost.index_cache == "used":
            assert bucket.ranges[0][0] >= block.offset + 128
        walked += sum(length for _, length in bucket.ranges)
    assert decode_places(bucket.file_of(block).read_bytes(), block).end.entry == block.entries
    assert walked < 2 * block.length  # once, what was read anew to the end of an entry, and steps
    assert each_answer(bucket.stack, block) == each_answer(bucket.uncached, block)


def test_each_byte_of_its_file_may_be_damaged(small):
    bucket, blocks, payloads = small
    block = blocks[0]
    read_entry(bucket.stack, block, 3)
    file = bucket.file_of(block)
    sound = file.read_bytes()
    for at in range(len(sound)):
        damaged = bytearray(sound)
        damaged[at] ^= 1 << SOURCE.randrange(8)
        for data in (bytes(damaged), sound[:at]):
            file.write_bytes(data)
            entry = SOURCE.choice(entries_in(block))
            found = read_entry(bucket.stack, block, entry)
            assert (found.payload, found.cost) == (
                payloads[entry],
                ReadCost(1, block.length, "filled"),
            )
            assert file.read_bytes() == sound


def test_files_that_are_swapped_or_of_another_version_are_dropped(small):
    bucket, blocks, _payloads = small
    for block in blocks[:2]:
        read_entry(bucket.stack, block, block.last_entry_id)
    one, other = (bucket.file_of(block) for block in blocks[:2])
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    for block in blocks[:2]:
        assert each_answer(bucket.stack, block) == each_answer(bucket.uncached, block)
    assert (one.read_bytes(), other.read_bytes()) == (first, second)


PLACES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 200)), min_size=1, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(steps=PLACES)
def test_places_that_are_wrong_in_a_sound_file_give_no_other_answer(small, steps):
    """As if somebody had learnt them of other bytes: what is read by them does not fit."""
    bucket, blocks, _payloads = small
    block = blocks[0]
    places = [BEGINNING]
    for entries, more in steps:
        entry, byte = places[-1]
        places.append(FramePlace(entry + entries, byte + 12 * entries + more))
    wrong = Places((*places,))
    data = encode_places(wrong, block)
    file = bucket.file_of(block)
    for act, where in (
        *((read_entry, one) for one in entries_in(block)),
        *((read_at, one) for one in range(block.offset, block.end, 90)),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        assert asked(act, bucket.stack, block, where) == asked(act, bucket.uncached, block, where)


@pytest.mark.parametrize(("entries", "more"), [(0, 3), (0, -3), (1, 0), (-1, 0), (1, 40)])
def test_frames_that_do_not_end_at_the_next_place_are_read_from_the_beginning(small, entries, more):
    """Though the wanted one lies before, and looks sound."""
    bucket, blocks, payloads = small
    block = blocks[0]
    read_entry(bucket.stack, block, 0)
    file = bucket.file_of(block)
    sound = file.read_bytes()
    known = decode_places(sound, block)
    second = known.places[1]
    assert second.entry > 1
    wrong = FramePlace(second.entry + entries, second.byte + more)
    file.write_bytes(encode_places(Places((BEGINNING, wrong, known.end)), block))
    found = read_entry(bucket.stack, block, 0)
    assert (found.payload, found.cost.requests) == (payloads[0], 2)
    assert file.read_bytes() == sound


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data())
def test_any_damage_of_the_folder_gives_no_other_answer(small, data):
    bucket, blocks, payloads = small
    shutil.rmtree(bucket.folder, ignore_errors=True)  # what the example before has left
    for block in blocks:
        read_entry(bucket.stack, block, block.last_entry_id)
    files = [bucket.file_of(block) for block in blocks]
    for _ in range(data.draw(st.integers(1, 4))):
        file = data.draw(st.sampled_from(files))
        act = data.draw(st.sampled_from(("bytes", "cut", "swap", "gone", "folder", "all")))
        if act == "all" or not file.is_file():
            shutil.rmtree(bucket.folder, ignore_errors=True)
        elif act == "bytes":
            body = bytearray(file.read_bytes())
            for _ in range(data.draw(st.integers(1, 5)) if body else 0):
                body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
            file.write_bytes(body)
        elif act == "cut":
            body = file.read_bytes()
            file.write_bytes(body[: data.draw(st.integers(0, len(body)))] + data.draw(st.binary()))
        elif act == "swap":
            other = data.draw(st.sampled_from(files))
            if other.is_file():
                file.write_bytes(other.read_bytes())
        else:
            file.unlink()
            if act == "folder":
                file.mkdir()
    for block in blocks:
        for entry in data.draw(st.lists(st.sampled_from(entries_in(block)), min_size=1)):
            found = read_entry(bucket.stack, block, entry)
            assert found.payload == payloads[entry]


def test_an_object_that_is_damaged_is_told_as_without_it(small):
    """Entries whose own bytes are whole may be shown, though a walk does not come to them."""
    bucket, blocks, payloads = small
    block = blocks[0]
    read_entry(bucket.stack, block, 0)
    data = bytearray(bucket.objects.get("object").body)
    hit = 20
    place = read_entry(bucket.stack, block, hit).offset
    data[place + 5] ^= 0x40  # of its id
    bucket.objects.put("object", bytes(data), metadata={})
    told = asked(read_entry, bucket.uncached, block, hit)
    assert "entry id at byte" in told
    assert asked(read_entry, bucket.stack, block, hit) == told
    assert not bucket.file_of(block).exists()
    assert read_entry(bucket.stack, block, hit - 1).payload == payloads[hit - 1]  # known to there
    assert decode_places(bucket.file_of(block).read_bytes(), block).end.entry == hit
    assert asked(read_entry, bucket.stack, block, hit) == told
    assert asked(read_at, bucket.stack, block, block.end - 1) == told


def test_an_answer_that_came_damaged_once_is_read_anew(small):
    bucket, blocks, payloads = small
    block = blocks[0]
    read_entry(bucket.stack, block, 0)
    bucket.objects.alter_range(lambda body: b"\xff" + body[1:])
    found = read_entry(bucket.stack, block, 30)
    assert (found.payload, found.cost.requests) == (payloads[30], 2)
    assert found.cost.index_cache == "filled"


def test_entries_that_the_block_does_not_have_are_told_as_without_it(small):
    bucket, blocks, _payloads = small
    block = blocks[0]
    for _ in range(2):  # cold and warm
        with pytest.raises(FormatError, match="part 1 does not have entry 1000"):
            read_entry(bucket.stack, block, 1000)
    wrong = replace(block, first_entry_id=1)
    for _ in range(2):
        with pytest.raises(FormatError, match="first entry id"):
            read_entry(bucket.stack, wrong, 1)
    bucket.objects.delete("object")
    with pytest.raises(ObjectNotFoundError, match="ledger show"):
        read_entry(bucket.stack, block, 1)


def test_where_no_file_can_be_no_byte_is_read_for_it(small, tmp_path):
    bucket, blocks, payloads = small
    (tmp_path / "file").write_bytes(b"")
    nowhere = CachedBucket(bucket.objects.get("object").body, tmp_path / "file" / "cache")
    block = blocks[0]
    for _ in range(2):
        found = read_entry(nowhere.stack, block, 1)
        plain = read_entry(bucket.uncached, block, 1)
        assert (found.payload, found.cost) == (payloads[1], plain.cost)
        assert found.cost.index_cache == "not used"


def test_a_file_that_cannot_be_written_after_all_is_no_error(small, monkeypatch):
    bucket, blocks, payloads = small
    monkeypatch.setattr(KeptFiles, "keep", lambda *_: False)
    found = read_entry(bucket.stack, blocks[0], 1)
    assert (found.payload, found.cost.index_cache) == (payloads[1], "not used")


def test_a_folder_that_is_deleted_while_it_is_read_is_no_error(small, monkeypatch):
    bucket, blocks, payloads = small
    block = blocks[0]
    read_entry(bucket.stack, block, 1)
    really = bucket.objects.get_range

    def get_range(key, **how):
        shutil.rmtree(bucket.folder, ignore_errors=True)
        return really(key, **how)

    monkeypatch.setattr(bucket.objects, "get_range", get_range)
    for entry in (5, 6):  # a warm one, and a cold one
        assert read_entry(bucket.stack, block, entry).payload == payloads[entry]
    assert bucket.file_of(block).exists()


def test_a_block_that_was_read_whole_is_known(small):
    bucket, blocks, payloads = small
    known = known_places(bucket.stack.settings.cache)
    for block in blocks:
        body = bucket.objects.get("object").body[block.offset : block.end]
        entries = entries_of_block(
            body, ledger_id=42, first_entry_id=block.first_entry_id, count=block.entries
        )
        known.learn(block, entries)
        learnt = bucket.file_of(block).read_bytes()
        found = read_entry(bucket.stack, block, block.last_entry_id)
        assert (found.payload, found.cost.index_cache) == (payloads[block.last_entry_id], "used")
        bucket.file_of(block).unlink()
        read_entry(bucket.stack, block, block.first_entry_id)
        assert bucket.file_of(block).read_bytes() == learnt  # as a walk has them


def test_a_damaged_file_is_gone_once_it_was_read(small):
    """Else who reads the block whole would take it for known."""
    bucket, blocks, _payloads = small
    read_entry(bucket.stack, blocks[0], 0)
    file = bucket.file_of(blocks[0])
    file.write_bytes(file.read_bytes()[:-1])
    assert known_places(bucket.stack.settings.cache).of(blocks[0]) is None
    assert not file.exists()


def test_what_is_known_is_not_written_again(small, monkeypatch):
    bucket, blocks, _payloads = small
    read_entry(bucket.stack, blocks[0], 0)
    known, nothing = known_places(bucket.stack.settings.cache), cast(Any, None)
    monkeypatch.setattr(known_module, "places_of_frames", None)
    known.learn(blocks[0], nothing)
    KnownPlaces(None).learn(blocks[0], nothing)


def test_a_block_whose_numbers_do_not_fit_is_none_that_is_kept(small):
    bucket, blocks, _payloads = small
    known, huge = known_places(bucket.stack.settings.cache), replace(blocks[0], length=2**31)
    assert not known.can_keep(huge)
    assert not known.keep(huge, Places((BEGINNING, FramePlace(1, 140))))
    assert known.can_keep(replace(huge, length=2**31 - 1))


def test_two_readers_that_extend_each_other_lose_nothing_but_time(small, monkeypatch):
    bucket, blocks, payloads = small
    monkeypatch.setattr(reading, "READ_ON_MAX", 0)
    monkeypatch.setattr(reading, "_MORE", 30)
    block, other = blocks[0], CachedBucket(bucket.objects.get("object").body, bucket.folder)
    for entry in (10, 30, 20, 31, 5):
        for stack in (bucket.stack, other.stack):
            assert read_entry(stack, block, entry).payload == payloads[entry]


@pytest.mark.parametrize("ledger", [one for one in golden_ledgers() if one.has_data], ids=str)
def test_entries_of_objects_that_brokers_wrote(ledger, tmp_path, monkeypatch):
    """By their facts in the manifest, which are those of the bookies."""
    monkeypatch.setattr(places_module, "STEP", 4096)
    data, facts = ledger.data(), {one[0]: one[1:] for one in ledger.entries()}
    bucket = CachedBucket(data, tmp_path / "cache")
    for row in ledger.facts["blocks"]:
        ids = range(row["first"], row["first"] + row["entries"])
        block = placed(
            data,
            part=row["part"],
            offset=row["offset"],
            length=row["length"],
            first=ids[0],
            last=ids[-1],
            payload_bytes=sum(facts[one][0] for one in ids),
        )
        kinds = []
        for entry in (ids[-1], ids[0], *SOURCE.choices(ids, k=30)):
            found = read_entry(bucket.stack, block, entry)
            assert (len(found.payload), sha256(found.payload).hexdigest()) == facts[entry]
            kinds.append(found.cost.index_cache)
        assert kinds == ["filled", *["used"] * 31]
