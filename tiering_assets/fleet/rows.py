"""Ledgers as rows of the catalogue have them, in the words of a survey.

Owns: what a row cannot know comes from who asks: brakes, claims, index objects, BookKeeper's list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final
from uuid import UUID

from tiering_assets.explain.topic_counts import BY_BROKER, BY_US
from tiering_assets.look.brakes.brake import Brakes
from tiering_assets.look.ledger.states import LedgerState, StateEvidence, decide_state
from tiering_assets.look.ledger.survey import LedgerView, SurveyedLedger
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.resources.metastore.ledger_info import (
    LedgerInfo,
    ManagedLedger,
    decode_managed_ledger,
)
from tiering_assets.resources.metastore.offload_context import OffloadContext

Row = Mapping[str, Any]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is looked up beside the rows of some ledgers. The lag of what was published before
    `due_before` is over.

    `attempted_at` is when the store got the records of attempts; of others, and in lists, it is the
    time of their writers, which rows have.
    """

    lag: timedelta
    due_before: datetime
    holds: Brakes
    claimed: Set[int]
    indexed: Set[int]
    in_bookkeeper: Set[int]
    attempted_at: Mapping[int, datetime] = field(default_factory=dict)


def surveyed(row: Row, beside: Beside) -> SurveyedLedger:
    """One ledger, as look/ledger/survey.py has it."""
    ledger_id, published_at = row["ledger_id"], row["published_at"] if row["recorded"] else None
    offloaded, hold = row["offloaded"], beside.holds.why(ledger_id, row["topic"])
    evidence = StateEvidence(
        listed=True,
        open=row["listed_as"] == "open",
        context_complete=offloaded,
        context_other=row["listed_as"] == "copying",
        marked_deleted=row["bookie_copy"] == "marked" or row["listed_as"] == "marked",
        in_bookkeeper=ledger_id in beside.in_bookkeeper,
        claimed=ledger_id in beside.claimed,
        has_index_object=ledger_id in beside.indexed,
        certified=row["certified"],
        quarantined=row["quarantined"],
        published=row["recorded"],
        lag_elapsed=published_at is not None and published_at < beside.due_before,
        held=hold is not None,
    )
    return SurveyedLedger(
        view=view_of(row, decide_state(evidence)),
        evidence=evidence,
        attempts=row["attempts"],
        attempted_at=beside.attempted_at.get(ledger_id, row["attempted_at"]),
        hold=hold,
        published_at=published_at,
        due_at=None if published_at is None else published_at + beside.lag,
        ours=row["attempted_at"] is not None,
        damaged=offloaded and (row["quarantined"] or row["damaged"]),
    )


def settled_state(state: str, hold: str | None) -> LedgerState:
    """A row's state, unless there is a hold on its topic: of those no row tells."""
    found = LedgerState(state)
    if found is LedgerState.PUBLISHED and hold is not None:
        return LedgerState.HELD
    return found


def view_of(row: Row, state: LedgerState) -> LedgerView:
    """What lists show of a ledger."""
    is_open, uid = state is LedgerState.OPEN, row["context_uid"] or row["uid"]
    ours = row["certified"] and row["context_uid"] in (None, row["uid"])
    by = (BY_US if ours else BY_BROKER) if _is_named(row) else None
    return LedgerView(
        ledger_id=row["ledger_id"],
        ml_name=row["topic"],
        topic=full_name(row["topic"]),
        state=state,
        entries=None if is_open else row["entries"],
        bytes=None if is_open else row["bytes"],
        closed_at=row["closed_at"],
        uid=None if uid is None else UUID(uid),
        offloaded_by=by,
    )


def _is_named(row: Row) -> bool:
    """Whether its topic names an attempt, finished or not."""
    return bool(row["offloaded"]) or row["listed_as"] == "copying"


full_name = cache(topic_of)


def as_listed(rows: Iterable[Row]) -> ManagedLedger:
    """A topic's list as far as these rows go: enough for thresholds, and nothing to be edited."""
    return replace(decode_managed_ledger(b""), ledgers=tuple(map(_listed, rows)))


def _listed(row: Row) -> LedgerInfo:
    context, closed_at = None, row["closed_at"]
    if _is_named(row):
        uid = UUID(row["context_uid"] or row["uid"])
        context = OffloadContext(uid=uid, complete=row["offloaded"])
    return LedgerInfo(
        ledger_id=row["ledger_id"],
        entries=row["entries"],
        size=row["bytes"],
        closed_at_ms=None if closed_at is None else (closed_at - _EPOCH) // _MS,
        offload=context,
    )


_MS: Final = timedelta(milliseconds=1)
