"""Who wrote a record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who wrote a record: host and process for people, version for later readers."""

    tool_version: str
    host: str
    run_id: str
