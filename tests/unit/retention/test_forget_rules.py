"""Records of a ledger that is gone stay for each reason alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tiering_assets.clean.gone_rules import GoneEvidence
from tiering_assets.retention.forget_rules import RecordsEvidence, why_records_stay

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KEPT = timedelta(days=30)
HOUR = timedelta(hours=1)
FREE = RecordsEvidence(
    gone=GoneEvidence(
        ledger_id=5,
        node_czxid=100,
        listed=(6, 7),
        elsewhere=None,
        in_bookkeeper=False,
        store_now=NOW,
        claimed_live=False,
        held=None,
        planned_at=NOW - HOUR - timedelta(seconds=1),
    ),
    objects=0,
    uploads=0,
    bytes_locked=0,
    newest_record_at=NOW - KEPT - timedelta(seconds=1),
)


def changed(**changes):
    """Some of it otherwise, whether it is of the ledger that is gone or of what it left."""
    of_ledger = {name: changes.pop(name) for name in [*changes] if name in GoneEvidence.__slots__}
    return replace(FREE, gone=replace(FREE.gone, **of_ledger), **changes)


def why(**changes):
    return why_records_stay(changed(**changes), kept=KEPT)


def test_they_may_go_when_nothing_is_left_that_they_speak_of():
    assert why() is None
    assert why(planned_at=None) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"listed": (5, 6)}, "its topic lists the ledger"),
        ({"listed": ()}, "lists no ledger at all"),
        ({"listed": (4, 6)}, "lists the older ledger 4"),
        ({"elsewhere": "another topic"}, "another topic may read it"),
        ({"in_bookkeeper": True}, "BookKeeper has the ledger still"),
        ({"objects": 1}, "1 objects and 0 uploads of it are in the bucket"),
        ({"uploads": 1}, "0 objects and 1 uploads of it are in the bucket"),
        ({"bytes_locked": 9}, "a lock of the store keeps 9 bytes of it"),
        ({"newest_record_at": None}, "none of its records was listed"),
        ({"held": "court"}, "held: court"),
        ({"claimed_live": True}, "a run holds a live claim on the ledger"),
        ({"newest_record_at": NOW - KEPT}, "release.records_kept_s"),
        ({"planned_at": NOW - HOUR}, "a plan is carried out after 1:00:00"),
    ],
)
def test_each_reason_alone_keeps_them(change, reason):
    assert reason in (why(**change) or "")
