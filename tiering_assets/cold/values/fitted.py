"""A plain value made to fit a type of Arrow, by names; or a FormatError that says why it cannot.

Owns: how older writers become the newest type. Fields are found by name, those that are missing are
null, others are left out; numbers widen where nothing is lost. What is no text becomes JSON where
text is expected: so values of several types, and of types within themselves, are told.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from tiering_assets.resources.errors import FormatError

TextToBytes = Callable[[str], bytes]
_DAY: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_TYPES: Final[Any] = pa.types
_DAYS: Final = (-719_162, 2_932_897)  # of the years 1 to 9999, which calendars of programs have


def of_latin_1(text: str) -> bytes:
    """As Avro spells bytes in JSON: of defaults in schemas."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise FormatError("text where bytes are expected") from error


def of_base64(text: str) -> bytes:
    """As Java writes bytes in JSON."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError("text that is no base64 where bytes are expected") from error


def fit(value: Any, wanted: pa.DataType, *, to_bytes: TextToBytes = of_latin_1) -> Any:
    """What `pa.array([...], wanted)` takes. FormatError names the field that does not fit."""
    return _fit(value, wanted, to_bytes, "")


def _fit(value: Any, wanted: Any, to_bytes: TextToBytes, where: str) -> Any:
    if value is None:
        return None
    if _TYPES.is_struct(wanted):
        return _struct(value, wanted, to_bytes, where)
    if _TYPES.is_list(wanted):
        items = _of(value, list | tuple, wanted, where)
        return [_fit(one, wanted.value_type, to_bytes, f"{where}[]") for one in items]
    if _TYPES.is_map(wanted):
        pairs = _of(value, Mapping, wanted, where).items()
        return [
            (
                _fit(key, wanted.key_type, to_bytes, f"{where}{{}}"),
                _fit(one, wanted.item_type, to_bytes, f"{where}{{}}"),
            )
            for key, one in pairs
        ]
    if _TYPES.is_string(wanted):
        return _text(value, where)
    if _TYPES.is_binary(wanted):
        if isinstance(value, str):
            return to_bytes(value)
        return bytes(_of(value, bytes | bytearray, wanted, where))
    if _TYPES.is_boolean(wanted):
        return _of(value, bool, wanted, where)
    if _TYPES.is_floating(wanted):
        return _floating(value, wanted, where)
    if _TYPES.is_decimal(wanted):
        return _decimal(value, wanted, where)
    if _TYPES.is_null(wanted):
        raise _misfit(value, wanted, where)
    return _whole(value, wanted, where)


def _struct(value: Any, wanted: Any, to_bytes: TextToBytes, where: str) -> dict[str, Any]:
    found = _of(value, Mapping, wanted, where)
    prefix = f"{where}." if where else ""
    return {
        one.name: _fit(found.get(one.name), one.type, to_bytes, f"{prefix}{one.name}")
        for one in wanted
    }


def _text(value: Any, where: str) -> str:
    try:
        text = value if isinstance(value, str) else as_json(value)
        text.encode()
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError) as error:
        said = "no text of Unicode, or too deep"
        raise FormatError(f"{_at(where)}{said}") from error
    return text


def as_json(value: Any) -> str:
    """Bytes as Avro spells them. RecursionError, TypeError, ValueError for what JSON has not."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("latin-1")
    raise TypeError(type(value).__name__)


def _floating(value: Any, wanted: Any, where: str) -> float:
    if isinstance(value, bool):
        raise _misfit(value, wanted, where)
    try:
        return float(_of(value, int | float, wanted, where))
    except OverflowError:
        raise _misfit(value, wanted, where) from None


def _decimal(value: Any, wanted: Any, where: str) -> Decimal:
    try:
        if isinstance(value, bytes | bytearray):
            unscaled = int.from_bytes(value, "big", signed=True)
            found = Decimal((int(unscaled < 0), _digits(unscaled), -wanted.scale))
        else:
            found = Decimal(str(_of(value, int | float | str, wanted, where)))
        exponent = found.as_tuple().exponent
        if not isinstance(exponent, int) or exponent < -wanted.scale:
            raise _misfit(value, wanted, where)
        if found and found.adjusted() + wanted.scale >= wanted.precision:
            raise _misfit(value, wanted, where)
    except (InvalidOperation, ValueError) as error:
        raise _misfit(value, wanted, where) from error
    return found


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


def _whole(value: Any, wanted: Any, where: str) -> int:
    """Of a whole number, and of a time or date as one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool):
        raise _misfit(value, wanted, where)
    number: int = _of(value, int, wanted, where)
    low, high = limits(wanted)
    if not low <= number < high:
        raise _misfit(value, wanted, where)
    return number


def limits(wanted: Any) -> tuple[int, int]:
    """The least number of a type, and the one behind its greatest."""
    bits = wanted.bit_width
    low, high = -(1 << bits - 1), 1 << bits - 1
    if _TYPES.is_unsigned_integer(wanted):
        return 0, 1 << bits
    if _TYPES.is_time(wanted):
        return 0, _DAY[wanted.unit]
    if _TYPES.is_date(wanted):
        return _DAYS
    if _TYPES.is_timestamp(wanted):
        unit = _DAY[wanted.unit]
        return max(low, _DAYS[0] * unit), min(high, _DAYS[1] * unit)
    return low, high


def _of(value: Any, kind: Any, wanted: Any, where: str) -> Any:
    if not isinstance(value, kind):
        raise _misfit(value, wanted, where)
    return value


def _misfit(value: Any, wanted: Any, where: str) -> FormatError:
    shown = type(value).__name__
    if isinstance(value, int | float | bool):
        shown += f" {value!r:.24}" if not isinstance(value, int) or abs(value) < 1 << 80 else ""
    return FormatError(f"{_at(where)}expected {wanted!s:.60}, found {shown}")


def _at(where: str) -> str:
    return f"field {where}: " if where else ""
