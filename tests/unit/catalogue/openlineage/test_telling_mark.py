"""When something is sent, and what is left of a failure."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.unit.records.examples import AT
from tiering_assets.catalogue.openlineage.runs_told import RunsTold
from tiering_assets.catalogue.openlineage.telling_mark import (
    FIRST_DISTANCE,
    LEASE,
    MOST_DISTANCE,
    POSTING_EVENTS,
    REFUSALS_MAX,
    TellingMark,
    begun,
    distance,
    taken_by,
    why_not_now,
)
from tiering_assets.resources.errors import FormatError

TOLD = begun(7, RunsTold(), at=AT)


def why(mark, *, posted=9, now=AT, leased_for=None):
    return why_not_now(mark, posted=posted, now=now, leased_for=leased_for)


def test_where_nothing_is_new_nothing_is_sent():
    assert why(TOLD, posted=7) == "told up to page 7"
    assert why(TOLD, posted=8) is None


def test_a_batch_that_broke_off_is_gone_on_with_though_nothing_is_new():
    mark = taken_by(TOLD, "me", posted=8, now=AT)
    assert (mark.after, mark.upto, mark.part) == (7, 8, 0)
    assert mark.waits(8)
    done = replace(mark, page=8)
    assert done.waits(8)  # its posting is not told
    assert not replace(done, part=POSTING_EVENTS).waits(8)


def test_a_batch_that_broke_off_stays_as_it_was():
    mark = taken_by(TOLD, "me", posted=8, now=AT)
    again = taken_by(mark, "you", posted=12, now=AT + LEASE)
    assert (again.after, again.upto, again.at, again.sender) == (7, 8, AT, "you")


def test_distances_grow_up_to_a_bound():
    found = [distance(n) for n in range(1, 8)]
    assert found[0] == FIRST_DISTANCE
    assert all(b == min(2 * a, MOST_DISTANCE) for a, b in pairwise(found))
    assert distance(10_000) == MOST_DISTANCE


def test_after_a_failure_it_waits():
    failed = TOLD.was_untaken("h answered 500", now=AT, refused=False)
    assert why(failed) == "h answered 500; tried again in 30 s"
    assert why(failed, now=AT + FIRST_DISTANCE) is None


def test_a_time_of_another_clock_holds_nothing_up():
    failed = replace(TOLD, next_at=AT + MOST_DISTANCE + timedelta(seconds=1))
    assert why(failed) is None


def test_one_that_was_taken_begins_the_distances_anew():
    failed = TOLD.was_untaken("x", now=AT, refused=True).was_untaken("x", now=AT, refused=True)
    assert (failed.tries, failed.refusals) == (2, 2)
    sent = failed.was_sent(AT)
    assert (sent.tries, sent.refusals, sent.why, sent.next_at) == (0, 0, None, None)


def test_another_has_the_lease_until_it_is_over():
    mark = replace(TOLD, sender="other")
    assert why(mark, leased_for=LEASE - timedelta(seconds=1)) == "other sends"
    assert why(mark, leased_for=LEASE) is None


def test_an_event_that_is_refused_again_and_again_is_passed_over():
    mark, waited = TOLD, timedelta()
    for _ in range(REFUSALS_MAX - 1):
        mark = mark.was_untaken("h answered 422", now=AT, refused=True)
        assert mark.next_at is not None
        waited += mark.next_at - AT
        assert (mark.refused, mark.part) == (0, TOLD.part)
    mark = mark.was_untaken("h answered 422", now=AT, refused=True)
    assert (mark.refused, mark.part, mark.tries, mark.next_at) == (1, TOLD.part + 1, 0, None)
    assert mark.why == "passed over: h answered 422"
    assert waited > timedelta(minutes=10)


def test_a_refusal_between_other_failures_begins_to_be_counted_anew():
    mark = TOLD
    for _ in range(3):
        for _ in range(REFUSALS_MAX - 1):
            mark = mark.was_untaken("x", now=AT, refused=True)
        mark = mark.was_untaken("x", now=AT, refused=False)
    assert mark.refused == 0


def test_what_is_written_is_read():
    mark = replace(
        taken_by(TOLD, "me", posted=9, now=AT),
        runs=RunsTold.of_work([("run", AT, [3])]),
        why="h answered 500",
        next_at=AT,
        sent_at=AT,
        tries=1,
        refusals=2,
        sent=3,
        dropped=4,
        refused=5,
        unread=6,
    )
    assert TellingMark.from_json(mark.as_json()) == mark


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"schema": "tierkeeper/openlineage-mark/2"}, "expected 'tierkeeper/openlineage-mark/1'"),
        ({"page": "many"}, "ValueError"),
        ({"at": 5}, "TypeError"),
        ({"runs": 5}, "runs in work"),
    ],
)
def test_another_is_told_by_what_is_wrong_with_it(changed, said):
    with pytest.raises(FormatError, match=said):
        TellingMark.from_json({**TOLD.as_json(), **changed})


def test_one_without_a_field_is_none():
    found = TOLD.as_json()
    del found["upto"]
    with pytest.raises(FormatError, match="upto"):
        TellingMark.from_json(found)
