"""Primitives as Java writes them, by struct, and what is none of them."""

from datetime import UTC, date, datetime
from struct import pack

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.typed_rows import error_of, rows_of, schema, told, value_of
from tiering_assets.cold.values.primitives import PRIMITIVES
from tiering_assets.cold.values.typed import TypedValues

CODES = {"INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q", "FLOAT": "f", "DOUBLE": "d"}
DAY_NS = 86_400_000_000_000


def numbers(code):
    if code in "fd":
        return st.floats(allow_nan=False, width=32 if code == "f" else 64)
    bits = {"b": 8, "h": 16, "i": 32, "q": 64}[code]
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


@pytest.mark.parametrize("kind", CODES)
@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_numbers_are_big_endian_and_the_same_one_by_one(kind, data):
    code = CODES[kind]
    values = data.draw(st.lists(numbers(code), min_size=1, max_size=6))
    payloads = [pack(f">{code}", one) for one in values]
    assert told([schema(kind)], payloads) == (values, [None] * len(values))
    one_by_one = told([schema(kind)], [*payloads, b""])
    assert one_by_one[0] == [*values, None]
    assert str(one_by_one[1][-1]).startswith(f"schema version 0 ({kind}): 0 bytes, expected ")


def test_a_slice_of_rows_is_read_as_its_own():
    rows = rows_of([pack(">i", one) for one in range(9)]).slice(3, 4)
    values, errors = TypedValues([schema("INT32")]).columns(rows)
    assert values.to_pylist() == [3, 4, 5, 6]
    assert errors.null_count == 4


@given(st.text(st.characters(codec="utf-8")))
def test_text_is_utf_8(text):
    assert value_of([schema("STRING")], text.encode()) == text


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        ("BOOLEAN", b"\x01", True),
        ("BOOLEAN", b"\x00", False),
        ("DATE", pack(">q", 1795247080670), datetime(2026, 11, 21, 7, 44, 40, 670000, UTC)),
        ("TIME", pack(">q", 1), datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
        ("TIMESTAMP", pack(">q", -1), datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
        ("LOCAL_DATE", pack(">q", -1), date(1969, 12, 31)),
        ("STRING", b"", ""),
        ("NONE", b"\x00\xff", b"\x00\xff"),
        ("BYTES", b"\x00\xff", b"\x00\xff"),
    ],
)
def test_each_is_what_java_means_by_it(kind, payload, value):
    assert value_of([schema(kind)], payload) == value


@pytest.mark.parametrize(
    ("kind", "payload", "kind_of_arrow", "number"),
    [
        ("INSTANT", pack(">qi", 1, 5), pa.timestamp("ns", "UTC"), 1_000_000_005),
        ("INSTANT", pack(">qi", -1, 999_999_999), pa.timestamp("ns", "UTC"), -1),
        ("LOCAL_TIME", pack(">q", DAY_NS - 1), pa.time64("ns"), DAY_NS - 1),
        ("LOCAL_DATE_TIME", pack(">qq", 1, 7), pa.timestamp("ns"), DAY_NS + 7),
    ],
)
def test_nanoseconds_are_kept(kind, payload, kind_of_arrow, number):
    made = TypedValues([schema(kind)])
    values, errors = made.columns(rows_of([payload]))
    assert values.type == kind_of_arrow
    assert (values.cast(pa.int64()).to_pylist(), errors.to_pylist()) == ([number], [None])


@pytest.mark.parametrize(
    ("kind", "payload", "says"),
    [
        ("STRING", b"a\xff", "not UTF-8 at byte 1"),
        ("INSTANT", pack(">qi", 1 << 60, 0), "expected timestamp[ns, tz=UTC]"),
        ("INSTANT", pack(">qi", 0, -1), "-1 nanoseconds of a second"),
        ("LOCAL_TIME", pack(">q", DAY_NS), f"{DAY_NS} nanoseconds of a day"),
        ("LOCAL_DATE", pack(">q", 1 << 40), "expected date32[day]"),
        ("LOCAL_DATE", pack(">q", 2_932_897), "expected date32[day]"),
        ("DATE", pack(">q", 253402300800000), "expected timestamp[ms, tz=UTC]"),
        ("TIMESTAMP", pack(">q", -62135596800001), "expected timestamp[ms, tz=UTC]"),
        ("LOCAL_DATE_TIME", pack(">qq", 1 << 40, 0), "expected timestamp[ns]"),
        ("LOCAL_DATE_TIME", pack(">qq", 0, -1), "-1 nanoseconds of a day"),
        ("INT32", b"123", "3 bytes, expected 4"),
    ],
)
def test_what_is_none_says_why(kind, payload, says):
    assert says in error_of([schema(kind)], payload)


@given(st.sampled_from(sorted({*PRIMITIVES, "STRING", "NONE"})), st.binary(max_size=24))
@settings(deadline=None, max_examples=200)
def test_any_payload_is_a_value_or_an_error(kind, payload):
    told([schema(kind)], [payload])


def test_older_numbers_widen_and_never_narrow():
    schemas = [schema("INT32"), schema("INT64", version=1), schema("STRING", version=2)]
    assert value_of(schemas[:2], pack(">i", -4)) == -4
    back = [schema("INT64"), schema("INT32", version=1)]
    assert value_of(back, pack(">q", 5)) == 5
    assert "expected int32, found int 1099511627776" in error_of(back, pack(">q", 1 << 40))
    assert value_of(schemas, pack(">i", -4)) == "-4"
