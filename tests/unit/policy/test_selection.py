"""Selection against the broker's loop, written out again below from its Java, line by line."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.selected import selected_ids
from tiering_assets.policy.selection import (
    BROKERS_RULES,
    ListedLedger,
    NotSelected,
    Rules,
    Threshold,
    Thresholds,
    describe,
    select_ledgers,
)

NOW_MS = 1_800_000_000_000


@dataclass
class JavaInfo:
    """LedgerInfo's getters: protobuf gives 0 for what is not set."""

    ledger_id: int
    size: int
    timestamp: int
    complete: bool


def maybe_offload(ledgers, threshold_bytes, threshold_seconds, now):
    """ManagedLedgerImpl.maybeOffload; -1 where OffloadPoliciesImpl has null."""
    offload_time_threshold_millis = -1 if threshold_seconds < 0 else threshold_seconds * 1000
    to_offload: list[Any] = []
    if threshold_bytes < 0 and threshold_seconds < 0:
        return to_offload
    size_summed = 0
    by_id = {info.ledger_id: info for info in ledgers}
    for ledger_id in sorted(by_id)[::-1]:  # ledgers.descendingMap()
        info = by_id[ledger_id]
        if info.timestamp == 0:
            continue
        size_summed += info.size
        if info.complete:
            continue
        over_size = threshold_bytes >= 0 and size_summed > threshold_bytes
        over_time = (
            offload_time_threshold_millis >= 0
            and now - info.timestamp >= offload_time_threshold_millis
        )
        if over_size or over_time:
            to_offload.insert(0, ledger_id)  # addFirst
    return to_offload


SIZES = st.one_of(st.integers(0, 20), st.integers(0, 2**40))
TIMES = st.one_of(
    st.just(0),
    st.integers(-5_000, 100_000).map(lambda ago: NOW_MS - ago),
    st.integers(0, 90).map(lambda seconds: NOW_MS - seconds * 1000),
    st.integers(1, NOW_MS),
)
TOPICS = st.lists(
    st.builds(
        JavaInfo,
        ledger_id=st.integers(0, 200),
        size=SIZES,
        timestamp=TIMES,
        complete=st.booleans(),
    ),
    max_size=30,
    unique_by=lambda info: info.ledger_id,
)
BYTES = st.one_of(st.sampled_from([-5, -1, 0]), st.integers(0, 300), st.integers(0, 2**42))
SECONDS = st.one_of(st.sampled_from([-5, -1, 0]), st.integers(0, 90), st.integers(0, 2**33))


def ours(info):
    return ListedLedger(
        ledger_id=info.ledger_id,
        bytes=info.size,
        closed_at_ms=info.timestamp or None,
        offloaded=info.complete,
    )


@given(TOPICS, BYTES, SECONDS, st.randoms())
def test_a_loaded_topic_is_selected_from_as_the_broker_does(topic, size, seconds, shuffled):
    listed = [ours(info) for info in topic]
    shuffled.shuffle(listed)  # the list in the node is not sorted
    verdicts = select_ledgers(
        listed,
        Thresholds(bytes=size, seconds=seconds),
        now_ms=NOW_MS,
        loaded=True,
        rules=BROKERS_RULES,
    )
    assert selected_ids(verdicts) == maybe_offload(topic, size, seconds, NOW_MS)


@given(TOPICS, BYTES, SECONDS)
def test_every_ledger_has_one_verdict_with_its_numbers(topic, size, seconds):
    thresholds = Thresholds(bytes=size, seconds=seconds)
    verdicts = select_ledgers(map(ours, topic), thresholds, now_ms=NOW_MS)
    assert [v.ledger_id for v in verdicts] == sorted(info.ledger_id for info in topic)
    for verdict in verdicts:
        assert verdict.selected is (verdict.why_not is None)
        newer = [i for i in topic if i.ledger_id >= verdict.ledger_id and i.timestamp]
        counted = verdict.why_not is not NotSelected.OPEN and verdict.bytes_from_here is not None
        if counted:
            assert verdict.bytes_from_here == sum(info.size for info in newer)
        assert describe(verdict, thresholds)


@given(TOPICS, BYTES, SECONDS)
def test_off_is_off_whatever_the_word_for_it(topic, size, seconds):
    def selected(thresholds):
        return selected_ids(select_ledgers(map(ours, topic), thresholds, now_ms=NOW_MS))

    assert selected(Thresholds()) == selected(Thresholds(bytes=-1, seconds=-7)) == []
    assert selected(Thresholds(bytes=size)) == selected(Thresholds(bytes=size, seconds=-1))
    assert selected(Thresholds(seconds=seconds)) == selected(Thresholds(bytes=-1, seconds=seconds))


def ledger(ledger_id, size=10, age_s=100.0, **changes):
    made = ListedLedger(
        ledger_id=ledger_id,
        bytes=size,
        closed_at_ms=NOW_MS - round(age_s * 1000),
        offloaded=False,
    )
    return replace(made, **changes)


def verdicts_of(*ledgers, loaded=True, rules=None, **thresholds):
    return select_ledgers(
        ledgers, Thresholds(**thresholds), now_ms=NOW_MS, loaded=loaded, rules=rules
    )


def test_the_byte_threshold_is_what_stays_and_counts_offloaded_ledgers():
    topic = (ledger(1), ledger(2), ledger(3, offloaded=True), ledger(4))
    found = verdicts_of(*topic, bytes=30)
    assert selected_ids(found) == [1]
    assert [v.bytes_from_here for v in found] == [40, 30, 20, 10]
    assert found[0].by == (Threshold.BYTES,)
    assert found[1].why_not is NotSelected.BELOW
    assert found[2].why_not is NotSelected.OFFLOADED
    assert selected_ids(verdicts_of(*topic, bytes=29)) == [1, 2]
    assert selected_ids(verdicts_of(*topic, bytes=0)) == [1, 2, 4]
    thresholds = Thresholds(bytes=30)
    assert describe(found[0], thresholds) == "selected: 40 bytes from here on > 30"
    assert describe(found[1], thresholds) == "below threshold: 30 bytes from here on <= 30"


def test_the_time_threshold_includes_its_own_second():
    topic = (ledger(1, age_s=60), ledger(2, age_s=59.999))
    found = verdicts_of(*topic, seconds=60)
    assert [v.by for v in found] == [(Threshold.SECONDS,), ()]
    assert describe(found[1], Thresholds(seconds=60)) == (
        "below threshold: closed 59.999 s ago < 60 s"
    )
    assert selected_ids(verdicts_of(*topic, seconds=0)) == [1, 2]


def test_a_closing_time_ahead_of_our_clock_is_no_age():
    assert selected_ids(verdicts_of(ledger(1, age_s=-5), seconds=0)) == []


def test_both_thresholds_are_named_where_both_are_reached():
    [found] = verdicts_of(ledger(1), bytes=0, seconds=100)
    assert found.by == (Threshold.BYTES, Threshold.SECONDS)


def test_an_open_ledger_neither_counts_nor_goes():
    found = verdicts_of(ledger(1), ledger(2, closed_at_ms=None, bytes=1000), bytes=10)
    assert [v.why_not for v in found] == [NotSelected.BELOW, NotSelected.OPEN]
    assert found[1].bytes_from_here is None


@pytest.mark.parametrize("loaded", [False, None])
def test_a_topic_that_is_not_known_to_be_loaded_is_a_rule(loaded):
    assert selected_ids(verdicts_of(ledger(1), loaded=loaded, bytes=0)) == [1]
    [found] = verdicts_of(ledger(1), loaded=loaded, rules=BROKERS_RULES, bytes=0)
    assert found.why_not is NotSelected.NOT_LOADED


def test_the_last_ledger_of_a_terminated_topic_is_a_rule():
    topic = (ledger(1), ledger(2, terminated=True))
    found = verdicts_of(*topic, bytes=10)
    assert [v.why_not for v in found] == [NotSelected.BELOW, NotSelected.TERMINATED]
    found = verdicts_of(*topic, bytes=10, rules=Rules(terminated_last=True))
    assert [v.selected for v in found] == [True, False]
    found = verdicts_of(*topic, bytes=0, rules=Rules(terminated_last=True))
    assert selected_ids(found) == [1, 2]


def test_a_ledger_without_bytes_is_a_rule():
    """By bytes it goes as soon as anything newer is more than the threshold keeps."""
    topic = (ledger(1, size=0), ledger(2))
    assert selected_ids(verdicts_of(*topic, bytes=5)) == [1, 2]
    found = verdicts_of(*topic, bytes=5, rules=Rules(zero_length=False))
    assert [v.why_not for v in found] == [NotSelected.ZERO_LENGTH, None]


def test_only_thresholds_that_are_set_are_described():
    listed = [ListedLedger(ledger_id=1, bytes=40, closed_at_ms=NOW_MS - 5000, offloaded=False)]
    for thresholds, said in (
        (Thresholds(bytes=-1, seconds=5), "selected: closed 5.000 s ago >= 5 s"),
        (Thresholds(bytes=40, seconds=-1), "below threshold: 40 bytes from here on <= 40"),
    ):
        [found] = select_ledgers(listed, thresholds, now_ms=NOW_MS)
        assert describe(found, thresholds) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [({"closed_at_ms": None}, "open"), ({"offloaded": True}, "already offloaded")],
)
def test_of_a_ledger_that_no_threshold_decides_no_number_is_told(change, said):
    thresholds = Thresholds(bytes=10, seconds=5)
    listed = ListedLedger(ledger_id=1, bytes=40, closed_at_ms=NOW_MS - 9000, offloaded=False)
    [found] = select_ledgers([replace(listed, **change)], thresholds, now_ms=NOW_MS)
    assert describe(found, thresholds) == said


@pytest.mark.parametrize(("loaded", "selected"), [(True, [1]), (False, []), (None, [])])
def test_by_a_brokers_rules_only_a_loaded_topic_is_selected_from(loaded, selected):
    listed = [ListedLedger(ledger_id=1, bytes=40, closed_at_ms=NOW_MS - 9000, offloaded=False)]
    found = select_ledgers(
        listed, Thresholds(bytes=0), now_ms=NOW_MS, loaded=loaded, rules=BROKERS_RULES
    )
    assert selected_ids(found) == selected
