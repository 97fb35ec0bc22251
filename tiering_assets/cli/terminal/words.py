"""How one value reads for people: sizes, times and ages in few characters, on one line. Pure.

Owns: what is not known is `-`. Text of others is escaped, so that one line stays one line.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import Enum

from tiering_assets.ground.moments import moment
from tiering_assets.resources.plain_text import plain

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_KIBI = 1024
NOTHING = "-"
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")
_CHECKED = ("a check of this attempt failed: ", "quarantined: ")


def human_bytes(count: int | None) -> str:
    """`1536` -> `1.5 KiB`; `-` for unknown."""
    if count is None:
        return NOTHING
    value, unit = float(count), 0
    while value >= _KIBI and unit < len(_UNITS) - 1:
        value, unit = value / _KIBI, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def human_time(when: datetime | None) -> str:
    """As everywhere for people, `2026-11-25 13:19:21Z`; `-` for unknown."""
    return NOTHING if when is None else moment(when)


def human_age(seconds: float | None) -> str:
    """`5400` -> `1.5 h`; `-` for unknown. Negative where clocks differ."""
    if seconds is None:
        return NOTHING
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def age_of(when: datetime, now: datetime) -> str:
    """`2.0 h ago`, or `in 2.0 h`."""
    seconds = (now - when).total_seconds()
    return f"{human_age(seconds)} ago" if seconds >= 0 else f"in {human_age(-seconds)}"


def with_ages(text: str, now: datetime) -> str:
    """The text with its age behind each time: they have one form, so one place can see to it."""

    def aged(found: re.Match[str]) -> str:
        try:
            when = datetime.fromisoformat(found[0])
        except ValueError:  # somebody's text that only looks like one
            return found[0]
        return f"{found[0]} ({age_of(when, now)})"

    return _MOMENT.sub(aged, text)


def by_finding(reason: str) -> list[str]:
    """A reason that quotes what a check found has a line for each finding."""
    return reason.split("; ") if reason.startswith(_CHECKED) else [reason]


def plain_cell(value: object) -> str:
    """A value in words, on one line."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return plain(value) if value else NOTHING
    if value is None:
        return NOTHING
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, datetime):
        return human_time(value)
    return plain(str(value))
