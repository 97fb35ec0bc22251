"""What retention lets go of, against the broker's loop written out again below from its Java."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.metastore.ledger_info import Position
from tiering_assets.retention.expiry_rules import (
    AgingLedger,
    DurableCursor,
    ExpiryLimits,
    Kept,
    TtlBacklog,
    topic_expiry,
)

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
MIB = 1024 * 1024


@dataclass
class JavaInfo:
    """LedgerInfo's getters: protobuf gives 0 for what is not set."""

    ledger_id: int
    entries: int
    size: int
    timestamp: int


def internal_trim_ledgers(infos, slowest, minutes, megabytes, now):
    """ManagedLedgerImpl.internalTrimLedgers(false, …) of 4.0.8: ids of ledgersToDelete.

    `slowest` is getSlowestReaderPosition() as (ledger, entry), None without durable cursors. The
    last ledger of `infos` is currentLedger.
    """
    ledgers = {info.ledger_id: info for info in infos}
    current = max(ledgers)
    to_delete = []
    retention_millis = minutes * 60 * 1000
    total_size = sum(info.size for info in infos)
    if slowest is None:
        slowest_reader_ledger_id = current + 1
    else:
        info = ledgers.get(slowest[0])
        if info is not None and info.ledger_id != current and info.entries == slowest[1] + 1:
            slowest_reader_ledger_id = slowest[0] + 1
        else:
            slowest_reader_ledger_id = slowest[0]
    total_size_to_delete = 0
    for ledger_id in sorted(i for i in ledgers if i < slowest_reader_ledger_id):  # headMap
        ls = ledgers[ledger_id]
        if ls.ledger_id == current:
            break
        total_size_to_delete += ls.size
        over_quota = megabytes >= 0 and total_size - total_size_to_delete >= megabytes * 1048576
        expired = retention_millis >= 0 and now - ls.timestamp > retention_millis
        if not (expired or over_quota):
            break
        to_delete.append(ls.ledger_id)
    return to_delete


SIZES = st.one_of(st.sampled_from([0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB]), st.integers(0, 2**40))
AGES = st.one_of(
    st.integers(0, 6).map(lambda minutes: minutes * MINUTE_MS),
    st.integers(0, 6).map(lambda minutes: minutes * MINUTE_MS + 1),
    st.integers(-5_000, 10**9),
)
TOPICS = st.lists(
    st.builds(
        JavaInfo,
        ledger_id=st.integers(0, 40),
        entries=st.integers(1, 5),
        size=SIZES,
        timestamp=AGES.map(lambda age: NOW_MS - age),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda info: info.ledger_id,
)
POSITIONS = st.tuples(st.integers(0, 41), st.integers(-1, 5))
LIMITS = st.sampled_from([-1, 0, 1, 2, 3, 5])


def listed(infos, *, loaded):
    """The last one is current where a broker has the topic; its closing time is nowhere then."""
    last = max(info.ledger_id for info in infos)
    return [
        AgingLedger(
            ledger_id=info.ledger_id,
            entries=info.entries,
            bytes=info.size,
            closed_at_ms=None if loaded and info.ledger_id == last else info.timestamp,
        )
        for info in infos
    ]


def cursors_at(positions):
    return [DurableCursor(f"s{n}", Position(*at)) for n, at in enumerate(positions)]


@given(TOPICS, st.lists(POSITIONS, max_size=4), LIMITS, LIMITS)
def test_overdue_is_exactly_what_the_broker_would_trim(infos, positions, minutes, megabytes):
    limits = ExpiryLimits(minutes=minutes, megabytes=megabytes)
    slowest = min(positions) if positions else None
    found = topic_expiry(listed(infos, loaded=True), cursors_at(positions), limits, now_ms=NOW_MS)
    trimmed = internal_trim_ledgers(infos, slowest, minutes, megabytes, NOW_MS)
    assert [one.ledger_id for one in found.overdue] == trimmed
    assert found.overdue_bytes == sum(i.size for i in infos if i.ledger_id in trimmed)
    assert sorted(one.ledger_id for one in found.ledgers) == sorted(i.ledger_id for i in infos)


@given(TOPICS, st.lists(POSITIONS, max_size=4), LIMITS, LIMITS)
def test_of_a_topic_that_nobody_has_loaded_the_load_adds_a_ledger(
    infos, positions, minutes, megabytes
):
    current = JavaInfo(ledger_id=1000, entries=0, size=0, timestamp=0)
    found = topic_expiry(
        listed(infos, loaded=False),
        cursors_at(positions),
        ExpiryLimits(minutes=minutes, megabytes=megabytes),
        now_ms=NOW_MS,
    )
    slowest = min(positions) if positions else None
    trimmed = internal_trim_ledgers([*infos, current], slowest, minutes, megabytes, NOW_MS)
    assert [one.ledger_id for one in found.overdue] == trimmed


@given(TOPICS, st.lists(POSITIONS, max_size=4), LIMITS, LIMITS)
def test_it_is_due_at_the_time_told_and_not_a_millisecond_before(
    infos, positions, minutes, megabytes
):
    ledgers = listed(infos, loaded=True)
    cursors, limits = cursors_at(positions), ExpiryLimits(minutes=minutes, megabytes=megabytes)
    found = topic_expiry(ledgers, cursors, limits, now_ms=NOW_MS)
    if found.next_due_ms is None:
        return
    before = topic_expiry(ledgers, cursors, limits, now_ms=found.next_due_ms - 1)
    then = topic_expiry(ledgers, cursors, limits, now_ms=found.next_due_ms)
    [waiting, *_] = found.of(Kept.RETAINED)
    assert waiting.ledger_id not in {one.ledger_id for one in before.overdue}
    assert waiting.ledger_id in {one.ledger_id for one in then.overdue}


def closed(ledger_id, *, minutes_ago, bytes_=MIB, entries=10):
    return AgingLedger(
        ledger_id=ledger_id,
        entries=entries,
        bytes=bytes_,
        closed_at_ms=NOW_MS - minutes_ago * MINUTE_MS,
    )


FOUR = [closed(i, minutes_ago=10 - i) for i in (1, 2, 3)] + [
    AgingLedger(ledger_id=4, entries=0, bytes=0, closed_at_ms=None)
]


def kept(found):
    return [one.kept for one in found.ledgers]


@pytest.mark.parametrize(
    ("minutes", "megabytes", "overdue"),
    [
        (0, 0, [1, 2, 3]),  # nothing that is consumed is kept
        (-1, -1, []),
        (8, -1, [1]),
        (-1, 1, [1, 2]),  # what is left is at least the limit, so more than the limit stays
        (-1, 0, [1, 2, 3]),
        (100, 1, [1, 2]),  # either limit alone is enough
        (7, 2, [1, 2]),
    ],
)
def test_minus_one_is_unlimited_and_zero_keeps_nothing(minutes, megabytes, overdue):
    limits = ExpiryLimits(minutes=minutes, megabytes=megabytes)
    found = topic_expiry(FOUR, [], limits, now_ms=NOW_MS)
    assert [one.ledger_id for one in found.overdue] == overdue
    assert kept(found)[-1] is Kept.OPEN


def test_the_slowest_cursor_keeps_what_it_has_not_consumed_and_is_named():
    cursors = [
        DurableCursor("fast", Position(3, 9)),
        DurableCursor("slow", Position(1, 9)),
        DurableCursor("also slow", Position(1, 9)),
    ]
    found = topic_expiry(FOUR, cursors, ExpiryLimits(minutes=0, megabytes=0), now_ms=NOW_MS)
    assert kept(found) == [Kept.OVERDUE, Kept.NOT_CONSUMED, Kept.NOT_CONSUMED, Kept.OPEN]
    assert found.kept_by == ("also slow", "slow")


def test_a_cursor_of_unknown_position_keeps_everything():
    cursors = [DurableCursor("fast", Position(4, 3)), DurableCursor("unknown", None)]
    found = topic_expiry(FOUR, cursors, ExpiryLimits(minutes=0, megabytes=0), now_ms=NOW_MS)
    assert found.overdue == ()
    assert found.kept_by == ("unknown",)


def test_a_ledger_past_its_time_stays_behind_one_that_is_not():
    ledgers = [closed(1, minutes_ago=1), closed(2, minutes_ago=9)]
    found = topic_expiry(ledgers, [], ExpiryLimits(minutes=5, megabytes=-1), now_ms=NOW_MS)
    assert kept(found) == [Kept.RETAINED, Kept.BEHIND]
    assert found.next_due_ms == NOW_MS + 4 * MINUTE_MS + 1


def test_a_ledger_without_a_closing_time_ends_the_walk_wherever_it_is():
    broken = [replace(FOUR[0], closed_at_ms=None), *FOUR[1:]]
    found = topic_expiry(broken, [], ExpiryLimits(minutes=0, megabytes=-1), now_ms=NOW_MS)
    assert kept(found) == [Kept.OPEN, Kept.BEHIND, Kept.BEHIND, Kept.OPEN]


@pytest.mark.parametrize(
    ("limits", "last"),
    [
        (ExpiryLimits(minutes=0, megabytes=0), Kept.OVERDUE),
        (ExpiryLimits(minutes=0, megabytes=-1), Kept.OVERDUE),
        (ExpiryLimits(minutes=1, megabytes=-1), Kept.RETAINED),
        (ExpiryLimits(minutes=-1, megabytes=-1), Kept.RETAINED),
    ],
)
def test_what_the_load_will_close_gets_its_time_from_then(limits, last):
    sealed = AgingLedger(ledger_id=4, entries=3, bytes=30, closed_at_ms=NOW_MS, closes_at_load=True)
    found = topic_expiry([*FOUR[:3], sealed], [], limits, now_ms=NOW_MS + 10**9)
    assert found.ledgers[-1].kept is last
    assert found.ledgers[-1].due_at_ms is None


def test_ttl_counts_only_ledgers_whose_newest_message_is_past_it():
    cursors = [
        DurableCursor("done", Position(2, 9)),
        DurableCursor("half", Position(1, 3)),
        DurableCursor("nowhere", None),
        DurableCursor("start", Position(1, -1)),
    ]
    limits = ExpiryLimits(minutes=-1, megabytes=-1, ttl_s=8 * 60 - 1)
    found = topic_expiry(FOUR, cursors, limits, now_ms=NOW_MS)
    assert found.ttl == (
        TtlBacklog(subscription="half", ledgers=2, entries=16, bytes=2 * MIB),
        TtlBacklog(subscription="start", ledgers=2, entries=20, bytes=2 * MIB),
    )
    just_not = replace(limits, ttl_s=8 * 60)
    found = topic_expiry(FOUR, cursors, just_not, now_ms=NOW_MS)
    assert [one.ledgers for one in found.ttl] == [1, 1]
    assert topic_expiry(FOUR, cursors, replace(limits, ttl_s=0), now_ms=NOW_MS).ttl == ()


def test_what_goes_only_after_an_older_one_has_no_time_of_its_own():
    ledgers = [closed(1, minutes_ago=1), closed(2, minutes_ago=9)]
    found = topic_expiry(ledgers, [], ExpiryLimits(minutes=5, megabytes=-1), now_ms=NOW_MS)
    assert [one.due_at_ms is None for one in found.ledgers] == [False, True]


@pytest.mark.parametrize(("entry", "kept_from"), [(9, Kept.OVERDUE), (8, Kept.NOT_CONSUMED)])
def test_a_ledger_is_consumed_with_its_own_last_entry(entry, kept_from):
    """The one before it has fewer."""
    ledgers = [closed(1, minutes_ago=9, entries=9), closed(2, minutes_ago=8), FOUR[3]]
    cursors = [DurableCursor("one", Position(2, entry))]
    found = topic_expiry(ledgers, cursors, ExpiryLimits(minutes=0, megabytes=0), now_ms=NOW_MS)
    assert kept(found) == [Kept.OVERDUE, kept_from, Kept.OPEN]


@pytest.mark.parametrize(
    "last",
    [
        AgingLedger(ledger_id=4, entries=10, bytes=MIB, closed_at_ms=None),
        replace(
            closed(4, minutes_ago=7), closes_at_load=True
        ),  # its messages may be of this minute
    ],
)
def test_ttl_says_nothing_of_a_ledger_whose_newest_message_may_be_young(last):
    cursors = [DurableCursor("slow", Position(1, -1))]
    limits = ExpiryLimits(minutes=-1, megabytes=-1, ttl_s=60)
    [late] = topic_expiry([*FOUR[:3], last], cursors, limits, now_ms=NOW_MS).ttl
    assert (late.ledgers, late.entries) == (3, 30)


def test_a_cursor_in_a_ledger_that_is_gone_keeps_what_came_after_it():
    cursors = [DurableCursor("slow", Position(2, 9))]
    ledgers = [FOUR[0], *FOUR[2:]]
    found = topic_expiry(ledgers, cursors, ExpiryLimits(minutes=0, megabytes=0), now_ms=NOW_MS)
    assert kept(found) == [Kept.OVERDUE, Kept.NOT_CONSUMED, Kept.OPEN]


def test_what_only_a_size_lets_go_of_has_no_time():
    found = topic_expiry(FOUR, [], ExpiryLimits(minutes=-1, megabytes=100), now_ms=NOW_MS)
    assert kept(found) == [Kept.RETAINED] * 3 + [Kept.OPEN]
    assert {one.due_at_ms for one in found.ledgers} == {None}
