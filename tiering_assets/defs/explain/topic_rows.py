"""The roll-up by topic: a row of each topic with what it has, what is late, what is next, its runs.

Owns: a topic has one next step here, of the reason that most needs somebody. Reads nothing.
The column of a page that shows it is as wide as a third of a screen: so four columns, in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import dagster as dg

from tiering_assets.defs.shared.batches import markdown_cell
from tiering_assets.defs.shared.metadata import bytes_text, duration_text
from tiering_assets.explain.figures.lag_figures import OFFLOADED, PLACES, Figures, ReasonCount
from tiering_assets.explain.reasons.backlog_reason import BacklogReason, Because
from tiering_assets.explain.reasons.next_steps import next_step
from tiering_assets.look.ledger.states import LedgerState

_IN_BUCKET: Final = OFFLOADED | {LedgerState.COPIED, LedgerState.VERIFIED}
_OFF_BOOKIES: Final = frozenset({LedgerState.RELEASED, LedgerState.EXPIRED, LedgerState.UNSAFE})
_HEAD: Final = ("| topic | ledgers | next | runs |", "|---|---|---|---|")


@dataclass(frozen=True, slots=True)
class RunLink:
    """A run of one topic; `said` is what it came to, or its status."""

    run_id: str
    said: str

    def __str__(self) -> str:
        return f"[{_in_link(self.said)}](/runs/{self.run_id})"


def topic_rows(
    topics: Iterable[tuple[str, Figures]], runs: Mapping[str, Sequence[RunLink]]
) -> dg.MetadataValue:
    """Topics in the order given. `runs` are by topic, newest first."""
    rows = [_row(name, one, runs.get(name, ())) for name, one in topics]
    return dg.MetadataValue.md("\n".join([*_HEAD, *rows]) if rows else "no topics")


def _row(topic: str, found: Figures, runs: Sequence[RunLink]) -> str:
    here = sum(row.bytes for row in found.states if row.state not in _OFF_BOOKIES)
    there = sum(row.bytes for row in found.states if row.state in _IN_BUCKET)
    states = ", ".join(f"{row.ledgers} {row.state.value}" for row in found.states if row.ledgers)
    cells = [
        topic.removeprefix("persistent://"),
        f"{states}; {bytes_text(here)} on bookies, {bytes_text(there)} in the bucket",
        f"{behind_text(found)}{next_of_topic(topic, found)}",
        " ".join(map(str, runs)) or "none",
    ]
    return f"| {' | '.join(map(markdown_cell, cells))} |"


def behind_text(found: Figures) -> str:
    """`copy 3.2 h, delete 2.0 d behind; `, by the oldest that waits; empty where none is late."""
    lags = (("copy", found.copy_lag), ("delete", found.delete_lag))
    said = [f"{what} {duration_text(lag.oldest_s)}" for what, lag in lags if lag.ledgers]
    return f"{', '.join(said)} behind; " if said else ""


def next_of_topic(topic: str, found: Figures) -> str:
    """What is done about the reason that most needs somebody; `nothing` where none does."""
    late = [row for row in found.reasons if row.ledgers and _urgency(row) > 0]
    if not late:
        return "nothing"
    reason = max(late, key=lambda row: (_urgency(row), row.bytes)).reason
    due = reason is BacklogReason.NOT_ADMITTED and not found.copy_lag.ledgers
    because = Because(reason, "due for release" if due else "")
    return f"{reason.value}: {next_step(because, topic=topic)}"


def _urgency(row: ReasonCount) -> int:
    """2 for what waits for a person, 1 for what is late, 0 for all that is as it should be."""
    place = PLACES[row.reason]
    return 2 if place.stuck else int(place.copy or place.delete)


def _in_link(text: str) -> str:
    return text.replace("[", "(").replace("]", ")").replace("|", "/")
