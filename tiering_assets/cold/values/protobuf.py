"""Payloads of protobuf, by a descriptor that Pulsar keeps (PROTOBUF_NATIVE) or the caller gives.

Owns: files of a descriptor come in any order. An enum is its value's name, of an unknown one its
number as text. What may be absent and is, is null; a field without presence has its default. A type
within itself is text, as JSON.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from tiering_assets.cold.values.avro_shape import parse_definition
from tiering_assets.resources.errors import FormatError

_F: Final = FieldDescriptor
_PLAIN: Final[dict[int, Any]] = {
    _F.CPPTYPE_INT32: pa.int32(),
    _F.CPPTYPE_INT64: pa.int64(),
    _F.CPPTYPE_UINT32: pa.uint32(),
    _F.CPPTYPE_UINT64: pa.uint64(),
    _F.CPPTYPE_DOUBLE: pa.float64(),
    _F.CPPTYPE_FLOAT: pa.float32(),
    _F.CPPTYPE_BOOL: pa.bool_(),
    _F.CPPTYPE_ENUM: pa.string(),
}


class ProtobufShape:
    """A message type, by the files that declare it. FormatError where they do not."""

    def __init__(self, files: bytes, message: str) -> None:
        """`files` is a FileDescriptorSet, `message` the full name of a type in it."""
        self._descriptor = _find(files, message)
        self._class = message_factory.GetMessageClass(self._descriptor)
        self.type: Any = _struct(self._descriptor, ())

    def decode(self, payload: bytes) -> Any:
        """Plain values. FormatError for a payload that is no such message."""
        found = self._class()
        try:
            found.ParseFromString(payload)
            return _plain(found)
        except (DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FormatError(f"not a {self._descriptor.full_name}: {error!s:.120}") from error


def native_shape(definition: bytes) -> ProtobufShape:
    """Of what Pulsar keeps of a PROTOBUF_NATIVE schema."""
    said = parse_definition(definition)
    try:
        files = base64.b64decode(said["fileDescriptorSet"], validate=True)
        return ProtobufShape(files, str(said["rootMessageTypeName"]))
    except (KeyError, TypeError, binascii.Error, ValueError) as error:
        raise FormatError(f"its definition names no protobuf message: {error!r:.120}") from error


def _find(files: bytes, message: str) -> Descriptor:
    pool = descriptor_pool.DescriptorPool()
    try:
        waiting = list(descriptor_pb2.FileDescriptorSet.FromString(files).file)
        known: set[str] = set()
        while waiting:
            ready = [one for one in waiting if known.issuperset(one.dependency)]
            if not ready:
                missing = sorted({*waiting[0].dependency} - known)
                raise FormatError(f"its descriptor lacks {', '.join(missing)[:200]}")
            for one in ready:
                pool.Add(one)  # type: ignore[no-untyped-call]
                known.add(one.name)
            waiting = [one for one in waiting if one.name not in known]
        found: Descriptor = pool.FindMessageTypeByName(message)  # type: ignore[no-untyped-call]
    except (DecodeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"its descriptor has no message {message:.80}: {error!s:.160}") from error
    return found


def _struct(message: Descriptor, within: tuple[str, ...]) -> Any:
    if message.full_name in within:
        return pa.string()
    inside = (*within, message.full_name)
    return pa.struct([pa.field(one.name, _type(one, inside)) for one in message.fields])


def _type(field: FieldDescriptor, within: tuple[str, ...]) -> Any:
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_single(key, within), _single(value, within))
    single = _single(field, within)
    return pa.list_(single) if field.is_repeated else single


def _single(field: FieldDescriptor, within: tuple[str, ...]) -> Any:
    if field.message_type is not None:
        return _struct(field.message_type, within)
    if field.cpp_type == _F.CPPTYPE_STRING:
        return pa.binary() if field.type == _F.TYPE_BYTES else pa.string()
    return _PLAIN[field.cpp_type]


def _is_map(field: FieldDescriptor) -> bool:
    message = field.message_type
    return message is not None and message.GetOptions().map_entry


def _plain(message: Any) -> dict[str, Any]:
    return {one.name: _field(message, one) for one in message.DESCRIPTOR.fields}


def _field(message: Any, field: FieldDescriptor) -> Any:
    if _is_map(field):
        of_value = field.message_type.fields_by_name["value"]
        pairs = getattr(message, field.name)
        return {key: _value(pairs[key], of_value) for key in pairs}
    if field.is_repeated:
        return [_value(one, field) for one in getattr(message, field.name)]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(getattr(message, field.name), field)


def _value(value: Any, field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        return _plain(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    return value
