"""Payloads of Pulsar's primitive types: all big-endian, and of a fixed size but for text.

Owns: DATE, TIME and TIMESTAMP are milliseconds since 1970, as Java's own types are. Nanoseconds
that 64 bits cannot tell, before 1677 and after 2262, are errors. Source: Pulsar's schemas of 4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tiering_assets.cold.values.fitted import limits
from tiering_assets.resources.errors import FormatError

_MS: Final[Any] = pa.timestamp("ms", "UTC")
_NS: Final[Any] = pa.timestamp("ns")
_NS_UTC: Final[Any] = pa.timestamp("ns", "UTC")
_TIME: Final[Any] = pa.time64("ns")
_DAY_NS: Final = 86_400_000_000_000
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Primitive:
    """`layout` is the struct of the payload, `value` what its numbers mean, as `type` has it."""

    type: pa.DataType
    layout: Struct
    value: Callable[..., Any]
    dtype: str = ""  # of numpy, where the number is the value


def _same(value: Any) -> Any:
    return value


def _instant(seconds: int, nanos: int) -> int:
    if not 0 <= nanos < _SECOND_NS:
        raise FormatError(f"{nanos} nanoseconds of a second")
    return seconds * _SECOND_NS + nanos


def _of_day(nanos: int) -> int:
    if not 0 <= nanos < _DAY_NS:
        raise FormatError(f"{nanos} nanoseconds of a day")
    return nanos


def _local(day: int, nanos: int) -> int:
    return day * _DAY_NS + _of_day(nanos)


def _one(kind: Any, code: str, dtype: str) -> Primitive:
    return Primitive(kind, Struct(f">{code}"), _same, dtype)


PRIMITIVES: Final[dict[str, Primitive]] = {
    "BOOLEAN": Primitive(pa.bool_(), Struct(">B"), bool),
    "INT8": _one(pa.int8(), "b", ">i1"),
    "INT16": _one(pa.int16(), "h", ">i2"),
    "INT32": _one(pa.int32(), "i", ">i4"),
    "INT64": _one(pa.int64(), "q", ">i8"),
    "FLOAT": _one(pa.float32(), "f", ">f4"),
    "DOUBLE": _one(pa.float64(), "d", ">f8"),
    "DATE": _one(_MS, "q", ">i8"),
    "TIME": _one(_MS, "q", ">i8"),
    "TIMESTAMP": _one(_MS, "q", ">i8"),
    "INSTANT": Primitive(_NS_UTC, Struct(">qi"), _instant),
    "LOCAL_DATE": Primitive(pa.date32(), Struct(">q"), _same),
    "LOCAL_TIME": Primitive(_TIME, Struct(">q"), _of_day),
    "LOCAL_DATE_TIME": Primitive(_NS, Struct(">qq"), _local),
}


def decode_primitive(kind: str, payload: bytes) -> Any:
    """The value as a plain number or text. FormatError for a payload that is none."""
    if kind == "STRING":
        try:
            return payload.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"not UTF-8 at byte {error.start}") from error
    one = PRIMITIVES[kind]
    if len(payload) != one.layout.size:
        raise FormatError(f"{len(payload)} bytes, expected {one.layout.size}")
    return one.value(*one.layout.unpack(payload))


def decode_numbers(kind: str, payloads: Any) -> Any:
    """The same of all payloads at once; None where that is for `decode_primitive` to do."""
    one = PRIMITIVES.get(kind)
    if one is None or not one.dtype or payloads.null_count:
        return None
    found: Any = payloads.cast(pa.large_binary())
    size, count = one.layout.size, len(found)
    offsets = np.frombuffer(found.buffers()[1], np.int64, count + 1, found.offset * 8)
    if count == 0 or (np.diff(offsets) != size).any():
        return None
    data = np.frombuffer(found.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    numbers = np.frombuffer(data.tobytes(), one.dtype)
    if pa.types.is_timestamp(one.type):
        low, high = limits(one.type)
        if (numbers < low).any() or (numbers >= high).any():
            return None
    plain = numbers.astype(numbers.dtype.newbyteorder("=")).tobytes()
    return pa.Array.from_buffers(one.type, count, [None, pa.py_buffer(plain)])
