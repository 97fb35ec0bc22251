"""Which schema a message means, and what is said where there is none."""

from struct import pack

import pyarrow as pa
import pytest

from tests.support.typed_rows import rows_of, schema, stored_version, told, value_of
from tiering_assets.cold.values.payload_schema import meant, version_number
from tiering_assets.cold.values.typed import NO_SCHEMA, NOT_ARCHIVED, TypedValues
from tiering_assets.resources.errors import FormatError

STRINGS = [schema("STRING")]


def test_a_version_that_is_not_archived_is_said():
    assert told(STRINGS, [b"x"], version=1) == ([None], [NOT_ARCHIVED])
    assert told([], [b"x"]) == ([None], [NOT_ARCHIVED])
    assert TypedValues([]).type == pa.binary()


def test_so_is_one_that_marks_a_deletion_and_it_is_never_the_newest():
    schemas = [*STRINGS, schema("DELETED", version=1)]
    assert told(schemas, [b"x"], version=1) == ([None], [NOT_ARCHIVED])
    assert TypedValues(schemas).type == pa.string()


def test_messages_without_a_schema_or_closed_ones_have_no_value():
    assert told(STRINGS, [b"x"], version=None) == ([None], [NO_SCHEMA])
    assert told(STRINGS, [b"x"], encrypted=True) == ([None], ["encrypted"])


def test_a_key_that_cannot_be_read_spoils_no_value_that_has_none_of_it():
    assert value_of(STRINGS, b"x", key="*", key_is_base64=True) == "x"


def test_a_message_that_says_it_has_no_value_is_null_without_an_error():
    assert told([schema("INT32")], [b"", None], null_value=[True, None]) == ([None] * 2, [None] * 2)


@pytest.mark.parametrize("versions", [[b"", stored_version(0)], [b"\x00" * 7, stored_version(0)]])
def test_a_version_that_is_none_spoils_no_other_row(versions):
    values, errors = told(STRINGS, [b"x", b"y"], schema_version=versions)
    assert values == [None, "y"]
    assert errors[0] == f"its schema version has {len(versions[0])} bytes, expected 8"


def test_a_version_of_old_brokers_is_longer():
    assert version_number(stored_version(3) + b"\x00" * 56) == 3
    with pytest.raises(FormatError):
        version_number(b"\x00" * 7)


def test_a_type_that_nobody_knows_is_said_of_every_row():
    values, errors = told([schema("76", version=0)], [b"x", b"y"])
    assert values == [None, None]
    assert set(errors) == {
        "schema version 0 (76), the newest: payloads of type 76 are not understood"
    }


def test_an_older_type_that_nobody_knows_spoils_its_own_rows_alone():
    schemas = [schema("76"), schema("STRING", version=1)]
    versions = [stored_version(0), stored_version(1)]
    values, errors = told(schemas, [b"x", b"y"], schema_version=versions)
    assert values == [None, "y"]
    assert errors == ["schema version 0 (76): payloads of type 76 are not understood", None]


OLD = schema("STRING", incarnation=5, ledger_id=10, registered_at_ms=1_000)
NEW = schema("INT32", incarnation=9, ledger_id=20, registered_at_ms=9_000)


@pytest.mark.parametrize(
    ("ledger_id", "publish_ms", "expected"),
    [
        (11, 2_000, OLD),
        (21, 2_000, NEW),  # a ledger younger than the newer schema's own, whatever clocks say
        (19, 9_500, NEW),  # the ledger that was open when the schema came
        (19, 8_999, OLD),
        (19, None, OLD),
        (5, 500, OLD),  # older than both
    ],
)
def test_of_a_topic_made_again_the_schema_of_its_time_is_meant(ledger_id, publish_ms, expected):
    assert meant([OLD, NEW], ledger_id=ledger_id, publish_ms=publish_ms) is expected


def test_values_have_the_type_of_the_newest_topic():
    schemas = [NEW, OLD]
    assert TypedValues(schemas).type == pa.int32()
    number = pack(">i", 4)
    assert value_of(schemas, number, ledger_id=30) == 4
    [value], [error] = told(schemas, [b"x"], ledger_id=11, publish_time=2_000)
    assert value is None
    assert error == "schema version 0 (STRING): expected int32, found str"


def test_columns_keep_their_types_where_there_are_no_rows():
    for schemas in ([], STRINGS, [schema("INT64")]):
        made = TypedValues(schemas)
        values, errors = made.columns(rows_of([]))
        assert (values.type, errors.type) == (made.type, pa.string())
