"""Every fault that a reader of cold messages meets, in each mode, and the tests that prove it.

Owns: no pair of a fault and a mode is without a test, or without a reason; and no error that the
cold rooms raise is without a fault that reaches it. tests/unit/cold/test_fault_list.py holds that,
and `make prove-cold` runs them all (prove_cold.py).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.support.cold_fault_entries import TOPIC_FAULTS
from tests.support.rooms import WRITTEN, inside, tree_of

MODES: Final = {
    "plain": "the plain decoder, entry by entry",
    "columns": "`messages`, whole blocks side by side",
    "spark": "the source `pulsar_ledgers`, a classic session",
    "connect": "the same with Spark Connect",
}
Tests = tuple[str, ...]
"""Ids of tests, as pytest has them."""

_FAULTS: Final = "tests/unit/cold/test_faults.py"
_DECODE: Final = "tests/unit/cold/test_decode.py"
_CHUNKS: Final = "tests/unit/cold/test_chunks.py"
_GOLDEN: Final = "tests/golden/test_cold_golden.py"
_LINEAGE: Final = "tests/unit/lineage"
_SPARK: Final = "tests/stack/test_cold_faults.py"
_ELSEWHERE: Final = "tests/stack/test_cold_faults_elsewhere.py"

_ONE_ENTRY: Final = "it decodes an entry, and asks no store, catalogue or other entry"
_SAME_READ: Final = (
    "workers run the same read; who plans and how an error comes back differs, and "
    "`an error is told` proves that"
)
_SAME_PLAN: Final = "the plan is made by the same function before Spark has any task"
_NO_TASKS: Final = "one process reads, and there is nothing to be killed or to begin again"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """`tests` prove it by mode, `reasons` say why a mode has none. `errors` are classes of errors
    that it gives.
    """

    name: str
    tests: Mapping[str, Tests]
    reasons: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()


def _of_topics() -> Iterator[Fault]:
    for one in TOPIC_FAULTS:
        columns = (f"{_FAULTS}::test_side_by_side[{one.name}]",)
        narrow = (f"{_FAULTS}::test_fewer_columns_make_no_answer_shorter[{one.name}]",)
        tests = {
            "columns": columns + narrow,
            "spark": (f"{_SPARK}::test_a_classic_session[{one.name}]",),
        }
        reasons = {"connect": _SAME_READ}
        if one.of_topic:
            reasons["plain"] = _ONE_ENTRY
        else:
            tests["plain"] = (f"{_FAULTS}::test_entry_by_entry[{one.name}]",)
        errors = (one.error,) if one.bad else ()
        yield Fault(name=one.name, tests=tests, reasons=reasons, errors=errors)


def _at_the_store(name: str, columns: Tests, spark: Tests, *errors: str) -> Fault:
    """Of what becomes of objects between plan and read."""
    reasons = {"plain": _ONE_ENTRY, "connect": _SAME_READ}
    return Fault(
        name=name, tests={"columns": columns, "spark": spark}, reasons=reasons, errors=errors
    )


def _planned(name: str, columns: Tests, *errors: str) -> Fault:
    """Of what is seen before anything is read."""
    reasons = {"plain": _ONE_ENTRY, "spark": _SAME_PLAN, "connect": _SAME_PLAN}
    return Fault(name=name, tests={"columns": columns}, reasons=reasons, errors=errors)


def _of_spark(name: str, test: str) -> Fault:
    reasons = {"plain": _ONE_ENTRY, "columns": _NO_TASKS, "connect": _SAME_READ}
    return Fault(name=name, tests={"spark": (test,)}, reasons=reasons)


def _places() -> Iterator[Fault]:
    def here(*names: str) -> Tests:
        return tuple(f"{_FAULTS}::{name}" for name in names)

    def there(*names: str) -> Tests:
        return tuple(f"{_SPARK}::{name}" for name in names)

    def elsewhere(*names: str) -> Tests:
        return tuple(f"{_ELSEWHERE}::{name}" for name in names)

    yield _at_the_store(
        "object trimmed",
        here(
            "test_an_object_that_is_trimmed_is_named",
            "test_an_object_that_is_trimmed_is_a_row_of_each_of_its_blocks",
            "test_a_piece_in_an_object_that_is_trimmed_is_missed",
        ),
        there("test_an_object_that_is_trimmed_after_the_plan_is_named"),
        "ObjectNotFoundError",
    )
    yield _at_the_store(
        "object replaced by another version",
        here("test_of_an_object_that_is_replaced_the_version_of_the_plan_is_read"),
        there("test_of_a_replaced_object_the_version_of_the_plan_is_read"),
    )
    yield _at_the_store(
        "object replaced, no versions kept",
        here(
            "test_an_object_that_is_replaced_where_no_versions_are_kept_is_named",
            "test_an_object_of_another_ledger_in_its_place_is_named",
        ),
        there("test_an_object_that_is_replaced_after_the_plan_is_named"),
        "FormatError",
    )
    yield _at_the_store(
        "object of an archive class",
        here("test_an_object_of_an_archive_class_is_named"),
        there("test_an_object_of_an_archive_class_is_named"),
        "ObjectArchivedError",
    )
    yield Fault(
        name="credentials without access",
        tests={
            "columns": here(
                "test_a_store_that_refuses_is_named_whatever_becomes_of_errors",
                "test_an_answer_that_is_cut_is_named",
            ),
            "spark": there("test_keys_without_access_are_named"),
            "connect": elsewhere("test_keys_without_access_are_named_by_connect"),
        },
        reasons={"plain": _ONE_ENTRY},
        errors=("ObjectStoreError",),
    )
    yield _planned(
        "topic that is not in the catalogue",
        (f"{_LINEAGE}/test_topic_read.py::test_what_cannot_be_meant_is_a_usage_error",),
        "CatalogueError",
    )
    yield _planned(
        "index of a broker's copy gone",
        (f"{_LINEAGE}/test_plan.py::test_an_index_that_is_gone_or_in_another_bucket_is_named",),
        "ObjectNotFoundError",
        "CatalogueError",
    )
    yield _planned(
        "ledger on bookies that is open, or gone",
        (
            f"{_LINEAGE}/test_plan.py::"
            "test_nothing_is_read_of_a_ledger_that_bookkeeper_has_not_closed",
        ),
        "MetadataError",
        "LedgerNotFoundError",
    )
    yield _planned(
        "ledger of a stream that lost its copy",
        (f"{_LINEAGE}/test_arrived.py::test_one_that_lost_its_copy_since_it_was_planned_is_named",),
        "CatalogueError",
    )
    yield _planned(
        "position of a stream that is none",
        (f"{_LINEAGE}/test_arrivals.py::test_what_is_no_position_is_refused",),
        "FormatError",
    )


def _whole() -> Iterator[Fault]:
    def spark(name: str) -> Tests:
        return (f"{_SPARK}::{name}",)

    def elsewhere(name: str) -> Tests:
        return (f"{_ELSEWHERE}::{name}",)

    yield Fault(
        name="random entries, sound and damaged",
        tests={
            "plain": ("tests/unit/offload_format/test_message_decoder.py",),
            "columns": (f"{_DECODE}::test_rows_are_those_of_the_plain_decoder",),
        },
        reasons={"spark": _SAME_READ, "connect": _SAME_READ},
    )
    yield Fault(
        name="random pieces of three producers",
        tests={"columns": (f"{_CHUNKS}::test_messages_are_those_that_a_consumer_joins",)},
        reasons={"plain": _ONE_ENTRY, "spark": _SAME_READ, "connect": _SAME_READ},
    )
    yield Fault(
        name="random transactions",
        tests={
            "columns": (
                f"{_LINEAGE}/test_decided.py::test_random_streams_are_as_their_coordinator_had_them",
            )
        },
        reasons={"plain": _ONE_ENTRY, "spark": _SAME_READ, "connect": _SAME_READ},
    )
    yield Fault(
        name="what a broker wrote and a consumer received",
        tests={
            "plain": (f"{_GOLDEN}::test_rows_are_those_of_the_plain_decoder",),
            "columns": (f"{_GOLDEN}::test_messages_are_those_that_a_consumer_received",),
            "spark": ("tests/stack/test_lineage.py::test_spark_has_them_as_rows",),
            "connect": ("tests/stack/test_spark_reads.py",),
        },
    )
    yield Fault(
        name="a block whose frames are damaged",
        tests={
            "columns": (
                f"{_GOLDEN}::test_a_block_that_is_damaged_is_refused",
                f"{_LINEAGE}/test_topic_read.py::"
                "test_a_block_whose_frames_are_damaged_is_a_line_of_its_own",
            )
        },
        reasons={"plain": _ONE_ENTRY, "spark": _SAME_READ, "connect": _SAME_READ},
        errors=("FormatError",),
    )
    yield Fault(
        name="random predicates, pushed or not",
        tests={
            "columns": (
                f"{_LINEAGE}/test_pushed.py::"
                "test_no_row_that_passes_lies_in_a_block_that_is_left_out",
            ),
            "spark": spark("test_random_predicates_give_what_a_full_read_does"),
            "connect": elsewhere("test_random_predicates_give_what_a_full_read_does_by_connect"),
        },
        reasons={"plain": _ONE_ENTRY},
    )
    yield _of_spark(
        "executor killed in mid-partition",
        f"{_ELSEWHERE}::test_a_worker_that_is_killed_costs_no_row",
    )
    yield _of_spark(
        "stream begun again from its checkpoint, tables joined meanwhile",
        f"{_SPARK}::test_a_stream_that_begins_again_behind_joined_tables_has_each_row_once",
    )
    yield Fault(
        name="an error is told",
        tests={
            "plain": (f"{_DECODE}::test_an_entry_that_cannot_be_read_is_named_or_is_a_row",),
            "columns": (f"{_DECODE}::test_an_entry_that_cannot_be_read_is_named_or_is_a_row",),
            "spark": spark("test_an_error_ends_a_query"),
            "connect": elsewhere("test_an_error_comes_back_by_connect"),
        },
    )
    yield Fault(
        name="secrets planted",
        tests={
            "columns": spark("test_no_secret_is_in_plans_tables_or_errors"),
            "spark": spark("test_no_secret_is_in_plans_tables_or_errors"),
            "connect": elsewhere("test_keys_without_access_are_named_by_connect"),
        },
        reasons={"plain": _ONE_ENTRY},
    )


FAULTS: Final = (*_of_topics(), *_places(), *_whole())
SLOW: Final = ("tests/stack/",)
"""Tests that need servers; all others are cheap enough for every run."""

ROOMS: Final = (
    "tiering_assets.cold",
    "tiering_assets.lineage.in_spark",
    "tiering_assets.lineage.messages",
    "tiering_assets.offload_format.message_codecs",
    "tiering_assets.offload_format.message_decoder",
    "tiering_assets.offload_format.wire_fields",
)
"""Where messages are planned, read and decoded."""
OTHERWISE: Final = {
    "ValueError": "what cannot be meant, refused before anything is planned (test_cold_options.py)",
    "TypeError": "a type of a value that no schema makes; a value's error is a row",
    "TooMuchAtOnceError": "asked again for fewer entries, and never told",
}
"""Errors that no fault gives."""


def raised(rooms: Collection[str] = ROOMS) -> set[str]:
    """Classes of errors that modules of these rooms raise by name."""
    found = set()
    for name in WRITTEN:
        for node in ast.walk(tree_of(name)) if inside(name, *rooms) else ():
            if not isinstance(node, ast.Raise) or node.exc is None:
                continue
            what = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(what, ast.Name):
                found.add("FormatError" if what.id == "format_error" else what.id)
    return {one for one in found if one[0].isupper()}
