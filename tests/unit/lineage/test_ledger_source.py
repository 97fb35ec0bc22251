"""`pulsar_ledgers`, without Spark: how blocks become tasks, and times become Spark's."""

from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxFiles

from tiering_assets.lineage.in_spark.ledger_parts import PARTITION_BYTES, as_spark_takes, in_parts
from tiering_assets.lineage.in_spark.ledger_source import (
    LedgersReader,
    PruningReader,
    PulsarLedgers,
)
from tiering_assets.lineage.in_spark.ledger_stream import LedgersStream
from tiering_assets.lineage.placed_block import PlacedBlock

HALF = PARTITION_BYTES // 2


def block(ledger_id, part, length):
    anything: dict[str, Any] = dict.fromkeys(one.name for one in fields(PlacedBlock))
    return PlacedBlock(**anything | {"ledger_id": ledger_id, "part": part, "length": length})


def test_a_task_has_blocks_of_one_ledger_and_not_too_many():
    blocks = [
        block(1, 1, HALF),
        block(1, 2, HALF),
        block(1, 3, 1),
        block(2, 1, PARTITION_BYTES + 1),
        block(2, 2, 1),
    ]
    parts = [[(one.ledger_id, one.part) for one in part] for part in in_parts(blocks)]
    assert parts == [[(1, 1), (1, 2)], [(1, 3)], [(2, 1)], [(2, 2)]]
    assert [*in_parts([])] == []


@pytest.mark.parametrize(
    ("ms", "us"),
    [
        (None, None),
        (0, 0),
        (-1, -1000),
        (1_795_247_080_670, 1_795_247_080_670_000),
        (2**63 // 1000, None),
        (2**63 - 1, None),
        (-(2**63), None),
    ],
)
def test_a_time_that_microseconds_cannot_tell_is_null(ms, us):
    column = pa.array([ms], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    found = as_spark_takes(pa.table({"publish_time": column, "n": [1]}))
    assert found["publish_time"].type == pa.timestamp("us", "UTC")
    assert found["publish_time"].cast(pa.int64()).to_pylist() == [us]
    assert found["n"].to_pylist() == [1]


def test_its_schema_is_that_of_the_columns():
    source = PulsarLedgers({"topic": "public/default/orders", "columns": "entry_id,properties"})
    assert source.name() == "pulsar_ledgers"
    kinds = {field.name: field.dataType.simpleString() for field in source.schema()}
    assert kinds == {"entry_id": "bigint", "properties": "map<string,string>"}
    with pytest.raises(ValueError, match="no column of a message: payloads"):
        PulsarLedgers({"topic": "public/default/orders", "columns": "payloads"})


def test_filters_leave_out_blocks_unless_the_session_may_not_say_so():
    given = {"topic": "public/default/orders"}
    source = PulsarLedgers({**given, "filters": "true"})
    assert isinstance(source.reader(source.schema()), PruningReader)
    plain = PulsarLedgers(given).reader(source.schema())
    assert type(plain) is LedgersReader
    assert "pushFilters" not in vars(LedgersReader)  # else Spark refuses it


def test_a_stream_is_of_a_topic():
    source = PulsarLedgers({"topic": "public/default/orders", "ledgers_per_batch": "5"})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, LedgersStream)
    assert reader.getDefaultReadLimit() == ReadMaxFiles(5)
    assert reader.initialOffset() == {"page": 0, "owed": ""}
    for given in ({"ledger": "7"}, {"topic": "public/default/orders", "include_hot": "true"}):
        with pytest.raises(ValueError, match="a stream is of ledgers of a topic"):
            PulsarLedgers(given).streamReader(source.schema())
