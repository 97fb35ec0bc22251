"""Arrow's arrays of Python's values. `pa.array` imports pandas for each, half a second of CPU."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute

_buffer: Any = pa.py_buffer  # its stubs know no array of numpy
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US: Final = timedelta(microseconds=1)
pc: Any = compute  # its stubs know fewer types than it does
MOMENT: Final[Any] = pa.timestamp("us", "UTC")


def texts(values: Sequence[str | None]) -> pa.Array[Any]:
    """Of 2 GiB in all at most."""
    encoded = [b"" if one is None else one.encode() for one in values]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, encoded), np.int32, len(encoded)), out=offsets[1:])
    return _array(pa.string(), values, _buffer(offsets), _buffer(b"".join(encoded)))


def numbers(values: Sequence[int | None], kind: Any = None) -> pa.Array[Any]:
    """Of 64 bits, or of a kind that is as long."""
    found = (0 if one is None else one for one in values)
    data = np.fromiter(found, np.int64, len(values))
    return _array(kind or pa.int64(), values, _buffer(data))


def moments(values: Sequence[datetime | None]) -> pa.Array[Any]:
    """Times with their zone, to the microsecond."""
    return numbers([None if one is None else (one - _EPOCH) // _US for one in values], MOMENT)


def flags(values: Any) -> pa.Array[Any]:
    """Of booleans, or an array of numpy."""
    bits = np.packbits(np.asarray(values, bool), bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _buffer(bits)])


def places(values: Any) -> pa.Array[Any]:
    """Whole numbers of an array of numpy."""
    data = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(data), [None, _buffer(data)])


def whole(column: Any) -> Any:
    """One array of a column's chunks. Of none, `combine_chunks` makes one by `pa.array`."""
    return column.combine_chunks() if column.num_chunks else pa.nulls(0, column.type)


def chosen(every: pa.Schema, names: Collection[str], refused: str) -> pa.Schema:
    """Columns by these names, in that order. ValueError, which begins so, for unknown ones."""
    unknown = [name for name in names if name not in every.names]
    if unknown:
        raise ValueError(f"{refused} {', '.join(unknown)}; there are {', '.join(every.names)}")
    return pa.schema([every.field(name) for name in names])


def scalar(value: str | int) -> Any:
    """One value; a bool is one, too. `pa.scalar`, and functions that are given a plain value, would
    import pandas.
    """
    if isinstance(value, bool):
        return flags([value])[0]
    return texts([value])[0] if isinstance(value, str) else numbers([value])[0]


def filled(column: Any, value: str | int) -> Any:
    """A column with a value where it has nulls."""
    return pc.fill_null(column, scalar(value).cast(column.type))


def numpy_of(column: Any) -> Any:
    """An array of numpy for a column without nulls; `to_numpy` would import pandas."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_boolean(column.type):
        return np.from_dlpack(column.cast(pa.uint8())).astype(bool)
    return np.from_dlpack(column)


def combined(rows: Any, names: Iterable[str]) -> Any:
    """Of each row a number, which is the same where the rows have the same in these columns."""
    found = np.zeros(len(rows), np.int64)
    for name in names:
        coded = whole(rows[name]).dictionary_encode(null_encoding="encode")
        found = found * len(coded.dictionary) + numpy_of(coded.indices)
    return found


def _array(kind: Any, values: Iterable[object], *buffers: pa.Buffer) -> pa.Array[Any]:
    valid = np.array([one is not None for one in values], bool)
    known = None if valid.all() else _buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(valid), [known, *buffers])
