"""What filters of a query say of blocks: which cannot have a row that they let through. Pure.

Owns: a filter leaves out blocks and no row, and whoever gave it judges each row once more. So a
filter that is not understood, and a block of which a bound is not known, leave out nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from tiering_assets.lineage.messages.topic_columns import topic_of
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.resources.sql import sql_text, sql_time

_AT_LEAST: Final = ("=", ">=", ">")
_AT_MOST: Final = ("=", "<=", "<")
_COMPARED: Final = {*_AT_LEAST, *_AT_MOST}


@dataclass(frozen=True, slots=True)
class Pushed:
    """A column, how it is compared, and with what.

    `how` is one of `=`, `<`, `<=`, `>`, `>=`, `in` (some values), `within` (from the least to the
    greatest of them), `starts`.
    """

    column: str
    how: str
    value: Any


def may_have(block: PlacedBlock, filters: Iterable[Pushed]) -> bool:
    """Whether a row of the block may pass all of them."""
    bounds = _bounds(block)
    return all(_may_pass(bounds.get(one.column), one) for one in filters)


def sql_of(filters: Iterable[Pushed]) -> str:
    """The same of ledgers and times, as a condition on rows of the catalogue's `blocks`."""
    return " and ".join(["true", *(said for one in filters if (said := _sql(one)))])


def _bounds(block: PlacedBlock) -> Mapping[str, tuple[Any, Any]]:
    topic, partition = topic_of(block.topic)
    return {
        "topic": (topic, topic),
        "partition": (partition, partition),
        "ledger_id": (block.ledger_id, block.ledger_id),
        "entry_id": (block.first_entry_id, block.last_entry_id),
        "publish_time": (block.publish_min, block.publish_max),
    }


def _may_pass(bounds: tuple[Any, Any] | None, asked: Pushed) -> bool:
    if bounds is None or None in bounds or asked.value is None:
        return True
    try:
        return _meets(*bounds, asked.how, asked.value)
    except TypeError:  # a number that is compared with a text: Spark knows what it means
        return True


def _meets(low: Any, high: Any, how: str, value: Any) -> bool:
    match how:
        case "=":
            return bool(low <= value <= high)
        case "<":
            return bool(low < value)
        case "<=":
            return bool(low <= value)
        case ">":
            return bool(high > value)
        case ">=":
            return bool(high >= value)
        case "in" if isinstance(value, Collection):
            return any(_meets(low, high, "=", one) for one in value if one is not None)
        case "within" if isinstance(value, Collection):
            some = [one for one in value if one is not None]
            return bool(some) and bool(low <= max(some) and high >= min(some))
        case "starts":
            return bool(low[: len(value)] <= value <= high[: len(value)])
        case _:
            return True


def _sql(asked: Pushed) -> str:
    """Empty where it says nothing that the rows know. Those of times may know none."""
    if asked.column == "ledger_id":
        return sql_filter(asked) if _are_numbers(asked.value) else ""
    literal = sql_literal(asked.value)
    if asked.column == "publish_time" and isinstance(asked.value, datetime) and literal:
        return " and ".join(
            f"({column} is null or {column} {how} {literal})"
            for column, how, meant in (
                ("publish_max", ">=", _AT_LEAST),
                ("publish_min", "<=", _AT_MOST),
            )
            if asked.how in meant
        )
    return ""


def _are_numbers(value: Any) -> bool:
    return all(type(one) is int for one in (value if isinstance(value, (list, tuple)) else [value]))


def sql_filter(asked: Pushed) -> str:
    """It as a condition on rows that have the column; empty where it cannot be said."""
    if asked.how in ("in", "within") and isinstance(asked.value, Collection):
        literals = [sql_literal(one) for one in asked.value if one is not None]
        return f'"{asked.column}" in ({", ".join(literals)})' if literals and all(literals) else ""
    literal = sql_literal(asked.value)
    if not literal:
        return ""
    if asked.how == "starts":
        return f'starts_with("{asked.column}", {literal})'
    return f'"{asked.column}" {asked.how} {literal}' if asked.how in _COMPARED else ""


def sql_literal(value: Any) -> str:
    """Empty for what has none. The engine of the tables has numbers for some times alone."""
    if type(value) is int and abs(value) < 2**63:
        return str(value)
    if isinstance(value, str):
        return sql_text(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return sql_time(value) if 1680 <= value.astimezone(UTC).year < 2260 else ""
    return ""
