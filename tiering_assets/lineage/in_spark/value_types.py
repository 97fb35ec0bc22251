"""Values as Spark takes them: for a type that Spark has not, the next one that tells as much.

Owns: times are microseconds, a time of day is its number in its own unit, and a whole number
without sign is one of the next size. Pure.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

_TYPES: Final[Any] = pa.types
_UNSIGNED: Final[dict[Any, Any]] = {
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.null(): pa.string(),
}


def spark_type(kind: Any) -> Any:
    """The type that a value of this one has in Spark."""
    if _TYPES.is_struct(kind):
        return pa.struct([pa.field(one.name, spark_type(one.type)) for one in kind])
    if _TYPES.is_list(kind):
        return pa.list_(spark_type(kind.value_type))
    if _TYPES.is_map(kind):
        return pa.map_(spark_type(kind.key_type), spark_type(kind.item_type))
    if _TYPES.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if _TYPES.is_time32(kind):
        return pa.int32()
    return pa.int64() if _TYPES.is_time64(kind) else _UNSIGNED.get(kind, kind)


def value_for_spark(column: Any) -> Any:
    """A column of values. Nanoseconds are cut; nothing else is lost."""
    wanted = spark_type(column.type)
    return column if wanted == column.type else column.cast(wanted, safe=False)
