"""What a reader of cold messages is asked by options: texts that are understood or refused.

Owns: an option without a meaning is an error that names those that have one. Without a time all of
them are meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from tiering_assets.catalogue.view import AsOf, Tables
from tiering_assets.cold.columns import COLUMNS, schema_of
from tiering_assets.lineage.asked import USUAL, is_pattern, parse_span, parse_topic
from tiering_assets.lineage.find import (
    blocks_of_ledgers,
    blocks_of_span,
    blocks_of_topics,
    require_topic,
)
from tiering_assets.lineage.messages.read_messages import MessagesAsked
from tiering_assets.lineage.placed_block import PlacedBlock

_OLDEST, _NEWEST = "1680-01-01", "2260-12-31"  # that the tables' engine can tell apart
_NAMES: Final = (
    "topic",
    "ledger",
    "from",
    "until",
    "columns",
    "markers",
    "pieces",
    "verify",
    "on_error",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdOptions:
    """A topic or a pattern, or ledgers, and which messages of them."""

    topic: str = ""
    ledgers: tuple[int, ...] = ()
    messages: MessagesAsked

    @property
    def schema(self) -> pa.Schema:
        return schema_of(self.messages.columns)

    def with_columns(self, names: Sequence[str]) -> ColdOptions:
        """Those of a schema that was asked for."""
        schema_of(names)
        return replace(self, messages=replace(self.messages, columns=tuple(names)))

    def blocks(self, tables: Tables, as_of: AsOf) -> list[PlacedBlock]:
        """Those that may have some of them. CatalogueError for a topic that is not in it."""
        span = self.messages.span
        if self.ledgers:
            return blocks_of_ledgers(tables, self.ledgers)
        if is_pattern(self.topic):
            return blocks_of_topics(tables, self.topic, span)
        name = parse_topic(self.topic)
        found = blocks_of_span(tables, name, span)
        if not found:
            require_topic(tables, name, as_of)
        return found


def cold_options(given: Mapping[str, str]) -> ColdOptions:
    """From options by name, in any case. ValueError for one that cannot be meant."""
    options = {name.lower(): value for name, value in given.items()}
    unknown = options.keys() - {*_NAMES}
    if unknown:
        raise ValueError(f"no option: {', '.join(sorted(unknown))}; there are {', '.join(_NAMES)}")
    topic, ledger = options.get("topic", ""), options.get("ledger", "")
    if bool(topic) == bool(ledger):
        raise ValueError("expected an option `topic`, or `ledger` with ids and commas")
    if topic and not is_pattern(topic):
        parse_topic(topic)
    ledgers = tuple(_id(one) for one in ledger.split(",")) if ledger else ()
    return ColdOptions(topic=topic, ledgers=ledgers, messages=_messages(options))


def _messages(options: Mapping[str, str]) -> MessagesAsked:
    begin, until = options.get("from"), options.get("until")
    span = None
    if begin is not None or until is not None:
        span = parse_span(begin or _OLDEST, until or _NEWEST)
    on_error = options.get("on_error", "fail")
    if on_error not in ("fail", "row"):
        raise ValueError(f"on_error is {on_error!r}: expected fail or row")
    names = named_columns(options.get("columns", USUAL), on_error)
    flags = {name: _flag(name, options) for name in ("markers", "pieces", "verify")}
    return MessagesAsked(span=span, columns=tuple(names), on_error=on_error, **flags)


def named_columns(text: str, on_error: str) -> list[str]:
    """Names with commas, or `all`; and `error` where errors are rows. ValueError for others."""
    names = COLUMNS.names if text == "all" else [one.strip() for one in text.split(",")]
    if on_error == "row" and "error" not in names:
        names = [*names, "error"]
    schema_of(names)
    return names


def _id(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError(f"ledger {text!r} is not an id: expected a number, or some with commas")
    return int(text)


def _flag(name: str, options: Mapping[str, str]) -> bool:
    value = options.get(name, "false").lower()
    if value not in ("true", "false"):
        raise ValueError(f"{name} is {value!r}: expected true or false")
    return value == "true"
