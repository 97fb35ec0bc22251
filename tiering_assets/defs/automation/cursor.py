"""What a sensor remembers between two ticks: a small JSON object with a version.

Owns: a cursor is a hint where to go on, never evidence. One that cannot be read, that a newer
version wrote or that is of another cluster starts a new round and says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tiering_assets.defs.shared.names import ClusterNames

VERSION = 1


@dataclass(frozen=True, slots=True)
class Read:
    """`problem` is why the cursor was thrown away."""

    values: Mapping[str, Any]
    problem: str | None = None

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str, default: float = 0.0) -> float:
        value = self.values.get(name)
        return float(value) if type(value) in (int, float) and value is not None else default

    def numbers(self, name: str) -> list[int]:
        value = self.values.get(name)
        return [one for one in value if type(one) is int] if isinstance(value, list) else []


def read_cursor(cluster: ClusterNames, text: str | None) -> Read:
    if not text:
        return Read({})
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return Read({}, f"the cursor is no JSON: {text[:80]!r}; a new round begins")
    version = found.get("version") if isinstance(found, dict) else None
    if version != VERSION:
        return Read(
            {}, f"the cursor has version {version!r}, expected {VERSION}; a new round begins"
        )
    named = found.get("cluster", cluster.name)  # cursors of before name none
    if named != cluster.name:
        return Read(
            {}, f"the cursor is of cluster {named!r}, not {cluster.name!r}; a new round begins"
        )
    return Read(found)


def write_cursor(cluster: ClusterNames, **values: Any) -> str:
    """Values that are None are left out."""
    kept = {name: value for name, value in values.items() if value is not None}
    return json.dumps({"version": VERSION, "cluster": cluster.name, **kept}, sort_keys=True)
