"""Values as they stand in a question."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

_LITERALS: Final = 1000


def sql_text(value: str) -> str:
    """A string: whatever is in it, it ends where it ends."""
    return "'" + value.replace("'", "''") + "'"


def sql_value(value: int | str) -> str:
    """A number or a string."""
    return str(value) if isinstance(value, int) else sql_text(value)


def sql_time(when: datetime) -> str:
    """A timestamp, to the microsecond."""
    return f"timestamp '{when.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z'"


def rows_among(table: str, column: str, values: Collection[int] | Collection[str]) -> str:
    """What stands behind `from` for the rows of a table that have one of these values in a column.

    No text has a line break in it: no node's name does.

    Each literal is planned, 0.2 ms: many values are one text in a row of its own, and their rows
    are joined. They stand on the left: in brackets of `in` the engine would keep the whole table in
    memory, to look for them in it. Outside a row the planner would go through what the text
    becomes.
    """
    if not values:  # with `in (null)` a filter around it lets rows through
        return f"(select * from {table} where false)"  # noqa: S608
    if len(values) <= _LITERALS:
        literals = ", ".join(map(sql_value, values))
        return f"(select * from {table} where {column} in ({literals}))"  # noqa: S608
    kind = "bigint" if isinstance(next(iter(values)), int) else "string"
    text = sql_text("\n".join(map(str, values)))
    given = (
        f"select cast(one as {kind}) as one from (select unnest(string_to_array(every, chr(10))) "  # noqa: S608
        f"as one from (values ({text})) as given(every))"
    )
    joined = f"({given}) g right semi join {table} s on s.{column} = g.one"
    return f"(select * from {joined})"  # noqa: S608
