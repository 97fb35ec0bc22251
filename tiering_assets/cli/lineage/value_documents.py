"""Values of messages as JSON.

Owns: bytes that are text are shown as text, others as base64 by another name. What JSON lacks is
text: times, decimals, and numbers that are none.
"""

from __future__ import annotations

import base64
import math
from datetime import date, time
from typing import Any


def told_bytes(name: str, value: bytes) -> dict[str, str]:
    """Under that name, or as `name_base64`."""
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def told_value(value: Any) -> Any:
    """A value of an Arrow column as JSON has it."""
    match value:
        case dict():
            return told_pairs(value.items())
        case list() if value and all(isinstance(one, tuple) for one in value):
            return told_pairs(value)  # a map
        case list():
            return [told_value(one) for one in value]
        case bytes():
            [told] = told_pairs([("bytes", value)]).items()
            return told[1] if told[0] == "bytes" else dict([told])
        case date() | time():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def told_pairs(pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if isinstance(value, bytes):
            found |= told_bytes(str(name), value)
        else:
            found[str(name)] = told_value(value)
    return found
