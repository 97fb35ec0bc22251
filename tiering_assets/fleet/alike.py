"""Settled ledgers, counted by topic, with the reason that all of a kind have. In columns.

Owns: of what is settled the reason follows from facts that rows have, and from holds. So it is
decided once for each combination of these, of which there are some dozens, and not for each topic.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tiering_assets.explain.figures.count_figures import COUNTED, full_names, namespaces
from tiering_assets.explain.reasons.backlog_reason import BacklogEvidence, Because, TopicBlockers
from tiering_assets.explain.reasons.backlog_rules import decide_backlog_reason
from tiering_assets.fleet.rows import Row, settled_state
from tiering_assets.look.brakes.brake import Brakes
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.resources.arrow_columns import (
    MOMENT,
    combined,
    flags,
    numbers,
    pc,
    places,
    texts,
    whole,
)
from tiering_assets.resources.tables import each_row

_FACTS: Final = ("certified", "quarantined", "damaged", "recorded", "offloaded", "ours")
_US: Final = timedelta(microseconds=1)
_SOUND_ONE: Final = "a scrub puts a sound copy in its place"


def count_settled(
    rows: Any, holds: Brakes, lag: timedelta, tell: Callable[[Because], None]
) -> pa.Table:
    """What questions.settled_counts answered, like COUNTED. Each reason that occurs is told."""
    topics = whole(rows["topic"]).dictionary_encode()
    held = texts([holds.why_topic(one) for one in topics.dictionary.to_pylist()])
    rows = rows.append_column("hold", held.take(topics.indices))
    runs_from = pc.if_else(rows["recorded"], rows["published_at"], numbers([None], MOMENT)[0])
    rows = rows.append_column(
        "due_at", pc.add(runs_from, numbers([lag // _US], pa.duration("us"))[0])
    )
    first, kind = _kinds(rows)
    reasons, states, broken = list[str](), list[str](), list[bool]()
    for row in each_row(rows.take(first)):
        because, state, is_broken = _decided(row)
        tell(because)
        reasons.append(because.reason.value)
        states.append(state.value)
        broken.append(is_broken)
    columns = {
        **{name: rows[name] for name in ("certified", "ledgers", "bytes", "closed_at", "due_at")},
        "topic": full_names(topics),
        "namespace": namespaces(topics),
        "reason": texts(reasons).take(kind),
        "state": texts(states).take(kind),
        "damaged": flags(broken).take(kind),
    }
    return pa.Table.from_pydict(columns, schema=COUNTED)


def _kinds(rows: Any) -> tuple[Any, Any]:
    """Of each combination of facts its first row; and the combination of each row."""
    numbered = combined(rows, ("state", "hold", *_FACTS))
    _numbers, first, kind = np.unique(numbered, return_index=True, return_inverse=True)
    return places(first), places(kind)


def _decided(row: Row) -> tuple[Because, LedgerState, bool]:
    """Reason and state of a kind of ledgers, and whether their copies are broken."""
    state = settled_state(row["state"], row["hold"])
    broken = row["offloaded"] and (row["damaged"] or row["quarantined"])
    because = decide_backlog_reason(
        BacklogEvidence(
            state=state,
            topic=TopicBlockers(),
            quarantined=row["quarantined"],
            damaged=_SOUND_ONE if broken else None,
            certified=row["certified"],
            recorded=row["recorded"],
            by_broker=row["offloaded"] and not row["ours"],
            hold=row["hold"],
            due_at=row["due_at"],
        )
    )
    return because, state, broken
