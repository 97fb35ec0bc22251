"""Bytes that lie apart in one array, as a column of Arrow. C++ copies them.

Owns: slices and the gaps between them are one array, of which each second element is dropped; so
nothing is built for a value in Python. They must lie in their order; others are put into it first.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from tiering_assets.cold.lockstep import Array, Numbers, Slices
from tiering_assets.resources.arrow_columns import places

_INT32_MAX: Final = 2**31 - 1
_buffer: Any = pa.py_buffer  # its stubs know no array of numpy


def binaries(data: Array, found: Slices) -> Any:
    """A column of bytes; null where a row has none."""
    starts, ends = _in_order(found)
    if (starts[1:] < ends[:-1]).any():
        order = np.lexsort((found.lengths, np.where(found.present, found.starts, -1)))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return _ascending(data, found.taken(order)).take(places(back))
    return _ascending(data, found)


def _ascending(data: Array, found: Slices) -> Any:
    """Of slices that lie one behind the other, with gaps or without."""
    starts, ends = _in_order(found)
    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    offsets = np.empty(2 * count, np.int64)
    offsets[0::2], offsets[1::2] = starts, ends
    kind, of = (pa.binary(), np.int32) if len(data) <= _INT32_MAX else (pa.large_binary(), np.int64)
    buffers = [None, _buffer(offsets.astype(of)), _buffer(data)]
    with_gaps = pa.Array.from_buffers(kind, 2 * count - 1, buffers)
    column = with_gaps.take(places(np.arange(0, 2 * count - 1, 2)))
    return nullable(column, found.present)


def texts(data: Array, found: Slices) -> Any:
    """A column of text. What is not UTF-8 is shown as clients do."""
    column = binaries(data, found)
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [
                None if one is None else one.decode("utf-8", errors="replace")
                for one in column.to_pylist()
            ],
            pa.string(),
        )


def whole_numbers(found: Numbers) -> Any:
    """A column of signed numbers of 64 bits."""
    return nullable(places(found.values), found.present)


def nullable(column: Any, present: Array) -> Any:
    """The same, and null where nothing is present."""
    if present.all():
        return column
    bits = _buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(column.type, len(column), [bits, *column.buffers()[1:]])


def in_order(parts: list[pa.RecordBatch], rows: Array) -> pa.RecordBatch:
    """The rows of all parts as one batch, by their numbers."""
    joined: Any = pa.Table.from_batches(parts).combine_chunks()
    found: list[pa.RecordBatch] = joined.take(places(np.argsort(rows, kind="stable"))).to_batches()
    return found[0] if found else parts[0]


def _in_order(found: Slices) -> tuple[Array, Array]:
    """Starts and ends; what is not there lies, empty, behind what was before."""
    if found.present.all():
        return found.starts, found.starts + found.lengths
    ends = np.where(found.present, found.starts + found.lengths, 0)
    upto = np.maximum.accumulate(ends) if len(ends) else ends
    return np.where(found.present, found.starts, upto), np.where(found.present, ends, upto)
