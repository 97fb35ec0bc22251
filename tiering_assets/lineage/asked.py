"""What people ask lineage for, as text that is understood or refused: places, times, topics.

Owns: nothing that a person typed reaches SQL but as a number, a time, or a quoted string without
control characters. A ValueError says what was expected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import (
    TopicName,
    parse_managed_ledger_name,
    parse_topic_name,
    with_scheme,
)

USUAL: Final = "ledger_id,entry_id,batch_index,publish_time,key,properties,payload"
"""Columns of messages that most people want."""
_PLACE: Final = re.compile(r"(\d{1,19}):(\d{1,19})(?::(-1|\d{1,10}))?", re.ASCII)
_ID_MAX: Final = 2**63 - 1
_HAS_SECONDS: Final = re.compile(r"\d:\d\d:\d")
_HAS_CLOCK: Final = re.compile(r"\d:\d\d")


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """A message id: `batch_index` is None where the whole entry is meant."""

    ledger_id: int
    entry_id: int
    batch_index: int | None = None

    def __str__(self) -> str:
        index = "" if self.batch_index is None else f":{self.batch_index}"
        return f"{self.ledger_id}:{self.entry_id}{index}"


def parse_place(text: str) -> MessagePlace:
    """`4711:250` or `4711:250:7`; -1, which clients print of a message without batch, is none."""
    found = _PLACE.fullmatch(text.strip())
    if found is None or max(map(int, found.groups(default="0"))) > _ID_MAX:
        raise ValueError(
            f"{text!r} is not the id of a message: expected LEDGER:ENTRY or LEDGER:ENTRY:INDEX, "
            "such as 4711:250:7"
        )
    ledger_id, entry_id, index = found.groups()
    batch_index = None if index in (None, "-1") else int(index)
    return MessagePlace(int(ledger_id), int(entry_id), batch_index)


@dataclass(frozen=True, slots=True)
class Span:
    """Both ends belong to it."""

    first: datetime
    last: datetime


def parse_span(at: str, until: str | None) -> Span:
    """A moment, or what lies between two. A day or a minute is meant as a whole where it ends."""
    first, last = _time(at), _last_moment(until or at)
    if last < first:
        raise ValueError(f"{until!r} is before {at!r}")
    return Span(first, last)


def _last_moment(text: str) -> datetime:
    """The last microsecond of what a text names: of a day, a minute, a second."""
    when, plain = _time(text), text.strip()
    if not _HAS_CLOCK.search(plain):
        return when.replace(hour=23, minute=59, second=59, microsecond=999_999)
    if not _HAS_SECONDS.search(plain):
        return when.replace(second=59, microsecond=999_999)
    return when if "." in plain else when.replace(microsecond=999_999)


def _time(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text.strip())
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is not a time: expected one such as 2026-11-25T13:19:21Z, "
            "2026-11-25 13:19 or 2026-11-25; without a zone it is UTC"
        ) from None


def parse_topic(name: str) -> TopicName:
    """`tenant/namespace/topic`, with or without `persistent://`."""
    try:
        return parse_topic_name(with_scheme(name))
    except FormatError as error:
        raise ValueError(str(error)) from None


def is_pattern(topic: str) -> bool:
    """Whether it means any topic that is named so; no topic's name that people write has these."""
    return any(character in topic for character in "*?[")


def is_like(ml_name: str, pattern: str) -> bool:
    """Whether a managed ledger is of a topic, or of a partition of one, like `public/default/a-*`.

    `*` is any text, `?` a character and `[ab]` one of these.
    """
    try:
        found = parse_managed_ledger_name(ml_name)
    except FormatError:
        return False
    names = (str(one).partition("://")[2] for one in (found, found.unpartitioned))
    return any(fnmatchcase(name, pattern.partition("://")[2] or pattern) for name in names)


def is_of(ml_name: str, wanted: TopicName) -> bool:
    """Whether a managed ledger is of the topic, or of a partition of it."""
    try:
        found = parse_managed_ledger_name(ml_name)
    except FormatError:
        return False
    return wanted in (found, found.unpartitioned)
