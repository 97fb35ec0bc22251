"""Which entries a broker is asked for, each once, of however many ledgers."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.pulsar_entries import (
    CHUNK_ID,
    CHUNKS,
    COMPRESSION,
    ENCRYPTION_KEYS,
    UNCOMPRESSED_SIZE,
    message,
)
from tiering_assets.change import confirm
from tiering_assets.change.confirm import rehearse
from tiering_assets.ground.stack import _in_threads
from tiering_assets.offload_format.message_facts import head_of
from tiering_assets.offload_format.readings import Readings, readings_of, tells_of_reading
from tiering_assets.resources.errors import BrokerError, EntryUnavailableError, RefusedError

LZ4 = (COMPRESSION, 1)
TOPIC = "public/default/persistent/t"


def plain(at=5):
    return message(at)


def piece(at=5, *more):
    return message(at, (CHUNKS, 2), (CHUNK_ID, 0), LZ4, (UNCOMPRESSED_SIZE, 9), *more)


def closed(at=5):
    return message(at, (ENCRYPTION_KEYS, b"\x0a\x01k\x12\x01v"), LZ4, (UNCOMPRESSED_SIZE, 9))


class Broker:
    """Shows no entry that `hidden` says, and finds positions by time as brokers do."""

    def __init__(self, ledgers, hidden=()):
        self.ledgers, self.hidden = ledgers, hidden
        self.shown: list[tuple[int, int]] = []
        self.times: list[int] = []

    def read_entry(self, _topic, ledger_id, entry_id):
        self.shown.append((ledger_id, entry_id))
        if (ledger_id, entry_id) in self.hidden:
            raise BrokerError("no answer")

    def find_position(self, _topic, time_ms):
        """As OpFindNewest goes by halves, whatever the order of times."""
        self.times.append(time_ms)
        every = [(i, n) for i, entries in sorted(self.ledgers.items()) for n in range(len(entries))]

        def is_earlier(nth):
            ledger_id, entry_id = every[nth]
            head = head_of(self.ledgers[ledger_id][entry_id])
            assert head is not None
            return head.publish_time_ms < time_ms

        low, high = 0, len(every) - 1
        if not is_earlier(low):
            return every[0]
        if is_earlier(high):
            low = high
        while low < high:
            middle = low + max((high - low) // 2, 1)
            low, high = (middle, high) if is_earlier(middle) else (low, middle - 1)
        return every[low + 1] if low + 1 < len(every) else (9999, 0)


def stack_of(ledgers, broker, *, bookies=True, looked=None):
    @contextmanager
    def points(_settings, source):
        def payload(entry_id):
            if looked is not None:
                looked.append(entry_id)
            if not bookies:
                raise EntryUnavailableError(source, entry_id, {})
            return ledgers[source][entry_id]

        yield SimpleNamespace(payload=payload)

    clock = iter(range(1000))
    listed = SimpleNamespace(
        ledgers=[SimpleNamespace(ledger_id=i) for i in (*sorted(ledgers), 9999)]
    )
    found: Any = SimpleNamespace(
        monotonic=lambda: float(next(clock)),
        sleep=lambda _seconds: None,
        settings=SimpleNamespace(publish=SimpleNamespace(confirm_timeout_s=3.0), bookies=None),
        broker=broker,
        ledgers=SimpleNamespace(read=lambda ledger_id: ledger_id if ledger_id in ledgers else None),
        topics=SimpleNamespace(read=lambda _name: (listed, None)),
        open_points=points,
        in_parallel=_in_threads,
    )
    return found


@pytest.fixture(autouse=True)
def node_is_its_own_source(monkeypatch):
    monkeypatch.setattr(confirm, "source_of", lambda _stack, node: node)


def asked(ledgers, *, bookies=True, hidden=()):
    broker = Broker(ledgers, hidden)
    stack = stack_of(ledgers, broker, bookies=bookies)
    rehearse(stack, TOPIC, {i: len(entries) - 1 for i, entries in ledgers.items()})
    return broker


@pytest.mark.parametrize("bookies", [True, False])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 9])
def test_each_ledgers_first_and_last_entry_is_read_once(count, bookies):
    broker = asked({n: [plain()] * (n % 2 + 1) for n in range(count)}, bookies=bookies)
    expected = {(n, 0) for n in range(count)} | {(n, n % 2) for n in range(count)}
    assert len(broker.shown) == len(expected)
    assert set(broker.shown) == expected
    assert broker.times == []


def test_what_is_no_message_is_asked_for_all_the_same():
    assert asked({7: [b"", b"of somebody else"]}).shown == [(7, 0), (7, 1)]


def test_a_ledger_that_bookkeeper_has_lost_is_asked_for_all_the_same():
    broker = Broker({7: [closed(), closed()]})
    rehearse(stack_of({}, broker), TOPIC, {7: 1})
    assert broker.shown == [(7, 0), (7, 1)]


def test_no_more_entries_are_looked_at_than_are_needed():
    looked: list[int] = []
    ledgers = {7: [plain()] * 100}
    rehearse(stack_of(ledgers, Broker(ledgers), looked=looked), TOPIC, {7: 99})
    assert sorted(looked) == [0, 99]
    ledgers[7][99] = closed()
    rehearse(stack_of(ledgers, Broker(ledgers), looked=looked), TOPIC, {7: 99})
    assert len(looked) == 2 + 16


def test_a_topic_that_is_deleted_meanwhile_is_refused():
    ledgers = {7: [closed(10)]}
    stack = stack_of(ledgers, Broker(ledgers))
    stack.topics = SimpleNamespace(read=lambda _name: None)
    with pytest.raises(RefusedError, match="cannot read by publish time ledger 7"):
        rehearse(stack, TOPIC, {7: 0})


@pytest.mark.parametrize("hidden", [piece(), closed()], ids=["piece", "closed"])
def test_entries_that_brokers_cannot_show_are_passed_by(hidden):
    assert asked({7: [hidden, plain(), plain(), hidden]}).shown == [(7, 1), (7, 2)]
    assert asked({7: [plain(), plain(), hidden]}).shown == [(7, 0), (7, 1)]
    assert asked({7: [hidden, plain(), hidden]}).shown == [(7, 1)]


@pytest.mark.parametrize(
    "shown",
    [
        message(5, (CHUNKS, 2), (CHUNK_ID, 0)),
        message(5, (ENCRYPTION_KEYS, b"\x0a\x01k\x12\x01v")),
        message(5, LZ4, (UNCOMPRESSED_SIZE, 9)),
        message(5, LZ4, (CHUNKS, 1), (CHUNK_ID, 0)),
    ],
    ids=["piece", "closed", "compressed", "whole"],
)
def test_what_is_compressed_or_closed_or_a_piece_alone_is_shown(shown):
    assert asked({7: [shown, shown]}).shown == [(7, 0), (7, 1)]


@pytest.mark.parametrize("count", [1, 2, 40])
def test_where_none_can_be_shown_the_broker_reads_by_time(count):
    ledgers = {7: [plain(1)], 8: [closed(10 + n) for n in range(count)], 9: [plain(90)]}
    broker = asked(ledgers)
    assert broker.shown == [(7, 0), (9, 0)]
    assert broker.times == [11]


def test_a_ledger_that_is_not_found_by_one_time_is_looked_for_by_others():
    ledgers = {7: [plain(20)], 8: [closed(10), closed(30)], 9: [plain(40)]}
    assert asked(ledgers).times == [11, 31]


def test_a_ledger_that_no_time_finds_is_refused_by_name():
    with pytest.raises(RefusedError, match=r"cannot read by publish time ledger 8: .* 7:0") as told:
        asked({7: [plain(20)], 8: [closed(10)], 9: [plain(5)]})
    assert TOPIC.rpartition("/")[2] in str(told.value)


def test_a_broker_that_cannot_read_is_asked_until_the_time_is_over():
    broker = Broker({7: [plain()]}, hidden={(7, 0)})
    stack = stack_of({7: [plain()]}, broker)
    with pytest.raises(RefusedError, match="cannot read entry 0 of ledger 7: no answer"):
        rehearse(stack, TOPIC, {7: 0})
    assert len(broker.shown) > 1


def test_few_of_many_times_are_asked_for():
    seen = {n: head_of(closed(n)) for n in range(30)}
    found = readings_of({0, 29}, seen)
    assert found.entries == ()
    assert (found.times[0], found.times[-1], len(found.times)) == (0, 29, 8)


def test_what_is_known_to_be_shown_is_preferred_to_what_nobody_could_look_at():
    shown, hidden = head_of(plain()), head_of(closed())
    assert readings_of({0}, {0: None}) == Readings((0,))
    assert readings_of({0, 3}, {0: shown, 3: None}) == Readings((0, 3))
    assert readings_of({0, 3}, {0: hidden, 1: None, 2: shown, 3: None}) == Readings((2,))
    assert readings_of({0, 3}, {0: hidden, 1: None, 2: None, 3: hidden}) == Readings((1, 2))


@pytest.mark.parametrize(
    ("found", "tells"),
    [
        ((8, 1), True),
        ((8, 0), False),
        ((9, 0), True),
        ((9, 1), False),
        ((10, 0), False),
        ((7, 3), False),
    ],
)
def test_the_entry_before_what_was_found_has_been_read(found, tells):
    assert tells_of_reading(found, 8, [10, 7, 8, 9]) is tells
