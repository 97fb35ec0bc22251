"""Values as they stand in a question."""

from __future__ import annotations

from datetime import UTC, datetime


def sql_text(value: str) -> str:
    """A string: whatever is in it, it ends where it ends."""
    return "'" + value.replace("'", "''") + "'"


def sql_time(when: datetime) -> str:
    """A timestamp, to the microsecond."""
    return f"timestamp '{when.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z'"
