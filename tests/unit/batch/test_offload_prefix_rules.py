"""The manual trigger against the broker's and pulsar-admin's own loops, written out again below."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.batch.offload_prefix_rules import (
    LONG_MAX,
    KeepBytes,
    choose_prefix,
    first_unoffloaded,
    keep_newest,
    parse_position,
    parse_until,
    position_text,
    reached,
    require_position,
)
from tiering_assets.resources.errors import FormatError, RefusedError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, Position
from tiering_assets.resources.metastore.offload_context import OffloadContext

TOPIC = "persistent://public/default/orders"
UID = UUID(int=1)


def ledger(ledger_id, size, *, complete=False, begun=False, entries=10):
    context = OffloadContext(uid=UID, complete=complete) if complete or begun else None
    return LedgerInfo(
        ledger_id=ledger_id, entries=entries, size=size, closed_at_ms=1, offload=context
    )


def opened(ledger_id):
    return LedgerInfo(ledger_id=ledger_id, entries=None, size=None, closed_at_ms=None)


def topic(*sizes, first=0):
    """Closed ledgers of these sizes, the last of them open."""
    closed = [ledger(first + i, size) for i, size in enumerate(sizes[:-1])]
    return [*closed, opened(first + len(sizes) - 1)], sizes[-1]


# ----- literal models


def async_offload_prefix(ledgers, position):
    """ManagedLedgerImpl.asyncOffloadPrefix after its checks: (ids, first un-offloaded ledger)."""
    to_offload = []
    current = max(ledgers)  # ledgers.lastKey()
    first_ledger_retained = current
    for ledger_id in sorted(ledgers):  # ledgers.headMap(current).values()
        if ledger_id >= current:
            break
        info = ledgers[ledger_id]
        if position[0] > ledger_id:
            complete = info.offload is not None and info.offload.complete
            if not complete and (info.size or 0) > 0:
                to_offload.append(ledger_id)
        else:
            first_ledger_retained = ledger_id
            break
    return to_offload, (first_ledger_retained, 0)


def find_first_ledger_within_threshold(ledgers, threshold):
    """CmdTopics, with (id, size) of each ledger in order; None is "Nothing to offload"."""
    suffix_size = 0
    backwards = ledgers[::-1]
    previous_ledger = backwards[0][0]
    for ledger_id, size in backwards:
        suffix_size += size
        if suffix_size > threshold:
            return (previous_ledger, 0)
        previous_ledger = ledger_id
    return None


SIZES = st.one_of(st.integers(0, 5), st.integers(0, 2**40))


@st.composite
def topics(draw):
    """Ids ascend with gaps; the last ledger is the open one, as in every loaded topic."""
    ids = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=20)))
    closed = [
        ledger(i, draw(SIZES), complete=draw(st.booleans()), begun=draw(st.booleans()))
        for i in ids[:-1]
    ]
    return [*closed, opened(ids[-1])]


@given(topics(), st.data())
def test_the_broker_would_offload_the_same_and_answer_the_same_position(listed, data):
    at = data.draw(st.sampled_from([one.ledger_id for one in listed]))
    position = Position(at, data.draw(st.integers(0, 9)))
    require_position(TOPIC, listed, position)
    found = choose_prefix(listed, position)
    ids, first = async_offload_prefix({one.ledger_id: one for one in listed}, (at, 0))
    assert found.ledger_ids == ids
    assert (found.goal.ledger_id, found.goal.entry_id) == first
    older = {one.ledger_id for one in listed if one.ledger_id < at}
    assert sorted([*found.ledger_ids, *found.offloaded, *found.empty]) == sorted(older)


@given(topics(), SIZES, st.one_of(SIZES, st.just(LONG_MAX)))
def test_pulsar_admin_would_ask_for_the_same_position(listed, open_bytes, keep):
    sizes = [(one.ledger_id, open_bytes if one.is_open else one.size) for one in listed]
    expected = find_first_ledger_within_threshold(sizes, keep)
    found = keep_newest(listed, KeepBytes(keep), open_bytes=open_bytes)
    if expected is None:
        assert choose_prefix(listed, found).ledger_ids == []
    else:
        assert (found.ledger_id, found.entry_id) == expected
    kept = sum(size for ledger_id, size in sizes if ledger_id >= found.ledger_id)
    if found.ledger_id != listed[-1].ledger_id:
        assert kept <= keep


@given(topics(), st.data())
def test_the_goal_is_reached_when_and_only_when_nothing_before_it_is_left(listed, data):
    at = data.draw(st.sampled_from([one.ledger_id for one in listed]))
    prefix = choose_prefix(listed, Position(at, 0))
    assert reached(listed, prefix.goal) is (prefix.ledger_ids == [])
    done = [
        ledger(one.ledger_id, one.size, complete=True)
        if one.ledger_id in prefix.ledger_ids
        else one
        for one in listed
    ]
    assert reached(done, prefix.goal)
    assert choose_prefix(done, Position(at, 0)).ledger_ids == []


# ----- values that Pulsar's own tests expect: TestCmdTopics.testFindFirstLedgerWithinThreshold


@pytest.mark.parametrize(("keep", "expected"), [(0, "2:0"), (1000, "2:0"), (5000, "1:0")])
def test_what_to_keep_as_in_pulsars_own_test(keep, expected):
    listed, open_bytes = topic(1000, 2000, 3000)
    found = keep_newest(listed, KeepBytes(keep), open_bytes=open_bytes)
    assert position_text(found) == expected


def test_nothing_to_offload_when_all_is_to_be_kept():
    listed, open_bytes = topic(1000, 2000, 3000)
    found = keep_newest(listed, KeepBytes(LONG_MAX), open_bytes=open_bytes)
    assert choose_prefix(listed, found).ledger_ids == []


def test_zero_keeps_the_open_ledger_alone_however_little_is_in_it():
    listed, _ = topic(1000, 2000, 0)
    found = choose_prefix(listed, keep_newest(listed, KeepBytes(0), open_bytes=0))
    assert found.ledger_ids == [0, 1]
    assert found.goal == Position(2, 0)


# ----- what is shown


def test_the_first_position_that_is_not_offloaded():
    both = [ledger(3, 5, complete=True), ledger(4, 0), ledger(7, 5, begun=True), opened(9)]
    assert first_unoffloaded(both) == Position(7, 0)
    assert first_unoffloaded([ledger(3, 5, complete=True), opened(9)]) == Position(9, 0)
    assert first_unoffloaded([ledger(3, 5, complete=True)]) is None
    assert first_unoffloaded([]) is None
    assert position_text(None) is None


def test_a_topic_without_ledgers_has_no_prefix():
    with pytest.raises(ValueError, match="no ledgers"):
        choose_prefix([], Position(1, 0))
    with pytest.raises(ValueError, match="no ledgers"):
        keep_newest([], KeepBytes(0), open_bytes=0)


# ----- what cannot be


@pytest.mark.parametrize(
    ("position", "said"),
    [
        (Position(6, 0), "position 6:0: the topic does not list that ledger"),
        (Position(4, 0), "before the topic's first ledger, 5; older ones were trimmed"),
        (Position(9, 0), "beyond the topic's last ledger, 8"),
        (Position(5, 10), "ledger 5 ends with entry 9; to offload all of it"),
    ],
)
def test_a_position_that_the_topic_does_not_have_is_refused_with_the_values(position, said):
    listed = [ledger(5, 1), ledger(7, 1), opened(8)]
    with pytest.raises(RefusedError) as refused:
        require_position(TOPIC, listed, position)
    assert said in str(refused.value)
    assert f"`tierkeeper ledger list --topic {TOPIC}` prints its ledgers" in str(refused.value)


def test_a_topic_that_never_had_a_message_has_no_position():
    with pytest.raises(RefusedError, match="lists no ledger yet"):
        require_position(TOPIC, [], Position(0, 0))


def test_the_last_entry_and_any_place_in_the_open_ledger_are_positions():
    listed = [ledger(5, 1), ledger(6, 0, entries=0), opened(8)]
    for position in (Position(5, 9), Position(6, 0), Position(8, 0), Position(8, 10**9)):
        require_position(TOPIC, listed, position)


@pytest.mark.parametrize(
    "text",
    ["5", "5:", ":0", "-1:-1", "5:-1", "5:0:0", "a:b", "5.0:1", "٣:٣", f"{2**63}:0", "5:0\n6:0"],
)
def test_no_other_text_is_a_position(text):
    with pytest.raises(FormatError, match="is no position; expected LEDGER:ENTRY"):
        parse_position(text)


@given(st.integers(0, LONG_MAX), st.integers(0, LONG_MAX))
def test_a_position_is_read_as_it_is_shown(ledger_id, entry_id):
    position = Position(ledger_id, entry_id)
    assert parse_position(position_text(position) or "") == position


def test_one_of_both_ways_to_ask():
    assert parse_until("5:1", None) == Position(5, 1)
    assert parse_until(None, 0) == KeepBytes(0)
    assert parse_until(None, None) is None
    assert parse_until("", None) is None
    with pytest.raises(FormatError, match="before is '5:1' and keep-bytes is 0"):
        parse_until("5:1", 0)
    for absurd in (-1, 2**63):
        with pytest.raises(FormatError, match=f"keep-bytes is {absurd}, expected 0 to"):
            parse_until(None, absurd)


def test_an_open_ledger_in_the_middle_is_neither_offloaded_nor_called_empty():
    listed = [ledger(1, 5), opened(2), ledger(3, 7), opened(4)]
    found = choose_prefix(listed, Position(4, 0))
    assert found.ledger_ids == [1, 3]
    assert found.empty == ()


def test_where_everything_is_offloaded_every_goal_is_reached():
    assert reached([ledger(1, 5, complete=True)], Position(9, 0))
    assert reached([], Position(9, 0))
    assert not reached([ledger(1, 5)], Position(2, 0))


def test_what_is_before_a_position_is_offloaded_empty_or_to_offload():
    listed = [ledger(1, 5), ledger(2, 0), ledger(3, 7, complete=True), opened(4)]
    found = choose_prefix(listed, Position(4, 0))
    assert found.ledger_ids == [1]
    assert (found.offloaded, found.empty) == ((3,), (2,))
