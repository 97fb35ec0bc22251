"""Plain values made to fit a type of Arrow, by names; or a FormatError that says why one cannot.

Owns: how older writers become the newest type. Fields are found by name, those that are missing are
null, others are left out; numbers widen where nothing is lost. What is no text becomes JSON where
text is expected: so values of several types, and of types within themselves, are told.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

import pyarrow as pa

from tiering_assets.resources.errors import FormatError

TextToBytes = Callable[[str], bytes]
Fit = Callable[[Any], Any]
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


def fitter(wanted: Any, *, to_bytes: TextToBytes = of_latin_1) -> Fit:
    """Makes plain values what `pa.array([...], wanted)` takes.

    FormatError names the field that does not fit.
    """
    return _fitter(wanted, to_bytes, "")


def _fitter(wanted: Any, to_bytes: TextToBytes, where: str) -> Fit:
    if _TYPES.is_struct(wanted):
        return _struct(wanted, to_bytes, where)
    if _TYPES.is_list(wanted):
        return _list(wanted, to_bytes, where)
    if _TYPES.is_map(wanted):
        return _map(wanted, to_bytes, where)
    if _TYPES.is_string(wanted):
        return partial(_text, where=where)
    if _TYPES.is_binary(wanted):
        return partial(_bytes, to_bytes=to_bytes, where=where)
    if _TYPES.is_boolean(wanted):
        return partial(_boolean, wanted=wanted, where=where)
    if _TYPES.is_floating(wanted):
        return partial(_floating, wanted=wanted, where=where)
    if _TYPES.is_decimal(wanted):
        return partial(_decimal, wanted=wanted, where=where)
    if _TYPES.is_null(wanted):
        return partial(_nothing, wanted=wanted, where=where)
    return _whole(wanted, where)


def _struct(wanted: Any, to_bytes: TextToBytes, where: str) -> Fit:
    prefix = f"{where}." if where else ""
    fields = [(one.name, _fitter(one.type, to_bytes, f"{prefix}{one.name}")) for one in wanted]

    def fit(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _misfit(value, wanted, where)
        found = value.get
        return {name: fit_one(found(name)) for name, fit_one in fields}

    return fit


def _list(wanted: Any, to_bytes: TextToBytes, where: str) -> Fit:
    fit_one = _fitter(wanted.value_type, to_bytes, f"{where}[]")

    def fit(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise _misfit(value, wanted, where)
        return [fit_one(one) for one in value]

    return fit


def _map(wanted: Any, to_bytes: TextToBytes, where: str) -> Fit:
    inside = f"{where}{{}}"
    fit_key = _fitter(wanted.key_type, to_bytes, inside)
    fit_one = _fitter(wanted.item_type, to_bytes, inside)

    def fit(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _misfit(value, wanted, where)
        return [(fit_key(key), fit_one(one)) for key, one in value.items()]

    return fit


def _text(value: Any, where: str) -> str | None:
    if value is None:
        return None
    try:
        text = value if isinstance(value, str) else as_json(value)
        text.encode()
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError) as error:
        said = "no text of Unicode, or too deep"
        raise FormatError(f"{_at(where)}{said}") from error
    return text


def _bytes(value: Any, to_bytes: TextToBytes, where: str) -> bytes | None:
    if isinstance(value, str):
        return to_bytes(value)
    if value is None or isinstance(value, bytes):
        return value
    raise _misfit(value, pa.binary(), where)


def _boolean(value: Any, wanted: Any, where: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise _misfit(value, wanted, where)


def _nothing(value: Any, wanted: Any, where: str) -> None:
    if value is not None:
        raise _misfit(value, wanted, where)


def as_json(value: Any) -> str:
    """Bytes as Avro spells them. RecursionError, TypeError, ValueError for what JSON has not."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("latin-1")
    raise TypeError(type(value).__name__)


def _floating(value: Any, wanted: Any, where: str) -> float | None:
    if value is None or type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _misfit(value, wanted, where)
    try:
        return float(value)
    except OverflowError:
        raise _misfit(value, wanted, where) from None


def _decimal(value: Any, wanted: Any, where: str) -> Decimal | None:
    if value is None:
        return None
    try:
        if isinstance(value, bytes):
            unscaled = int.from_bytes(value, "big", signed=True)
            found = Decimal((int(unscaled < 0), _digits(unscaled), -wanted.scale))
        elif isinstance(value, int | float | str) and not isinstance(value, bool):
            found = Decimal(str(value))
        else:
            raise _misfit(value, wanted, where)
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


def _whole(wanted: Any, where: str) -> Fit:
    """Of a whole number, and of a time or date as one."""
    low, high = limits(wanted)

    def fit(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is int and low <= value < high:
            return value
        raise _misfit(value, wanted, where)

    return fit


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


def _misfit(value: Any, wanted: Any, where: str) -> FormatError:
    shown = type(value).__name__
    if isinstance(value, int | float | bool):
        shown += f" {value!r:.24}" if not isinstance(value, int) or abs(value) < 1 << 80 else ""
    return FormatError(f"{_at(where)}expected {wanted!s:.60}, found {shown}")


def _at(where: str) -> str:
    return f"field {where}: " if where else ""
