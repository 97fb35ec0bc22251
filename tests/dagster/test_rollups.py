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


def view(ledger_id, state, size, age_s, topic="orders"):
    return LedgerView(
        ledger_id=ledger_id,
        ml_name=f"t/ns/persistent/{topic}",
        topic=f"persistent://t/ns/{topic}",
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
    by_reason, by_state = rows(metadata, "reason"), rows(metadata, "state")
    assert {name: row["ledgers"] for name, row in by_reason.items()} == {
        "open": 1,
        "below threshold": 1,
        "failed": 2,
    }
    assert {name: row["ledgers"] for name, row in by_state.items()} == {
        "open": 1,
        "sealed": 2,
        "copied": 1,
    }
    assert by_reason["failed"] == {
        "reason": "failed",
        "ledgers": 2,
        "size": "50 B",
        "oldest": "1.5 min",
    }


def rows(metadata, what):
    """Of a table of the backlog, by reason or by state."""
    table = metadata[f"by_{what}"]
    assert isinstance(table, dg.TableMetadataValue)
    return {record.data[what]: record.data for record in table.records}


def summary_of(*ledgers):
    explained = [
        ExplainedLedger(view=view, because=Because(why, ""), due_at=None) for view, why in ledgers
    ]
    figures = count_figures(map(counted, explained), disturbances_last_hour=0, now=NOW)
    return str(backlog_metadata(figures)["summary"].value)


SEALED = (view(1, LedgerState.SEALED, 10, 60), BacklogReason.BELOW_THRESHOLD)


def test_damage_is_the_first_line_of_the_backlog_with_its_topics_and_the_next_step():
    damaged = view(7, LedgerState.PUBLISHED, 2048, 90, topic="payments")
    [first, *_rest] = summary_of(SEALED, (damaged, BacklogReason.DAMAGED)).splitlines()
    assert first.startswith(
        "**DAMAGED: 1 ledgers, 2.0 KiB**, of persistent://t/ns/payments. Next: "
    )
    assert "`tierkeeper scrub run --execute`" in first


def test_damage_of_many_topics_is_one_line():
    damaged = [
        (view(i, LedgerState.PUBLISHED, 1, 90, topic=f"t{i}"), BacklogReason.DAMAGED)
        for i in range(8)
    ]
    [first, *_rest] = summary_of(*damaged).splitlines()
    assert "persistent://t/ns/t4 and 3 more topics" in first


def test_damage_of_topics_with_long_names_is_shown_without_a_click():
    damaged = [
        (view(i, LedgerState.PUBLISHED, 1, 90, topic=f"{'x' * 200}{i}"), BacklogReason.DAMAGED)
        for i in range(8)
    ]
    text = summary_of(*damaged)
    assert "and 7 more topics" in text
    assert len(text) < 1000  # a longer one is hidden behind a click


def test_without_damage_the_backlog_says_nothing_of_it():
    assert summary_of(SEALED).startswith("**1 ledgers, 10 B** are on bookies alone")
