"""Streaming segments of Pulsar's own writer: right ones decode to what it was given and are written
again byte for byte; those in which it is wrong are refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import pytest

from tests.support.golden_segments import GoldenSegment, decoded_entries, golden_segments
from tests.support.made_segments import data_of, plan_from_entries
from tiering_assets.offload_format.decoder import decode_index
from tiering_assets.offload_format.segments.block import TAIL_BYTES, SegmentBlock
from tiering_assets.offload_format.segments.decoder import decode_segment_index
from tiering_assets.offload_format.segments.encoder import encode_segment_index
from tiering_assets.resources.errors import FormatError

SEGMENTS = golden_segments()
RIGHT = [one for one in SEGMENTS if not one.refused]
WRONG = [one for one in SEGMENTS if one.refused]


def test_the_golden_set_is_whole():
    """A parametrised test over nothing would pass."""
    assert (len(RIGHT), len(WRONG)) == (16, 6)
    assert {one.case for one in WRONG} == {
        "default-multi-block",
        "exact-fill",
        "first-larger",
        "large-entries",
        "large-first-5mib",
        "multi-block-equal",
    }


@pytest.mark.parametrize("segment", SEGMENTS, ids=str)
def test_files_are_those_that_the_manifest_names(segment):
    for name, found in (("data", segment.data), ("index", segment.index)):
        assert len(found) == segment.said[name]["bytes"]
        assert sha256(found).hexdigest() == segment.said[name]["sha256"]


@pytest.mark.parametrize("segment", RIGHT, ids=str)
def test_a_right_segment_holds_what_its_writer_was_given(segment):
    assert dict(decoded_entries(segment.index, segment.data)) == segment.entries
    index = decode_segment_index(segment.index)
    assert index.data_object_length == len(segment.data)
    for ledger in index.ledgers:
        known = segment.infos[ledger.ledger_id]
        if known.get("entries"):
            assert (ledger.entries, ledger.size) == (known["entries"], known["size"])


@pytest.mark.parametrize("segment", WRONG, ids=str)
def test_a_wrong_segment_is_refused_by_name(segment):
    with pytest.raises(FormatError, match=r" at byte \d+: expected .*, found "):
        dict(decoded_entries(segment.index, segment.data))


@pytest.mark.parametrize("segment", SEGMENTS, ids=str)
def test_a_decoder_of_v1_refuses_it(segment):
    with pytest.raises(FormatError, match="streaming"):
        decode_index(segment.index)


@pytest.mark.parametrize("segment", [one for one in RIGHT if one.by_upstream], ids=str)
def test_what_upstream_wrote_right_is_written_again(segment):
    """Its blocks are padded to a least length; ours are not, so the plan says so."""
    least = segment.settings["managedLedgerOffloadMinBlockSizeInBytes"]
    blocks, offset = [], 0
    for plan in plan_of(segment, block_bytes_max=1 << 30):
        own = plan.block_length - TAIL_BYTES
        blocks.append(replace(plan, offset=offset, block_length=max(least, own)))
        offset += blocks[-1].block_length
    assert segment_of(segment, blocks) == (segment.data, segment.index)


@pytest.mark.parametrize("segment", [one for one in RIGHT if not one.by_upstream], ids=str)
def test_segments_that_upstream_read_are_what_we_write(segment):
    tail, prefix = segment.settings["tail"], segment.settings["prefix"]
    size = segment.settings["max_block"] + TAIL_BYTES - tail
    blocks, offset = [], prefix
    for plan in plan_of(segment, block_bytes_max=size):
        length = plan.block_length - TAIL_BYTES + tail
        blocks.append(replace(plan, offset=offset, block_length=length))
        offset += length
    assert segment_of(segment, blocks, prefix=prefix) == (segment.data, segment.index)


def plan_of(segment: GoldenSegment, *, block_bytes_max: int) -> Sequence[SegmentBlock]:
    ranges = [(one["ledger"], one["first"], one["last"]) for one in segment.said["ranges"]]
    _slices, blocks = plan_from_entries(segment.entries, ranges, block_bytes_max=block_bytes_max)
    return blocks


def segment_of(
    segment: GoldenSegment, blocks: Sequence[SegmentBlock], *, prefix: int = 0
) -> tuple[bytes, bytes]:
    """Data object and index of these blocks, with LedgerInfo as its writer had it."""
    data = data_of(blocks, segment.entries, prefix=prefix)
    infos = {
        ledger.ledger_id: ledger.info for ledger in decode_segment_index(segment.index).ledgers
    }
    return data, encode_segment_index(blocks, infos, len(data))
