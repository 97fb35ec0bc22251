"""Batches and waits: what must hold whatever ledgers there are."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.policy.admission_rules import History, Ready, pack, retry_after, worth_asking
from tiering_assets.resources.settings import AutoSettings

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOPICS = st.lists(
    st.lists(st.integers(0, 50), min_size=1, max_size=12), max_size=8
)  # sizes of each topic's ledgers


def ready_of(topics):
    ids = iter(range(1000))
    return [
        Ready(ledger_id=next(ids), ml_name=f"t/ns/persistent/{number}", bytes=size)
        for number, sizes in enumerate(topics)
        for size in sizes
    ]


def limits(ledgers=5, size=60):
    return AutoSettings(batch_ledgers_max=ledgers, batch_bytes_max=size)


@given(TOPICS, st.integers(1, 6), st.integers(1, 80))
def test_every_ledger_is_in_one_batch_and_no_batch_is_too_large(topics, ledgers, size):
    ready = ready_of(topics)
    batches = pack(ready, limits(ledgers, size), runs_max=1000)
    taken = [one for batch in batches for one in batch.ledgers]
    assert taken == ready  # all, once, in order
    for batch in batches:
        assert 1 <= len(batch.ledgers) <= ledgers
        assert len(batch.ledgers) == 1 or batch.bytes <= size


@given(TOPICS, st.integers(1, 6), st.integers(1, 80))
def test_a_topic_that_fits_a_batch_is_never_split(topics, ledgers, size):
    ready = ready_of(topics)
    batches = pack(ready, limits(ledgers, size), runs_max=1000)
    spread = Counter(name for batch in batches for name in {one.ml_name for one in batch.ledgers})
    for number, sizes in enumerate(topics):
        if len(sizes) <= ledgers and (sum(sizes) <= size or len(sizes) == 1):
            assert spread[f"t/ns/persistent/{number}"] == 1


@given(TOPICS, st.integers(0, 4))
def test_runs_are_bounded_and_the_first_ledgers_go_first(topics, runs):
    ready = ready_of(topics)
    batches = pack(ready, limits(), runs_max=runs)
    assert len(batches) <= runs
    taken = [one for batch in batches for one in batch.ledgers]
    assert taken == ready[: len(taken)]


def test_a_batch_is_named_by_its_ledgers_alone():
    one, other = ready_of([[1, 2]]), ready_of([[50, 9]])
    assert pack(one, limits(), runs_max=1)[0].name == pack(other, limits(), runs_max=1)[0].name
    assert pack(one[:1], limits(), runs_max=1)[0].name != pack(one, limits(), runs_max=1)[0].name


@pytest.mark.parametrize(
    ("tries", "seconds"), [(1, 60), (2, 120), (3, 240), (7, 3600), (10**6, 3600)]
)
def test_each_try_doubles_the_wait_up_to_the_most(tries, seconds):
    assert retry_after(tries, AutoSettings()) == timedelta(seconds=seconds)


def test_a_ledger_is_tried_when_no_run_has_it_and_its_wait_is_over():
    history = History(running=frozenset({1}), tries={2: 2}, ended_at={2: T0})
    auto = AutoSettings()
    assert not history.may_try(1, auto, now=T0)
    assert not history.may_try(2, auto, now=T0 + timedelta(seconds=119))
    assert history.may_try(2, auto, now=T0 + timedelta(seconds=120))
    assert history.may_try(3, auto, now=T0)
    assert history.next_try(2, auto) == T0 + timedelta(seconds=120)


@given(TOPICS, st.integers(1, 6), st.integers(1, 80))
def test_while_a_run_is_queued_only_well_filled_batches_are_asked_for(topics, ledgers, size):
    some = limits(ledgers, size)
    batches = pack(ready_of(topics), some, runs_max=1000)
    assert worth_asking(batches, some, queued=0) == batches
    asked = worth_asking(batches, some, queued=1)
    for batch in batches:
        filled = 2 * len(batch.ledgers) >= ledgers or 2 * batch.bytes >= size
        assert (batch in asked) is filled
