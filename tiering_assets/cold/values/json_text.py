"""Payloads in JSON, as Pulsar's clients write them.

Owns: of a name that stands twice the last counts, no payload is null, and NaN is no JSON. A number
of any size is one; whether it fits its type is for `fit` to say.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from tiering_assets.resources.errors import FormatError


def decode_json(payload: bytes) -> Any:
    """Plain values. FormatError for anything else."""
    if not payload:
        return None
    try:
        return json.loads(payload.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error!s:.120}") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
