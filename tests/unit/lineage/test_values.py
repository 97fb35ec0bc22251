"""Values of messages by the bucket alone: the cluster has forgotten its schemas."""

import json
import pickle
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.cold_entries import single
from tests.support.pulsar_entries import MESSAGES_IN_BATCH, message
from tests.support.sim_scene import TOPIC
from tests.support.stored_schemas import INT32, PROTOBUF, Registry
from tests.unit.cold.values.test_avro import record, written
from tests.unit.cold.values.test_protobuf import F, field, set_of
from tests.unit.lineage.test_commands import TIME
from tiering_assets.cli.lineage.value_documents import told_value
from tiering_assets.cold.values.payload_schema import PayloadSchema
from tiering_assets.lineage.in_spark import ledger_source
from tiering_assets.lineage.in_spark.ledger_parts import as_spark_takes
from tiering_assets.lineage.in_spark.ledger_source import PruningReader, PulsarLedgers
from tiering_assets.lineage.in_spark.value_types import spark_type, value_for_spark
from tiering_assets.lineage.messages import as_arrow
from tiering_assets.lineage.messages.options import cold_options
from tiering_assets.lineage.messages.plan import plan_messages, reading
from tiering_assets.lineage.messages.read_messages import read_messages
from tiering_assets.lineage.messages.topic_schemas import with_schemas
from tiering_assets.resources.errors import FormatError
from tiering_assets.schemas.archive import archive_schemas

NAME = TOPIC.replace("/persistent/", "/")
READ = (
    "topic",
    "read",
    NAME,
    "--from",
    "2026-11-21",
    "--columns",
    "entry_id,batch_index",
    "--value",
)
OLD = record(("id", "int"))
NEW = record(
    ("id", "long"),
    ("name", ["null", "string"]),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
)
NEW["fields"][1]["default"] = None
NEW["fields"][2]["default"] = 0
KIND = pa.struct([("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("ms", "UTC"))])


def version(number):
    return 16, number.to_bytes(8, "big")


BOTH = written(OLD, {"id": 300})
ENTRIES = [
    message(TIME, version(0), payload=written(OLD, {"id": 1})),
    message(
        TIME,
        version(1),
        (MESSAGES_IN_BATCH, 2),
        payload=single(written(NEW, {"id": 2, "name": "x", "at": 1000})) + single(b"\xff"),
    ),
    message(TIME, version(7), payload=b"?"),
    message(TIME, payload=b"plain"),
    *(
        message(TIME, version(0), (26, b"p-1-9"), (27, 2), (28, 2), (29, at), payload=piece)
        for at, piece in enumerate((BOTH[:1], BOTH[1:]))
    ),
]
FOUND: list[dict[str, Any] | None] = [
    {"id": 1, "name": None, "at": datetime(1970, 1, 1, tzinfo=UTC)},
    {"id": 2, "name": "x", "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)},
    None,
    None,
    None,
    {"id": 300, "name": None, "at": datetime(1970, 1, 1, tzinfo=UTC)},
]
SAID = [
    None,
    None,
    "not Avro of that schema",
    "schema not archived",
    "written without a schema",
    None,
]


@pytest.fixture
def ledger(scene, posted):
    """A published ledger whose schemas are in the bucket, and nowhere else."""
    registry = Registry(scene.cluster, "/schemas/t/ns/orders")
    registry.register(json.dumps(OLD).encode())
    registry.register(json.dumps(NEW).encode())
    archive_schemas(scene.process("archive"), TOPIC, ())
    found = scene.fill(TOPIC, *ENTRIES)
    scene.publish(found)
    registry.forget()
    posted()
    return found


def rows(lines):
    return [json.loads(one) for one in lines if one.startswith("{")]


def agree(errors):
    return all(
        (found is None) == (said is None) and (said is None or said in found)
        for found, said in zip(errors, SAID, strict=True)
    )


def test_lines_have_values_and_what_is_wrong_with_some(told, ledger):
    found = rows(told(*READ))
    assert [(one["entry_id"], one["batch_index"]) for one in found] == [
        *((0, -1), (1, 0), (1, 1), (2, -1), (3, -1)),
        (5, -1),
    ]
    assert "payload" not in found[0]
    assert [one["value"] for one in found] == [
        None if one is None else one | {"at": one["at"].isoformat()} for one in FOUND
    ]
    assert agree([one["value_error"] for one in found])
    assert told.document(*READ)["rows"] == found


def test_a_file_has_them_by_their_type(told, ledger, tmp_path):
    path = tmp_path / "messages"
    told(*READ, "--format", "parquet", "--output", path)
    found = parquet.read_table(path)
    assert found["value"].type == KIND
    assert found["value"].to_pylist() == FOUND
    told(*READ, "--limit", 1, "--format", "arrow", "--output", tmp_path / "arrow")
    assert pa.ipc.open_file(tmp_path / "arrow").read_all()["value"].to_pylist() == FOUND[:1]


def test_a_topic_without_archived_schemas_says_so(told, scene, posted):
    scene.publish(scene.fill(TOPIC, *ENTRIES))
    posted()
    found = rows(told(*READ))
    assert {one["value_error"] for one in found} == {
        "schema not archived",
        "written without a schema",
    }


def test_pieces_have_no_values(told, ledger):
    assert "a piece of a message has no value" in " ".join(told(*READ, "--pieces", code=2))


def test_programs_get_the_type_at_once(scene, ledger, told, monkeypatch):
    @contextmanager
    def opened(_settings):
        yield scene.stack

    monkeypatch.setattr(as_arrow, "open_stack", opened)
    reader = as_arrow.messages(
        NAME, columns=["entry_id"], value=True, settings=scene.stack.settings
    )
    assert reader.schema.field("value").type == KIND
    assert reader.read_all()["value"].to_pylist() == FOUND


def test_a_task_reads_by_the_schemas_of_its_plan(scene, ledger, told):
    asked = cold_options({"topic": NAME, "columns": "entry_id", "value": "true"})
    planned = with_schemas(scene.stack, asked)
    plan = plan_messages(scene.stack, planned)
    sent = pickle.loads(pickle.dumps(planned.messages))
    with reading(scene.stack, plan) as read:
        found = [
            batch
            for _n, batch in read_messages(
                read, plan.blocks, sent, before=plan.before, after=plan.after
            )
        ]
    values = pa.Table.from_batches(found)["value"]
    assert values.type == KIND
    assert values.to_pylist() == FOUND


def test_spark_plans_with_the_type_of_the_newest_schema(scene, ledger, told, monkeypatch):
    asked = []

    @contextmanager
    def opened(_settings):
        asked.append(1)
        yield scene.stack

    monkeypatch.setattr(ledger_source, "open_stack", opened)
    monkeypatch.setattr(ledger_source, "load_settings", lambda: scene.stack)
    given = {"topic": NAME, "columns": "entry_id", "value": "true", "filters": "true"}
    source = PulsarLedgers(given)
    schema = source.schema()
    kinds = {one.name: one.dataType.simpleString() for one in schema}
    assert kinds["value"] == "struct<id:bigint,name:string,at:timestamp>"
    assert kinds["value_error"] == "string"
    reader = source.reader(schema)
    assert isinstance(reader, PruningReader)
    assert reader._asked.messages.columns == ("entry_id", "value", "value_error")
    assert len(reader._asked.messages.schemas) == 2
    assert asked == [1]
    with pytest.raises(ValueError, match="a stream has no `value`"):
        source.streamReader(schema)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"topic": "t/ns/*", "value": "true"}, "expected one `topic`"),
        ({"ledger": "7", "columns": "value"}, "expected one `topic`"),
        ({"topic": NAME, "value": "true", "pieces": "true"}, "expected `pieces` or `value`"),
        ({"topic": NAME, "value": "yes"}, "value is 'yes': expected true or false"),
    ],
)
def test_values_that_cannot_be_meant(given, why):
    with pytest.raises(ValueError, match=why):
        cold_options(given)


def test_columns_of_values_stand_where_they_are_named():
    asked = cold_options({"topic": NAME, "columns": "value,entry_id", "value": "true"})
    assert asked.schema.names == ["value", "entry_id", "value_error"]
    assert cold_options({"topic": NAME, "columns": "value"}).messages.with_values
    assert "value" not in cold_options({"topic": NAME, "columns": "all"}).schema.names
    schema = PayloadSchema(version=0, type="INT32", definition=b"", properties={})
    assert asked.with_schemas([schema]).schema.field("value").type == pa.int32()


ODD = pa.struct(
    [
        ("t", pa.time32("ms")),
        ("n", pa.time64("ns")),
        ("l", pa.list_(pa.timestamp("ns", "UTC"))),
        ("m", pa.map_(pa.string(), pa.struct([("u", pa.uint64()), ("w", pa.uint32())]))),
        ("none", pa.null()),
    ]
)


def test_types_that_spark_has_not_are_told_by_others():
    value = {
        "t": 5,
        "n": 7,
        "l": [1999],
        "m": [("a", {"u": 2**64 - 1, "w": 2**32 - 1})],
        "none": None,
    }
    made = value_for_spark(pa.array([value, None], ODD))
    assert made.type == spark_type(ODD)
    assert made.to_pylist() == [
        {
            "t": 5,
            "n": 7,
            "l": [datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
            "m": [("a", {"u": Decimal(2**64 - 1), "w": 2**32 - 1})],
            "none": None,
        },
        None,
    ]
    from pyspark.sql.pandas.types import from_arrow_schema

    from_arrow_schema(pa.schema([("value", made.type)]))  # refuses types that it does not know
    table = as_spark_takes(pa.table({"value": pa.array([value], ODD)}))
    assert table["value"].type == spark_type(ODD)
    plain = pa.array([1], pa.int32())
    assert value_for_spark(plain) is plain


@pytest.mark.parametrize(
    ("value", "told_as"),
    [
        ({"a": b"x", "b": b"\xff"}, {"a": "x", "b_base64": "/w=="}),
        ([("k", 1), ("v", b"\xff")], {"k": 1, "v_base64": "/w=="}),
        ([b"x", b"\xff", []], ["x", {"bytes_base64": "/w=="}, []]),
        (date(2026, 11, 28), "2026-11-28"),
        (time(1, 2), "01:02:00"),
        (Decimal("1.50"), "1.50"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        ({"a": [{"b": None}]}, {"a": [{"b": None}]}),
    ],
)
def test_what_json_lacks_is_text(value, told_as):
    assert told_value(value) == told_as


def test_a_value_of_one_type_is_that(told, scene, posted):
    Registry(scene.cluster, "/schemas/t/ns/orders").register(b"", INT32)
    archive_schemas(scene.process("archive"), TOPIC, ())
    scene.publish(scene.fill(TOPIC, message(TIME, version(0), payload=b"\x00\x00\x01\x00")))
    posted()
    assert [one["value"] for one in rows(told(*READ))] == [256]


def test_a_program_may_give_a_descriptor(told, scene, posted, monkeypatch):
    files = set_of(field("n", 1, F.TYPE_INT32))
    Registry(scene.cluster, "/schemas/t/ns/orders").register(b"{}", PROTOBUF)
    archive_schemas(scene.process("archive"), TOPIC, ())
    scene.publish(scene.fill(TOPIC, message(TIME, version(0), payload=b"\x08\x05")))
    posted()

    @contextmanager
    def opened(_settings):
        yield scene.stack

    monkeypatch.setattr(as_arrow, "open_stack", opened)

    def values(protobuf):
        return as_arrow.messages(
            NAME,
            columns=["entry_id"],
            value=True,
            protobuf=protobuf,
            settings=scene.stack.settings,
        ).read_all()["value"]

    assert values(None).to_pylist() == [b"\x08\x05"]
    assert values((files.SerializeToString(), "a.Outer")).to_pylist() == [{"n": 5}]
    with pytest.raises(FormatError, match=r"has no message a\.Other"):
        values((files.SerializeToString(), "a.Other"))
