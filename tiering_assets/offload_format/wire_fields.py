"""Fields of a protobuf message, one after the other, without a generated class.

Owns: any bytes give fields or a FormatError. A field is known by its key, number and wire type in
one: a field that has another wire type is another field, as Pulsar reads it. Groups are refused.
Source: protobuf's encoding; Pulsar's LightProto.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tiering_assets.resources.errors import FormatError

_VARINT_BYTES_MAX: Final = 10
_FIXED_BYTES: Final = {1: 8, 5: 4}  # by wire type


def varint_key(number: int) -> int:
    return number << 3


def bytes_key(number: int) -> int:
    return number << 3 | 2


def iter_fields(data: memoryview, what: str) -> Iterator[tuple[int, int, memoryview]]:
    """(key, number, bytes) of each field in its order: one of the last two is 0 or empty.

    Raises:
        FormatError: a field begins that is none, or does not end. `what` is named.
    """
    at, end = 0, len(data)
    while at < end:
        begins = at
        key, at = read_varint(data, at, what)
        number, length = 0, 0
        if key & 7 == 0:
            number, at = read_varint(data, at, what)
        elif key & 7 == 2:
            length, at = read_varint(data, at, what)
        else:
            length = _FIXED_BYTES.get(key & 7, -1)
        if key < 8 or length < 0 or at + length > end:
            raise FormatError(f"{what}: no field at byte {begins} of {end}")
        yield key, number, data[at : at + length]
        at += length


def read_varint(data: memoryview, at: int, what: str) -> tuple[int, int]:
    """The varint there and where it ends; bits above the 64th are dropped, as Pulsar does."""
    value = 0
    for place in range(_VARINT_BYTES_MAX):
        if at + place >= len(data):
            break
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (2**64 - 1), at + place + 1
    raise FormatError(f"{what}: no number at byte {at} of {len(data)}")


def signed(value: int, bits: int = 64) -> int:
    """What an int32 or int64 field takes of a varint."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
