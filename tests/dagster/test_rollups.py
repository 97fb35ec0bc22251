"""What the backlog asset shows: counts by state and by reason are of the same ledgers."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from tiering_assets.defs.explain.rollups import backlog_metadata
from tiering_assets.explain.backlog import ExplainedLedger, counted
from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.reasons.backlog_reason import BacklogReason, Because
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import LedgerView

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def view(ledger_id, state, size, age_s):
    return LedgerView(
        ledger_id=ledger_id,
        ml_name="t/ns/persistent/orders",
        topic="persistent://t/ns/orders",
        state=state,
        entries=1,
        bytes=size,
        closed_at=None if age_s is None else NOW - timedelta(seconds=age_s),
        uid=None,
        offloaded_by=None,
    )


def test_the_counts_by_reason_are_of_the_same_ledgers_as_those_by_state():
    ledgers = [
        (view(1, LedgerState.SEALED, 10, 60), BacklogReason.BELOW_THRESHOLD),
        (view(2, LedgerState.SEALED, 20, 90), BacklogReason.FAILED),
        (view(3, LedgerState.COPIED, 30, 30), BacklogReason.FAILED),
        (view(4, LedgerState.OPEN, None, None), BacklogReason.OPEN),
    ]
    explained = [
        ExplainedLedger(view=view, because=Because(why, ""), due_at=None) for view, why in ledgers
    ]
    figures = count_figures(map(counted, explained), disturbances_last_hour=0, now=NOW)
    metadata = backlog_metadata(figures)
    told = {name: found.value for name, found in metadata.items()}
    by_reason = {name: n for name, n in told.items() if name.startswith("because_")}
    assert by_reason == {"because_open": 1, "because_below_threshold": 1, "because_failed": 2}
    by_state = {name: n for name, n in told.items() if name.startswith("ledgers_")}
    assert by_state == {"ledgers_open": 1, "ledgers_sealed": 2, "ledgers_copied": 1}
    table = metadata["by_reason"]
    assert isinstance(table, dg.TableMetadataValue)
    [_open, _below, failed] = [record.data for record in table.records]
    assert failed == {"reason": "failed", "ledgers": 2, "bytes": 50, "oldest_seconds": 90.0}
