"""Segments of ours, read by Pulsar's own read handle for them, and by ours."""

import random
from dataclasses import replace
from hashlib import sha256
from uuid import UUID

import pytest

from tests.support.golden_segments import decoded_entries
from tests.support.made_segments import data_of, plan_from_entries
from tests.support.upstream_segments import UpstreamReader
from tiering_assets.offload_format.block import PAD_PATTERN
from tiering_assets.offload_format.segments.encoder import encode_segment_index, held_ledger_info

pytestmark = pytest.mark.stack
SIZES = (0, 1, 5, 100, 700, 4000)
PREFIX = len(PAD_PATTERN)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return UpstreamReader.compiled(tmp_path_factory.mktemp("upstream"))


class Made:
    """A segment in a folder, and what it holds."""

    def __init__(self, folder, source, *slices, block_bytes=2048, prefix=PREFIX):
        self.uuid = str(UUID(int=source.getrandbits(128), version=4))
        self.entries = {
            (ledger, entry): source.randbytes(source.choice(SIZES))
            for ledger, first, last in slices
            for entry in range(first, last + 1)
        }
        held, planned = plan_from_entries(self.entries, slices, block_bytes_max=block_bytes)
        self.blocks = [replace(block, offset=block.offset + prefix) for block in planned]
        self.data = data_of(self.blocks, self.entries, prefix=prefix)
        infos = {one.ledger_id: held_ledger_info(one, closed_at_ms=None) for one in held}
        self.index = encode_segment_index(self.blocks, infos, len(self.data))
        (folder / self.uuid).write_bytes(self.data)
        (folder / f"{self.uuid}-index").write_bytes(self.index)

    def of(self, ledger, first, last):
        """What a reader has to give for a range, by entry."""
        found = {e: self.entries[ledger, e] for e in range(first, last + 1)}
        return {e: (len(one), sha256(one).hexdigest()) for e, one in found.items()}


def asked_of(answer, first, last):
    """Of an answer the entries that were asked for: it may have those of the whole segment."""
    assert not isinstance(answer, str), answer
    return {entry: rest for _, entry, *rest in answer if first <= entry <= last}


def test_upstream_reads_by_ranges_what_we_wrote(reader, tmp_path):
    source = random.Random(76)
    made = Made(tmp_path, source, (11, 0, 59), (12, 0, 0), (13, 0, 99))
    assert dict(decoded_entries(made.index, made.data)) == made.entries
    assert len(made.blocks) > 10
    for ledger, last in ((11, 59), (12, 0), (13, 99)):
        ends = {(0, last), (last, last), (last // 3, last // 2)}
        ranges = [f"{a}-{b}" for a, b in sorted(ends)]
        answers = reader.answers(tmp_path, ledger, [made.uuid], ranges)
        for first, behind in sorted(ends):
            found = asked_of(answers[f"{first}-{behind}"], first, behind)
            assert {e: tuple(rest) for e, rest in found.items()} == made.of(ledger, first, behind)


def test_upstream_reads_segments_that_begin_inside_a_ledger(reader, tmp_path):
    source = random.Random(77)
    parts = [Made(tmp_path, source, (7, first, last)) for first, last in ((0, 99), (100, 127))]
    for made, first, last in zip(parts, (0, 100), (99, 127), strict=True):
        answers = reader.answers(tmp_path, 7, [made.uuid], [f"{first}-{last}"])
        found = asked_of(answers[f"{first}-{last}"], first, last)
        assert {e: tuple(rest) for e, rest in found.items()} == made.of(7, first, last)


@pytest.mark.parametrize(("first", "is_read"), [(127, True), (128, False)])
def test_what_upstream_cannot_read_without_padding_in_front_is_read_by_us(
    reader, tmp_path, first, is_read
):
    """At byte 0 it takes the header for a frame: the magic for a length of 648,441,138 bytes, the
    length of the header for an entry id. Of another entry than the expected one it asks the index;
    a length of 128 is entry 128.
    """
    made = Made(tmp_path, random.Random(78), (7, first, 180), block_bytes=1 << 20, prefix=0)
    span = f"{first}-180"
    answer = reader.answers(tmp_path, 7, [made.uuid], [span])[span]
    assert dict(decoded_entries(made.index, made.data)) == made.entries
    if is_read:
        found = asked_of(answer, first, 180)
        assert {e: tuple(rest) for e, rest in found.items()} == made.of(7, first, 180)
    else:
        assert isinstance(answer, str), answer
        assert answer.startswith("failed ")
        assert "648441138" in answer
