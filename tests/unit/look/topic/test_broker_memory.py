"""Which brokers are asked before a topic counts as not loaded, and when one is forgotten."""

from datetime import UTC, datetime, timedelta

import pytest

from tiering_assets.look.topic.broker_memory import remember, to_ask
from tiering_assets.records.broker_models import SeenBroker

NOW = datetime(2026, 1, 10, tzinfo=UTC)
MEMORY = timedelta(days=7)
HOUR = timedelta(hours=1)
LONG_AGO = NOW - 100 * MEMORY


def asked(*known, registered=(), gone=None):
    return to_ask(known, registered={*registered}, gone=gone or {}, now=NOW, memory=MEMORY)


def seen(name, at, answered_at=None):
    return SeenBroker(name=name, seen_at=at, answered_at=answered_at)


def test_one_that_is_not_registered_any_more_is_asked_and_one_that_is_needs_no_memory():
    assert asked(seen("b:1", NOW - HOUR), seen("a:1", NOW), registered=["a:1"]) == ("b:1",)


def test_waiting_alone_never_lets_one_go():
    assert asked(seen("b:1", LONG_AGO)) == ("b:1",)
    assert asked(seen("b:1", LONG_AGO, LONG_AGO - HOUR)) == ("b:1",)  # not answered since


@pytest.mark.parametrize(
    ("seen_at", "is_asked"), [(NOW - MEMORY, True), (NOW - MEMORY - HOUR, False)]
)
def test_one_that_answered_since_is_asked_for_as_long_as_the_memory_reaches(seen_at, is_asked):
    assert bool(asked(seen("b:1", seen_at, seen_at + HOUR))) is is_asked


def test_a_person_says_that_it_is_gone_until_it_is_registered_again():
    assert asked(seen("b:1", NOW - HOUR), gone={"b:1": NOW}) == ()
    assert asked(seen("b:1", NOW), gone={"b:1": NOW - HOUR}) == ("b:1",)
    assert asked(seen("b:1", NOW), gone={"other:1": NOW}) == ("b:1",)


def remembered(known, *, registered=(), answered=()):
    return remember(
        known, registered=registered, answered=answered, now=NOW, memory=MEMORY, refresh=HOUR
    )


def test_a_run_that_sees_a_part_leaves_nobody_out():
    known = (seen("a:1", LONG_AGO), seen("b:1", NOW - HOUR))
    assert remembered(known, registered=["c:1"]) == (*known, seen("c:1", NOW))
    assert remembered(known) is None


def test_a_record_that_is_new_enough_is_not_written_again():
    known = (seen("a:1", NOW - HOUR),)
    assert remembered(known, registered=["a:1"]) is None
    old = (seen("a:1", NOW - 2 * HOUR),)
    assert remembered(old, registered=["a:1"]) == (seen("a:1", NOW),)


def test_an_answer_is_kept_and_lets_one_go_that_was_last_registered_before_the_memory():
    young, old = seen("a:1", NOW - HOUR), seen("b:1", LONG_AGO)
    assert remembered((young,), answered=["a:1"]) == (seen("a:1", NOW - HOUR, NOW),)
    assert remembered((young, old), answered=["b:1"]) == (young,)


def test_an_answer_is_written_again_once_the_last_one_is_old_and_no_sooner():
    young, old = seen("a:1", NOW, NOW - HOUR), seen("a:1", NOW, NOW - 2 * HOUR)
    assert remembered((young,), answered=["a:1"]) is None
    assert remembered((old,), answered=["a:1"]) == (seen("a:1", NOW, NOW),)


def test_an_answer_of_one_that_nobody_has_seen_is_not_kept():
    assert remembered((), answered=["a:1"]) is None
