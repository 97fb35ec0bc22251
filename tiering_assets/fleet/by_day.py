"""What each day did, by the catalogue's rows: two questions, however many there are.

Owns: days are those of UTC, and one that did nothing is among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from tiering_assets.catalogue.nominate import ProvenTables
from tiering_assets.catalogue.view import answer
from tiering_assets.resources.sql import sql_time
from tiering_assets.resources.tables import rows_in

DAYS: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """Payload bytes of ledgers that brokers began to read from the bucket on that day, and of those
    that bookies lost then.
    """

    day: date
    published: int
    released: int


def work_by_day(source: ProvenTables, now: datetime) -> list[Day]:
    """The last days, the one of `now` behind the others."""
    days = [now.astimezone(UTC).date() - timedelta(days=ago) for ago in reversed(range(DAYS))]
    since = datetime.combine(days[0], time(), UTC)
    published, released = (_done(source, step, since) for step in ("published_at", "released_at"))
    return [
        Day(day=day, published=published.get(day, 0), released=released.get(day, 0)) for day in days
    ]


def _done(source: ProvenTables, step: str, since: datetime) -> dict[date, Any]:
    found = answer(
        source.tables,
        f"select cast(date_trunc('day', {step}) as date) as day, "  # noqa: S608
        f"sum(coalesce(bytes, 0)) as bytes from ledgers where {step} >= {sql_time(since)} group by 1",
    )
    return {row["day"]: row["bytes"] for row in rows_in(found)}
