"""Payloads in Avro's binary encoding, by the schema of their writer and that of the reader.

Owns: what a payload may do: any bytes give a value or a FormatError, in time and memory of their
own size. A type within itself is read by the reader in Python, which stops at a depth where the one
in C would end the process.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any, Final

import fastavro
from fastavro import _read_py as in_python

from tiering_assets.cold.values.avro_shape import AvroShape
from tiering_assets.resources.errors import FormatError

# What fastavro raises of payloads and schemas; it has no base of its own.
_REFUSED: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    fastavro.read.SchemaResolutionError,
    fastavro.schema.SchemaParseException,
    fastavro.schema.UnknownType,
    struct.error,
)


def avro_decoder(writer: AvroShape, reader: AvroShape | None) -> Callable[[bytes], Any]:
    """From a payload to plain values, resolved to the reader's schema where there is one.

    FormatError for schemas that cannot be used; what it returns raises FormatError of payloads.
    """
    if writer.has_free_items:
        raise FormatError("its definition has arrays of items without bytes")
    try:
        written = fastavro.parse_schema(writer.plain, named_schemas={})
        wanted = None
        if reader is not None and reader.plain != writer.plain:
            wanted = fastavro.parse_schema(reader.plain, named_schemas={})
    except _REFUSED as error:
        raise FormatError(f"its definition is no Avro schema: {error!r:.200}") from error
    nested = writer.within_itself or (reader is not None and reader.within_itself)
    read: Any = in_python.schemaless_reader if nested else fastavro.schemaless_reader

    def decode(payload: bytes) -> Any:
        stream = io.BytesIO(payload)
        try:
            found = read(stream, written, wanted)
        except _REFUSED as error:
            raise FormatError(f"not Avro of that schema: {error!r:.160}") from error
        left = len(payload) - stream.tell()
        if left:
            raise FormatError(f"{left} bytes behind the value")
        return found

    return decode
