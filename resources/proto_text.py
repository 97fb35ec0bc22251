"""Strings of decoded protobuf messages: text, or a FormatError.

Owns: no bytes get out where text is declared. proto2 does not check UTF-8 on the wire, and the
Python runtime then gives raw bytes for such a string field.
"""

from __future__ import annotations

from tiering_assets.resources.errors import FormatError


def require_text(what: str, value: object) -> str:
    """`value` if it is text; `what` names the field in the FormatError otherwise."""
    if not isinstance(value, str):
        raise FormatError(f"{what} is not UTF-8: {value!r:.80}")
    return value
