"""What is left of a ledger goes when the ledger is gone, and the first thing that keeps it is
told.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tiering_assets.clean.gone_rules import KEPT, GoneEvidence, why_not_taken

NOW = datetime(2026, 3, 1, tzinfo=UTC)
GONE = GoneEvidence(
    ledger_id=5,
    node_czxid=100,
    listed=(6, 7),
    elsewhere=None,
    in_bookkeeper=False,
    store_now=NOW,
    claimed_live=False,
    held=None,
    planned_at=NOW - KEPT - timedelta(seconds=1),
)
EARLY = {"planned_at": NOW - KEPT}
IN_ORDER: tuple[tuple[dict[str, Any], dict[str, str], str], ...] = (
    ({"in_bookkeeper": True}, {}, "BookKeeper has the ledger still"),
    ({}, {"left": "an object"}, "an object"),
    ({"held": "court"}, {}, "held: court"),
    ({"claimed_live": True}, {}, "a run holds a live claim on the ledger"),
    ({}, {"young": "a day old"}, "a day old"),
    (EARLY, {}, "planned 1:00:00 ago; it waits 1:00:00"),
)


def why(changes, words):
    return why_not_taken(replace(GONE, **changes), **{"young": None, "until": "it waits", **words})


def test_nothing_keeps_what_nobody_has_and_a_plan_of_an_hour_names():
    assert why({}, {}) is None
    assert why({"planned_at": None}, {}) is None
    assert why({"node_czxid": None, "listed": ()}, {}) is None


@pytest.mark.parametrize("first", range(len(IN_ORDER)))
def test_each_reason_alone_keeps_it_and_comes_before_the_next(first):
    changes: dict[str, object] = {}
    words: dict[str, str] = {}
    for change, word, _said in IN_ORDER[first:]:
        changes.update(change)
        words.update(word)
    said = IN_ORDER[first][2]
    assert (why(changes, words) or "").startswith(said)
    assert (why(IN_ORDER[first][0], IN_ORDER[first][1]) or "").startswith(said)
