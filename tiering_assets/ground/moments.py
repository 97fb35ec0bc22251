"""A time in the words of people: one form everywhere, in UTC, as the Z says. Pure.

Owns: seconds are enough for people; documents and records have them all.
"""

from __future__ import annotations

from datetime import UTC, datetime


def moment(when: datetime) -> str:
    """`2026-11-25 13:19:21Z`"""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
