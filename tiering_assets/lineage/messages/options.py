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
from tiering_assets.cold.values.payload_schema import PayloadSchema
from tiering_assets.lineage.asked import USUAL, is_pattern, parse_span, parse_topic
from tiering_assets.lineage.find import (
    blocks_of_ledgers,
    blocks_of_span,
    blocks_of_topics,
    require_topic,
)
from tiering_assets.lineage.messages.pushed import Pushed, sql_of
from tiering_assets.lineage.messages.read_messages import MessagesAsked
from tiering_assets.lineage.messages.topic_columns import EVERY, OF_TOPIC, OF_VALUE, schema_of
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.resources.errors import CatalogueError

DEFAULT: Final = ",".join([*OF_TOPIC.names, USUAL])
"""Columns, where nobody says which."""
_TIME: Final = "publish_time"
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
    "filters",
    "include_hot",
    "transactions",
    "value",
    "start",
    "ledgers_per_batch",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdOptions:
    """A topic or a pattern, or ledgers, and which messages of them.

    `filters` says whether those of a query leave out blocks. Unless it is asked for they do not:
    Spark 4.3 takes what it planned for a frame's first query for the next one as well, which would
    miss rows. `include_hot` says whether ledgers are meant that lie on bookies alone. A stream
    begins with the oldest ledger or behind the newest, and has so many in a batch.
    """

    topic: str = ""
    ledgers: tuple[int, ...] = ()
    messages: MessagesAsked
    filters: bool = False
    include_hot: bool = False
    start: str = "oldest"
    ledgers_per_batch: int = 1000

    @property
    def schema(self) -> pa.Schema:
        """As far as it is known: values are bytes until the schemas of their topic are given."""
        return schema_of(self.messages.columns, self.messages.typed().type)

    def with_schemas(self, schemas: Sequence[PayloadSchema]) -> ColdOptions:
        """Those of its topic, by which values are read."""
        return replace(self, messages=replace(self.messages, schemas=tuple(schemas)))

    @property
    def of_time(self) -> tuple[Pushed, ...]:
        """What rows of that time pass."""
        span = self.messages.span
        if span is None:
            return ()
        return Pushed(_TIME, ">=", span.first), Pushed(_TIME, "<=", span.last)

    def with_columns(self, names: Sequence[str]) -> ColdOptions:
        """Those of a schema that was asked for."""
        schema_of(names)
        return replace(self, messages=replace(self.messages, columns=tuple(names)))

    def blocks(
        self,
        tables: Tables,
        as_of: AsOf,
        filters: Sequence[Pushed] = (),
        *,
        or_none: bool = False,
    ) -> list[PlacedBlock]:
        """Those in the catalogue that may have some of them that pass the filters.

        CatalogueError for a topic that is not in it, unless there may be none.
        """
        where = sql_of(filters)
        span = self.messages.span
        if self.ledgers:
            return _of_each(blocks_of_ledgers(tables, self.ledgers), self.ledgers, as_of)
        if is_pattern(self.topic):
            return blocks_of_topics(tables, self.topic, span, where)
        name = parse_topic(self.topic)
        found = blocks_of_span(tables, name, span, where)
        if not found and not or_none:
            require_topic(tables, name, as_of)
        return found


def _of_each(
    blocks: list[PlacedBlock], ledger_ids: Sequence[int], as_of: AsOf
) -> list[PlacedBlock]:
    without = sorted({*ledger_ids} - {one.ledger_id for one in blocks})
    if without:
        raise CatalogueError(
            f"ledgers {', '.join(map(str, without[:20]))} have no blocks in the catalogue ({as_of}): "
            f"`tierkeeper ledger show {without[0]}` asks the servers"
        )
    return blocks


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
    messages = _messages(options)
    if messages.with_values and (ledgers or is_pattern(topic)):
        raise ValueError("a value has the type of its topic: expected one `topic`, and no pattern")
    return ColdOptions(
        topic=topic,
        ledgers=ledgers,
        messages=messages,
        filters=_flag("filters", options),
        include_hot=_flag("include_hot", options),
        start=_one_of("start", options, ("oldest", "newest")),
        ledgers_per_batch=_count("ledgers_per_batch", options.get("ledgers_per_batch", "1000")),
    )


def _messages(options: Mapping[str, str]) -> MessagesAsked:
    begin, until = options.get("from"), options.get("until")
    span = None
    if begin is not None or until is not None:
        span = parse_span(begin or _OLDEST, until or _NEWEST)
    on_error = _one_of("on_error", options, ("fail", "row"))
    value = _flag("value", options)
    names = named_columns(options.get("columns", DEFAULT), on_error, value=value)
    made = MessagesAsked(
        span=span,
        columns=tuple(names),
        markers=_flag("markers", options),
        pieces=_flag("pieces", options),
        verify=_flag("verify", options),
        on_error=on_error,
        committed=_one_of("transactions", options, ("all", "committed")) == "committed",
    )
    require_whole(made)
    return made


def require_whole(wanted: MessagesAsked) -> None:
    """ValueError for values of messages that are asked for in pieces."""
    if wanted.with_values and wanted.pieces:
        raise ValueError("a piece of a message has no value: expected `pieces` or `value`")


def named_columns(text: str, on_error: str, *, value: bool = False) -> list[str]:
    """Names with commas, or `all`; those of values where these are asked for, and `error` where
    errors are rows. ValueError for others.
    """
    names = EVERY.names if text == "all" else [one.strip() for one in text.split(",")]
    if value:
        names = [*names, *(one for one in OF_VALUE if one not in names)]
    if on_error == "row" and "error" not in names:
        names = [*names, "error"]
    schema_of(names)
    return names


def _id(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError(f"ledger {text!r} is not an id: expected a number, or some with commas")
    return int(text)


def _count(name: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError(f"{name} is {text!r}: expected a number above 0")
    return int(text)


def _one_of(name: str, options: Mapping[str, str], values: Sequence[str]) -> str:
    """The first one if nothing is said."""
    value = options.get(name, values[0])
    if value not in values:
        raise ValueError(f"{name} is {value!r}: expected {' or '.join(values)}")
    return value


def _flag(name: str, options: Mapping[str, str]) -> bool:
    value = options.get(name, "false").lower()
    if value not in ("true", "false"):
        raise ValueError(f"{name} is {value!r}: expected true or false")
    return value == "true"
