"""Columns of Arrow for rows whose fields lie in one array of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tiering_assets.cold.columns import COLUMNS, PROPERTIES
from tiering_assets.cold.entry_heads import (
    BATCH,
    BROKER_INDEX,
    BROKER_TIME,
    CHUNKS,
    CODEC,
    PRODUCER,
    PUBLISHED,
    SIZE,
    signed32,
)
from tiering_assets.cold.gather import binaries, nullable, texts, whole_numbers
from tiering_assets.cold.lockstep import Array, Numbers
from tiering_assets.cold.usual import (
    ENTRY_NUMBERS,
    ENTRY_SLICES,
    NUMBERS,
    SLICES,
    TRANSACTION,
    Pairs,
    Usual,
)
from tiering_assets.offload_format.message_codecs import codec_name
from tiering_assets.resources.arrow_columns import flags, numpy_of, pc, places

_FLAGS = ("key_is_base64", "null_value", "compacted_out")


def column(found: Usual, name: str, *, ledger_id: int, ids: Array) -> Any:
    """One column, of the rows of `found`; `ids` are those of its entries."""
    made = _column(found, name, ledger_id, ids)
    return made.cast(COLUMNS.field(name).type)


def _column(found: Usual, name: str, ledger_id: int, ids: Array) -> Any:
    entry, rows = found.entry, len(found.entry)
    match name:
        case "ledger_id":
            return places(np.full(rows, ledger_id))
        case "entry_id":
            return places(ids[entry])
        case "batch_index":
            return places(found.index)
        case "properties":
            return _maps(found.data, found.pairs, rows)
        case "payload":
            return binaries(found.data, found.payloads())
        case "error" | "first_chunk_ledger_id" | "first_chunk_entry_id":
            return pa.nulls(rows)
        case _ if name in _FLAGS:
            return flags(found.number(name).values != 0)
        case _ if name in NUMBERS:
            return whole_numbers(found.number(name))
        case _ if name in SLICES:
            make = texts if COLUMNS.field(name).type == pa.string() else binaries
            return make(found.data, found.slices(name))
        case _:
            return _of_entries(found, name)


def _of_entries(found: Usual, name: str) -> Any:
    """A column of entries, repeated for their messages."""
    heads, entry = found.heads, found.entry
    chunked = heads.chunked
    if name == "broker_index":
        return whole_numbers(_of_each_message(found, heads.broker.numbers[BROKER_INDEX]))
    if name == "encrypted":
        return flags(heads.encrypted[entry])
    if name == "codec":
        return _names(heads.number(CODEC).values[entry])
    if name == "uncompressed_bytes":
        return whole_numbers(heads.number(SIZE).taken(entry))
    if name in ("batch_size", "marker", "chunks", "chunk"):
        key = {"batch_size": BATCH, "chunks": CHUNKS}.get(name) or ENTRY_NUMBERS[name]
        number = heads.number(key)
        present = chunked if name in ("chunks", "chunk") else number.present
        signed = signed32(number.values).astype(np.int64)
        return nullable(places(signed[entry]), present[entry])
    if name in TRANSACTION:
        both = np.logical_and(*(heads.number(ENTRY_NUMBERS[one]).present for one in TRANSACTION))
        values = heads.number(ENTRY_NUMBERS[name]).values
        return whole_numbers(Numbers(values[entry], both[entry]))
    if name in ("publish_time", "broker_time"):
        of_broker = name == "broker_time"
        number = heads.broker.numbers[BROKER_TIME] if of_broker else heads.number(PUBLISHED)
        return whole_numbers(number.taken(entry))
    slices = heads.fields.slices[PRODUCER if name == "producer" else ENTRY_SLICES[name]]
    if name == "chunk_uuid":
        slices.present[:] = True  # one without is empty
    make = texts if COLUMNS.field(name).type == pa.string() else binaries
    made = make(found.data, slices).take(places(entry))
    return _where(made, chunked[entry]) if name == "chunk_uuid" else made


def _names(codes: Array) -> Any:
    known, which = np.unique(codes, return_inverse=True)
    return pa.array([codec_name(int(code)) for code in known], pa.string()).take(places(which))


def _of_each_message(found: Usual, last: Numbers) -> Numbers:
    """A broker gives a number to each message, and an entry has that of its last one."""
    entry = found.entry
    sizes = signed32(found.heads.number(BATCH).values).astype(np.int64)[entry]
    behind = np.where(found.index >= 0, sizes - 1 - found.index, 0)
    return Numbers(last.values[entry] - behind, last.present[entry])


def _maps(data: Array, pairs: Pairs, rows: int) -> Any:
    """Of a name that stands twice in a row the last counts."""
    names = texts(data, pairs.names)
    kept = _last_of_each(pairs.rows, names)
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(pairs.rows[kept], minlength=rows), out=offsets[1:])
    ends: Any = places(offsets).cast(pa.int32())
    at = places(kept)
    keys, values = names.take(at), texts(data, pairs.values).take(at)
    return pa.MapArray.from_arrays(ends, keys, values).cast(PROPERTIES)


def _last_of_each(rows: Array, names: Any) -> Array:
    """Which pairs no later one of the same row and name follows."""
    if not len(rows):
        return np.zeros(0, np.int64)
    coded = numpy_of(names.dictionary_encode().indices).astype(np.int64)
    order = np.lexsort((np.arange(len(rows)), coded, rows))
    row, code = rows[order], coded[order]
    last = np.ones(len(rows), bool)
    last[:-1] = (row[1:] != row[:-1]) | (code[1:] != code[:-1])
    return np.sort(order[last])


def _where(made: Any, present: Array) -> Any:
    """The same, and null in other rows as well."""
    return pc.if_else(flags(present), made, pa.nulls(len(made), made.type))
