"""Counts and bytes of all ledgers, for the two assets without partitions. Reads nothing.

A ledger without a partition is in these counts, too: the backlog may be a million ledgers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.explain.automation_note import first_line
from tiering_assets.defs.explain.topic_rows import RunLink, topic_rows
from tiering_assets.defs.shared.metadata import Metadata, bucket_uri, bytes_text, duration_text
from tiering_assets.explain.figures.lag_figures import (
    Figures,
    FleetFigures,
    ReasonCount,
    StateCount,
)
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.ground.damage_advice import next_step
from tiering_assets.ground.moments import moment
from tiering_assets.look.ledger.states import LedgerState

if TYPE_CHECKING:
    from tiering_assets.batch.newest_releases import ReleasedLedger

_TOPICS_SHOWN = 50
_DAMAGED_SHOWN = 5
_NAMES_MAX = 300  # of characters: pages hide a text of a thousand behind a click
NEWEST_SHOWN = 50  # releases that are named; every one of them costs a read
_FIND = (
    "A ledger's partition is retired some time after its release; its records stay. The table has "
    "the newest {shown} releases, their records below `{place}`.\n\n"
    "Any other ledger: `tierkeeper ledger show ID` prints its state and every record.\n\n"
    "All of a topic: `tierkeeper ledger list --state released --topic TOPIC`."
)
# Words of docs/states.md: on bookies only, and nobody reads them from the bucket yet.
_PENDING = ("sealed", "copying", "copied", "verified", "quarantined")


def backlog_metadata(
    figures: FleetFigures,
    runs: Callable[[str], Sequence[RunLink]] = lambda _topic: (),
    *,
    automation: str = "",
    chart: dg.MetadataValue | None = None,
) -> Metadata:
    """A sentence and a picture, then tables by reason, by state and by topic, each of the same
    ledgers.

    `runs` are the last ones of a topic. `automation` is what keeps it from tiering, the first line
    where no copy is damaged.
    """
    largest = figures.topics.largest(_TOPICS_SHOWN)
    total = figures.total
    reasons = {row.reason.value: row for row in total.reasons}
    states = {row.state.value: row for row in total.states}
    return {
        "summary": dg.MetadataValue.md(backlog_text(figures, automation=automation)),
        **({} if chart is None else {"chart": chart}),
        "by_reason": _counted("reason", reasons),
        "by_state": _counted("state", states),
        "by_topic": topic_rows(largest, {name: runs(name) for name, _one in largest}),
    }


def backlog_text(figures: FleetFigures, *, automation: str = "") -> str:
    """What is on bookies alone, for how long, and what is released; behind what is worse."""
    total = figures.total
    pending, count, size = _pending(total)
    oldest = f", the oldest for {duration_text(_oldest_s(pending))}" if count else ""
    return (
        f"{_damage(figures)}{_standing(automation)}"
        f"**{count} ledgers, {bytes_text(size)}** are on bookies alone{oldest}.\n\n"
        f"{_released(total).ledgers} of {total.ledgers} ledgers are released."
    )


def _oldest_s(rows: Sequence[StateCount]) -> float:
    return max((row.oldest_s for row in rows if row.oldest_s is not None), default=0.0)


def _damage(figures: FleetFigures) -> str:
    """The first line, where a copy is damaged; nothing else where none is."""
    damaged = _damaged(figures.total)
    if damaged is None:
        return ""
    topics = [name for name, one in figures.topics.lagging() if _damaged(one) is not None]
    named = topics[:_DAMAGED_SHOWN]
    while len(named) > 1 and len(", ".join(named)) > _NAMES_MAX:
        named.pop()
    shown = ", ".join(named)
    if len(topics) > len(named):
        shown += f" and {len(topics) - len(named)} more topics"
    step = next_step(None)
    return (
        f"**DAMAGED: {damaged.ledgers} ledgers, {bytes_text(damaged.bytes)}**, of {shown}. "
        f"Next: {step}.\n\n"
    )


def _standing(automation: str) -> str:
    return f"{first_line(automation)}\n\n" if automation else ""


def _damaged(figures: Figures) -> ReasonCount | None:
    found = (row for row in figures.reasons if row.reason is BacklogReason.DAMAGED)
    return next((row for row in found if row.ledgers), None)


def pending_text(total: Figures) -> str:
    """`14 ledgers, 3.1 MiB on bookies alone`."""
    _states, count, size = _pending(total)
    return f"{count} ledgers, {bytes_text(size)} on bookies alone"


def _pending(total: Figures) -> tuple[list[StateCount], int, int]:
    """What is on bookies alone: by state, ledgers and bytes."""
    found = [row for row in total.states if row.state.value in _PENDING]
    return found, sum(row.ledgers for row in found), sum(row.bytes for row in found)


def _released(figures: Figures) -> StateCount:
    none = StateCount(state=LedgerState.RELEASED, ledgers=0, bytes=0, oldest_s=None)
    return next((row for row in figures.states if row.state is LedgerState.RELEASED), none)


def released_metadata(
    figures: FleetFigures, newest: Sequence[ReleasedLedger], *, bucket: str, prefix: str
) -> Metadata:
    """How much the bookies no longer hold, of ledgers that their topics still list.

    `newest` are named with their records below `prefix`, so that a ledger without partition can be
    found.
    """
    released = _released(figures.total)
    largest = figures.topics.largest(_TOPICS_SHOWN, LedgerState.RELEASED)
    find = _FIND.format(shown=len(newest), place=bucket_uri(bucket, prefix))
    return {
        "released_bytes": dg.MetadataValue.int(released.bytes),
        "dagster/row_count": dg.MetadataValue.int(released.ledgers),
        "find_a_ledger": dg.MetadataValue.md(find),
        "newest_releases": _newest(newest, prefix),
        "by_topic": _by_topic({name: [_released(one)] for name, one in largest}),
    }


def _newest(newest: Iterable[ReleasedLedger], prefix: str) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "ledger": str(one.ledger_id),
                    "topic": one.topic or "unknown: its record cannot be read",
                    "released_at": moment(one.released_at),
                    "size": "unknown" if one.bytes is None else bytes_text(one.bytes),
                    "record": one.key.removeprefix(prefix),
                }
            )
            for one in newest
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn("ledger", "string"),
                dg.TableColumn("topic", "string"),
                dg.TableColumn("released_at", "string"),
                dg.TableColumn("size", "string"),
                dg.TableColumn("record", "string", "what the release wrote down"),
            ]
        ),
    )


def _counted(what: str, rows: Mapping[str, ReasonCount | StateCount]) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    what: name,
                    "ledgers": row.ledgers,
                    "size": bytes_text(row.bytes),
                    "oldest": "" if row.oldest_s is None else duration_text(row.oldest_s),
                }
            )
            for name, row in rows.items()
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn(what, "string"),
                dg.TableColumn("ledgers", "int"),
                dg.TableColumn("size", "string"),
                dg.TableColumn("oldest", "string", "time since the first of them was closed"),
            ]
        ),
    )


def _by_topic(topics: Mapping[str, Sequence[StateCount]]) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "topic": topic,
                    "ledgers": sum(row.ledgers for row in found),
                    "size": bytes_text(sum(row.bytes for row in found)),
                    "states": ", ".join(
                        sorted(f"{row.state.value} {row.ledgers}" for row in found)
                    ),
                }
            )
            for topic, found in topics.items()
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn("topic", "string"),
                dg.TableColumn("ledgers", "int"),
                dg.TableColumn("size", "string"),
                dg.TableColumn("states", "string"),
            ]
        ),
    )
