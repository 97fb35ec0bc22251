from datetime import UTC, datetime, timedelta

import pytest

from tiering_assets.automation.stuck_rules import (
    DEAD_CLAIM_MAX,
    Rollover,
    dead_claim,
    open_too_long,
    retention_overdue,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ROLLOVER = Rollover(max_s=4 * 3600, entries=50_000, bytes=2**31)


@pytest.mark.parametrize(
    ("ran_out", "dead"),
    [
        (timedelta(seconds=-1), False),  # it lives
        (timedelta(), False),
        (timedelta(seconds=1), True),
        (DEAD_CLAIM_MAX, False),  # a dropped claim is dated back a day
        (timedelta(days=1), False),
    ],
)
def test_a_claim_is_dead_when_it_ran_out_and_was_not_dropped(ran_out, dead):
    found = dead_claim(7, "run-1", expires_at=NOW - ran_out, store_now=NOW)
    assert (found is not None) is dead


def opened(age, **facts):
    found = open_too_long(
        "persistent://t/ns/orders",
        7,
        opened_at=NOW - age,
        now=NOW,
        limit=5 * HOUR,
        **{"loaded": True, "rollover": ROLLOVER, **facts},
    )
    return None if found is None else str(found)


def test_an_open_ledger_names_the_condition_that_is_not_met():
    assert opened(4 * HOUR) is None
    assert "only with the next message" in opened(5 * HOUR)
    assert "no broker has the topic loaded" in opened(5 * HOUR, loaded=False)
    slow = Rollover(max_s=24 * 3600, entries=10, bytes=20)
    assert "waits for 10 entries, 20 bytes or 1440 minutes" in opened(5 * HOUR, rollover=slow)
    assert "did not tell" in opened(5 * HOUR, loaded=None, rollover=None)


def test_an_open_ledger_past_its_retention_is_told_before_the_limit():
    assert opened(2 * HOUR, retention=3 * HOUR) is None
    said = opened(3.5 * HOUR, retention=3 * HOUR)
    assert "or 240 minutes. Its retention of 3.0 h is over, and only closed ledgers are" in said


def test_overdue_retention_names_its_oldest_ledger_and_the_next_step():
    assert str(retention_overdue("persistent://t/ns/orders", (3, 5))) == (
        "retention overdue: persistent://t/ns/orders: 2 ledgers, the oldest 3, are consumed and past "
        "their retention; only a broker that has the topic loaded trims them: "
        "`tierkeeper topic load-overdue t/ns/orders --plan`"
    )
    assert retention_overdue("persistent://t/ns/orders", ()) is None


def test_an_open_ledger_within_its_retention_is_not_said_to_be_past_it():
    assert "retention" not in opened(5 * HOUR, retention=10 * HOUR)
    assert "retention" not in opened(5 * HOUR)
