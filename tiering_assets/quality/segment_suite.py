"""The expectations that the index of every segment must meet, as one table, and their verdict.

Owns which columns of the segment frame are compared and how. Each check has a damage that it alone
reports; a unit test holds one such damage per line. A value that could not be read fails its check.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from tiering_assets.offload_format.block import (
    HEADER_BYTES,
    STREAMING_INDEX_MAGIC,
    STREAMING_MAGIC,
)
from tiering_assets.quality.checks import (
    Above,
    Check,
    Equal,
    OneOf,
    at_least,
    digest_of,
    each_block,
    once,
    rendered,
)
from tiering_assets.quality.expectations_run import run_suite
from tiering_assets.quality.segment_frame import SegmentFacts, segment_frame
from tiering_assets.quality.verdicts import failed_check, suite_result
from tiering_assets.records.scrub_model import SuiteResult

SEGMENT_SUITE: Final = "segment_index/1"


# fmt: off
SEGMENT_CHECKS: Final[tuple[Check, ...]] = (
    # The index object by itself and against HEAD.
    once("index_magic", "index_magic", OneOf((f"{STREAMING_INDEX_MAGIC:08x}",)), "index magic"),
    once("index_length", "index_length", Equal("index_bytes"), "index length in the index"),
    once("index_size", "index_size", Equal("index_bytes"), "index size by HEAD"),
    once("index_end", "groups_end", Equal("index_bytes"), "end of the last whole group"),
    once("data_header_length", "data_header_length", OneOf((HEADER_BYTES,)), "block header length in the index"),
    # Against the data object.
    once("data_length", "data_length", Equal("data_size"), "data object length in the index"),
    once("blocks_end", "blocks_end", Equal("data_size"), "block lengths in all headers summed"),
    once("data_holds_entries", "data_size", at_least("least_data_size"), "data size for so many entries and payload bytes"),
    # Ledger by ledger, against what was assigned.
    once("groups", "groups", Equal("assigned_groups"), "ledgers in the index"),
    each_block("group_order", "group_ledger_id", Above(other="ledger_before"), "ledger id after the one before"),
    each_block("start_entry_id", "start_entry_id", Equal("assigned_first"), "first entry id of the ledger's first block"),
    each_block("info_ledger_id", "info_ledger_id", Equal("group_ledger_id"), "ledger id in LedgerInfo"),
    each_block("info_entries", "info_entries", Equal("assigned_entries"), "entries in LedgerInfo"),
    each_block("info_size", "info_size", Equal("assigned_bytes"), "payload bytes in LedgerInfo"),
    # Block by block, against the headers read back.
    each_block("part_number", "part_number", Equal("part"), "part number"),
    each_block("first_entry_id_order", "first_entry_id", Above(other="previous_first_entry_id"), "first entry id after the block before"),
    each_block("first_entry_id_assigned", "assigned_last", at_least("first_entry_id"), "assigned last entry id for this block's first"),
    each_block("block_offset", "offset", Equal("expected_offset"), "block offset"),
    each_block("header_magic", "header_magic", OneOf((f"{STREAMING_MAGIC:08x}",)), "block header magic"),
    each_block("header_length", "header_length", OneOf((HEADER_BYTES,)), "header length in the block header"),
    each_block("header_first_entry_id", "header_first_entry_id", Equal("first_entry_id"), "first entry id in the block header"),
    each_block("header_ledger_id", "header_ledger_id", Equal("group_ledger_id"), "ledger id in the block header"),
    each_block("block_holds_entries", "header_block_length", at_least("least_block_length"), "block length for so many entries"),
)
# fmt: on


@cache
def segment_suite_digest() -> str:
    """SHA-256 of the suite's canonical JSON."""
    return digest_of(segment_suite_json())


def segment_suite_json() -> dict[str, Any]:
    """The table as a Great Expectations suite."""
    return rendered(SEGMENT_SUITE, SEGMENT_CHECKS)


def validate_segment(facts: SegmentFacts) -> SuiteResult:
    """Judge one segment by every check. Never raises on any bytes."""
    outcomes = run_suite(segment_suite_json(), segment_frame(facts))
    failed = (
        failed_check(
            check.name,
            [one for one in outcomes if one.meta["check"] == check.name],
            facts.number,
            check.per_block,
        )
        for check in SEGMENT_CHECKS
    )
    return suite_result(
        SEGMENT_SUITE,
        segment_suite_digest(),
        len(SEGMENT_CHECKS),
        (one for one in failed if one is not None),
    )
