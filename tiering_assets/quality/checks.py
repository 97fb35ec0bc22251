"""The expectations that every index object must meet, as one table; and what such tables are made
of.

Owns which columns of the index frame are compared and how. Each check has a damage that it alone
reports, so none repeats another; a unit test holds one such damage per line. A value that could not
be read fails its check; only the managed ledger's counts may be missing.

Pure: the table, its rendering as a Great Expectations suite, and that suite's digest need neither
Great Expectations nor pandas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any, Final

from tiering_assets.offload_format.block import HEADER_BYTES, INDEX_MAGIC, MAGIC

SUITE_NAME: Final = "index_objects/1"


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of these.

    `never_missing` columns hold no None by their type, and need no second expectation against it.
    """

    values: tuple[str | int | bool, ...]
    never_missing: bool = False


@dataclass(frozen=True, slots=True)
class Equal:
    """The value is the other column's."""

    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """The value is above the other column's, or the same where `or_equal`."""

    other: str
    or_equal: bool = False
    optional: bool = False  # a missing value passes


Rule = OneOf | Equal | Above


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`text` says what the column holds, so that "<text>: expected …, found …" is a sentence.

    `per_block` checks are reported with the position of the index entry.
    """

    name: str
    column: str
    rule: Rule
    text: str
    per_block: bool = False


def once(name: str, column: str, rule: Rule, text: str) -> Check:
    """A check that is reported without the position of a block."""
    return Check(name=name, column=column, rule=rule, text=text)


def each_block(name: str, column: str, rule: Rule, text: str) -> Check:
    """A check that is reported with the position of each block that fails it."""
    return Check(name=name, column=column, rule=rule, text=text, per_block=True)


def at_least(other: str, *, optional: bool = False) -> Above:
    """The other column's value or more."""
    return Above(other=other, or_equal=True, optional=optional)


# fmt: off
CHECKS: Final[tuple[Check, ...]] = (
    # The index object by itself and against HEAD.
    once("index_magic", "index_magic", OneOf((f"{INDEX_MAGIC:08x}",)), "index magic"),
    once("index_length", "index_length", Equal("index_bytes"), "index length in the index"),
    once("index_size", "index_size", Equal("index_bytes"), "index size by HEAD"),
    once("entry_count", "entry_count", Equal("entries_present"), "number of blocks in the index"),
    once("index_end", "entries_end", Equal("index_bytes"), "end of the last whole index entry"),
    once("data_header_length", "data_header_length", OneOf((HEADER_BYTES,)), "block header length in the index"),
    # Against the data object.
    once("data_length", "data_length", Equal("data_size"), "data object length in the index"),
    once("blocks_end", "blocks_end", Equal("data_size"), "block lengths in all headers summed"),
    once("data_holds_ledger", "data_size", at_least("least_data_size"), "data size for so many entries and payload bytes"),
    # Against BookKeeper and the managed ledger.
    once("metadata_required_fields", "metadata_missing", OneOf(("",)), "required fields that the ledger metadata in the index lacks"),
    once("metadata_last_entry_id", "metadata_last_entry_id", Equal("last_entry_id"), "last entry id in the index's ledger metadata"),
    once("metadata_length", "metadata_length", Equal("ledger_length"), "ledger length in the index's ledger metadata"),
    once("metadata_state", "metadata_state", OneOf(("CLOSED",)), "ledger state in the index's ledger metadata"),
    once("metadata_no_password", "metadata_has_password", OneOf((False,)), "a ledger password in the index's ledger metadata"),
    once("topic_entries", "ledger_entries", at_least("topic_entries", optional=True), "entries in BookKeeper for those the topic counts"),
    once("topic_bytes", "ledger_length", at_least("topic_bytes", optional=True), "ledger length in BookKeeper for the bytes the topic counts"),
    # Entry by entry, against the block headers read back.
    once("start_entry_id", "start_entry_id", OneOf((0,)), "first entry id of the first block"),
    each_block("part_number", "part_number", Equal("part"), "part number"),
    each_block("first_entry_id_order", "first_entry_id", Above(other="previous_first_entry_id"), "first entry id after the block before"),
    each_block("first_entry_id_in_ledger", "last_entry_id", at_least("first_entry_id"), "last entry id in BookKeeper for this block's first"),
    each_block("block_offset", "offset", Equal("expected_offset"), "block offset"),
    each_block("header_magic", "header_magic", OneOf((f"{MAGIC:08x}",)), "block header magic"),
    each_block("header_length", "header_length", OneOf((HEADER_BYTES,)), "header length in the block header"),
    each_block("header_first_entry_id", "header_first_entry_id", Equal("first_entry_id"), "first entry id in the block header"),
    each_block("block_holds_entries", "header_block_length", at_least("least_block_length"), "block length for so many entries"),
)
# fmt: on

CHECKS_BY_NAME: Final = {check.name: check for check in CHECKS}


def suite_json() -> dict[str, Any]:
    """The table as a Great Expectations suite; `meta.check` names the check an expectation is
    of.
    """
    return rendered(SUITE_NAME, CHECKS)


@cache
def suite_digest() -> str:
    """SHA-256 of the suite's canonical JSON: sorted keys, no white space, UTF-8."""
    return digest_of(suite_json())


def rendered(name: str, checks: Iterable[Check]) -> dict[str, Any]:
    """Any table of checks as a Great Expectations suite."""
    return {
        "name": name,
        "expectations": [
            {"type": kind, "kwargs": kwargs, "meta": {"check": check.name}}
            for check in checks
            for kind, kwargs in _expectations(check)
        ],
    }


def digest_of(suite: dict[str, Any]) -> str:
    """SHA-256 of a suite's canonical JSON."""
    canonical = json.dumps(suite, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode()).hexdigest()


def _expectations(check: Check) -> list[tuple[str, dict[str, Any]]]:
    match check.rule:
        case OneOf(values, never_missing):
            # Great Expectations passes over nulls in a column; ours must not be null, either.
            column = {"column": check.column}
            in_set = {**column, "value_set": list(values)}
            present = ("expect_column_values_to_not_be_null", column)
            return [
                ("expect_column_values_to_be_in_set", in_set),
                *([] if never_missing else [present]),
            ]
        case Equal(other):
            pair = {"column_A": check.column, "column_B": other, "ignore_row_if": "neither"}
            return [("expect_column_pair_values_to_be_equal", pair)]
        case Above(other=other, or_equal=or_equal, optional=optional):
            pair = {
                "column_A": check.column,
                "column_B": other,
                "ignore_row_if": "either_value_is_missing" if optional else "neither",
            }
            return [
                (
                    "expect_column_pair_values_a_to_be_greater_than_b",
                    {**pair, "or_equal": or_equal},
                )
            ]
