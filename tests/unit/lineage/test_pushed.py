"""Filters leave out blocks, and no row that they let through."""

import random
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import datasource as spark

from tiering_assets.lineage.in_spark.spark_filters import pushed
from tiering_assets.lineage.messages.pushed import Pushed, may_have, sql_filter, sql_of
from tiering_assets.lineage.placed_block import PlacedBlock

DAY = datetime(2026, 11, 25, tzinfo=UTC)
ML_NAME = "public/default/persistent/orders"


def block(**known: Any) -> PlacedBlock:
    anything: dict[str, Any] = dict.fromkeys(one.name for one in fields(PlacedBlock))
    usual = {"topic": ML_NAME, "ledger_id": 7, "first_entry_id": 10, "last_entry_id": 19}
    times = {"publish_min": DAY, "publish_max": DAY + timedelta(hours=1)}
    return PlacedBlock(**anything | usual | times | known)


@pytest.mark.parametrize(
    ("one", "kept"),
    [
        (Pushed("ledger_id", "=", 7), True),
        (Pushed("ledger_id", "=", 8), False),
        (Pushed("ledger_id", "in", (1, None, 7)), True),
        (Pushed("ledger_id", "in", (1, None, 8)), False),
        (Pushed("ledger_id", "in", ()), False),
        (Pushed("entry_id", "=", 19), True),
        (Pushed("entry_id", "=", 20), False),
        (Pushed("entry_id", "<", 10), False),
        (Pushed("entry_id", "<", 11), True),
        (Pushed("entry_id", "<=", 10), True),
        (Pushed("entry_id", "<=", 9), False),
        (Pushed("entry_id", ">", 19), False),
        (Pushed("entry_id", ">", 18), True),
        (Pushed("entry_id", ">=", 19), True),
        (Pushed("entry_id", ">=", 20), False),
        (Pushed("entry_id", "within", (0, None, 30)), True),
        (Pushed("entry_id", "within", (0, 9)), False),
        (Pushed("entry_id", "within", (20, 30)), False),
        (Pushed("entry_id", "within", (None,)), False),
        (Pushed("publish_time", ">", DAY + timedelta(hours=1)), False),
        (Pushed("publish_time", ">=", DAY + timedelta(hours=1)), True),
        (Pushed("publish_time", "<", DAY), False),
        (Pushed("topic", "=", "public/default/orders"), True),
        (Pushed("topic", "=", "public/default/order"), False),
        (Pushed("topic", "starts", "public/default/order"), True),
        (Pushed("topic", "starts", "public/default/others"), False),
        (Pushed("topic", "starts", "public/default/orders-and-more"), False),
        (Pushed("partition", "=", 0), True),  # of a topic without partitions none is known
        (Pushed("key", "=", "k"), True),
        (Pushed("ledger_id", "=", None), True),
        (Pushed("ledger_id", "=", "8"), True),  # what that means is for Spark to say
        (Pushed("publish_time", "<", datetime(2020, 1, 1)), True),  # noqa: DTZ001 - of no zone
        (Pushed("ledger_id", "like", 8), True),
    ],
)
def test_a_block_is_left_out_where_no_row_of_it_can_pass(one, kept):
    assert may_have(block(), [one]) is kept


def test_a_partition_is_a_number_and_its_topic_the_whole():
    third = block(topic=f"{ML_NAME}-partition-3")
    assert may_have(third, [Pushed("topic", "=", "public/default/orders")])
    assert may_have(third, [Pushed("partition", "=", 3)])
    assert not may_have(third, [Pushed("partition", "<", 3)])


@pytest.mark.parametrize("unknown", ["publish_min", "publish_max"])
def test_where_a_bound_is_not_known_a_block_stays(unknown):
    assert may_have(block(**{unknown: None}), [Pushed("publish_time", "=", DAY - DAY.resolution)])


def test_no_row_that_passes_lies_in_a_block_that_is_left_out():
    """Numbers of five entries in blocks of random bounds, by what Python says of each."""
    say = {
        "=": lambda a, b: a == b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "in": lambda a, b: a in b,
        "within": lambda a, b: a in b,
    }
    chance, left_out = random.Random(1), 0
    for _ in range(3000):
        first = chance.randrange(12)
        one = block(first_entry_id=first, last_entry_id=first + 4)
        asked = []
        for _ in range(chance.randrange(1, 3)):
            how = chance.choice([*say])
            some = tuple(chance.randrange(-1, 18) for _ in range(chance.randrange(1, 4)))
            asked.append(Pushed("entry_id", how, some if "in" in how else some[0]))
        pass_ = [
            entry
            for entry in range(first, first + 5)
            if all(say[each.how](entry, each.value) for each in asked)
        ]
        if not may_have(one, asked):
            left_out += 1
            assert pass_ == []
    assert left_out > 1000


def test_filters_of_spark_are_understood_or_left_to_it():
    given = [
        spark.EqualTo(("ledger_id",), 7),
        spark.EqualNullSafe(("topic",), "public/default/orders"),
        spark.GreaterThan(("entry_id",), 1),
        spark.GreaterThanOrEqual(("entry_id",), 2),
        spark.LessThan(("entry_id",), 3),
        spark.LessThanOrEqual(("entry_id",), 4),
        spark.In(("ledger_id",), (1, 2)),
        spark.In(("entry_id",), (1, 2)),
        spark.StringStartsWith(("topic",), "public/"),
        spark.Not(spark.EqualTo(("ledger_id",), 7)),
        spark.IsNull(("key",)),
        spark.IsNotNull(("key",)),
        spark.StringEndsWith(("key",), "x"),
        spark.StringContains(("key",), "x"),
        spark.EqualTo(("properties", "key"), "x"),
    ]
    assert {type(one) for one in given} == {*every_filter()}
    assert [(one.column, one.how) for one in pushed(given)] == [
        ("ledger_id", "="),
        ("topic", "="),
        ("entry_id", ">"),
        ("entry_id", ">="),
        ("entry_id", "<"),
        ("entry_id", "<="),
        ("ledger_id", "in"),
        ("entry_id", "within"),
        ("topic", "starts"),
    ]


def every_filter():
    return spark.Filter.__subclasses__()


@pytest.mark.parametrize(
    ("one", "sql"),
    [
        (Pushed("ledger_id", ">=", 7), 'true and "ledger_id" >= 7'),
        (Pushed("ledger_id", "in", (7, 8)), 'true and "ledger_id" in (7, 8)'),
        (Pushed("ledger_id", "in", (7, "8")), "true"),
        (Pushed("ledger_id", "like", 7), "true"),
        (Pushed("ledger_id", "=", "7"), "true"),
        (Pushed("ledger_id", "=", True), "true"),
        (Pushed("ledger_id", "=", 2**63), "true"),
        (Pushed("entry_id", "=", 7), "true"),
        (
            Pushed("publish_time", ">", DAY),
            "true and (publish_max is null or publish_max >= "
            "timestamp '2026-11-25T00:00:00.000000Z')",
        ),
        (Pushed("publish_time", "=", DAY.replace(tzinfo=None)), "true"),
        (Pushed("publish_time", "<", DAY.replace(year=2260)), "true"),
        (Pushed("publish_time", "<", DAY.replace(year=1679)), "true"),
    ],
)
def test_the_catalogue_is_asked_for_fewer_blocks_where_it_can_tell(one, sql):
    assert sql_of([one]) == sql


@pytest.mark.parametrize(
    ("one", "sql"),
    [
        (Pushed("state", "=", "it's"), "\"state\" = 'it''s'"),
        (Pushed("state", "in", ("a", None, "b")), "\"state\" in ('a', 'b')"),
        (Pushed("state", "in", (None,)), ""),
        (Pushed("state", "in", ("a", 1.5)), ""),
        (Pushed("state", "starts", "a"), "starts_with(\"state\", 'a')"),
        (Pushed("closed_at", "<", DAY), "\"closed_at\" < timestamp '2026-11-25T00:00:00.000000Z'"),
        (Pushed("terminated", "=", True), ""),
        (Pushed("entries", ">", None), ""),
    ],
)
def test_rows_of_a_table_are_asked_for_where_it_can_be_said(one, sql):
    assert sql_filter(one) == sql


def test_a_moment_is_asked_of_both_bounds():
    said = sql_of([Pushed("publish_time", "=", DAY)])
    assert "publish_max >= " in said
    assert "publish_min <= " in said
