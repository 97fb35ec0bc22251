from __future__ import annotations

import socket
import struct
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.bookie_sim import BookieSim
from tiering_assets.resources.bookkeeper.connection import Connection, connect_plain
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.pool import BatchSupport, BookiePool
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.bookkeeper.wire_v2 import BatchReadEntry, ReadEntry
from tiering_assets.resources.errors import (
    BookieError,
    BookieNotAuthorizedError,
    BookieUnreachableError,
    FormatError,
    LedgerNotOnBookieError,
)
from tiering_assets.resources.settings import BookieSettings

CODEC = EntryCodec(ledger_id=7, digest_type=DigestType.CRC32C, password=b"")


def stored(entry_id):
    payload = b"payload %d" % entry_id
    return CODEC.encode(
        entry_id=entry_id, last_add_confirmed=-1, cumulative_length=99, payload=payload
    )


def batch(request_id=1, first=0, count=10):
    return BatchReadEntry(
        ledger_id=7,
        first_entry_id=first,
        request_id=request_id,
        max_count=count,
        max_bytes=1 << 20,
    )


@pytest.fixture
def bookie():
    with BookieSim() as sim:
        sim.entries.update({(7, e): stored(e) for e in range(10)})
        yield sim


@pytest.fixture
def connect(bookie):
    made = []

    def make(timeout_s=5.0, **options):
        made.append(
            Connection(
                "bk",
                connect_plain(bookie.address[0], bookie.address[1], 5),
                request_timeout_s=timeout_s,
                **options,
            )
        )
        return made[-1]

    yield make
    for connection in made:
        connection.close()


def test_plain_sockets_send_small_requests_at_once(bookie):
    with connect_plain(bookie.address[0], bookie.address[1], 5) as opened:
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_pipelined_reads_may_be_answered_in_any_order(bookie, connect):
    bookie.faults.reorder = 5
    connection = connect()
    requests = [ReadEntry(7, e) for e in range(5)]
    connection.submit(*requests)
    assert [bytes(connection.receive_read(r)) for r in requests] == [stored(e) for e in range(5)]
    assert connection.buffer_bytes == 256 * 1024  # nothing is kept of what was taken


def test_answers_out_of_order_are_kept_up_to_a_limit(bookie, connect):
    bookie.faults.reorder = 10
    connection = connect(frame_bytes_max=300_000)
    bookie.entries.update({(7, e): bytes(100_000) for e in range(10)})
    requests = [ReadEntry(7, e) for e in range(10)]
    connection.submit(*requests)
    with pytest.raises(FormatError, match="out of order"):
        connection.receive_read(requests[0])
    assert connection.closed


def test_the_same_read_twice_is_answered_twice(connect):
    connection = connect()
    connection.submit(ReadEntry(7, 3), ReadEntry(7, 3))
    assert [bytes(connection.receive_read(ReadEntry(7, 3))) for _ in range(2)] == [stored(3)] * 2


def test_the_last_entry_is_asked_for_as_minus_one(connect):
    assert bytes(connect().read(ReadEntry(7, -1))) == stored(9)


@pytest.mark.parametrize("chunk_bytes", [1, 3, 4, 7])
def test_answers_split_anywhere_are_put_together(bookie, connect, chunk_bytes):
    bookie.faults.chunk_bytes = chunk_bytes
    connection = connect()
    connection.submit(batch())
    expected = b"".join(struct.pack(">i", len(stored(e))) + stored(e) for e in range(10))
    assert bytes(connection.receive_batch(batch())) == expected


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (1, LedgerNotOnBookieError),
        (2, BookieError),
        (101, BookieError),
        (102, BookieNotAuthorizedError),
        (107, BookieError),
    ],
)
def test_a_status_raises_and_leaves_the_connection_good(bookie, connect, status, kind):
    bookie.faults.status[7, 4] = status
    connection = connect()
    for request in (ReadEntry(7, 4), batch(first=4)):
        connection.submit(request)
        with pytest.raises(kind, match="bookie bk"):
            connection.receive(request)
    assert bytes(connection.read(ReadEntry(7, 5))) == stored(5)


def test_silence_ends_at_the_deadline_and_closes(bookie, connect):
    bookie.faults.silent = True
    connection = connect(timeout_s=0.05)
    with pytest.raises(BookieUnreachableError, match=r"bookie bk.*within 0.05 s") as caught:
        connection.read(ReadEntry(7, 0))
    assert not caught.value.closed_by_peer
    assert connection.closed
    with pytest.raises(BookieUnreachableError, match="closed"):
        connection.read(ReadEntry(7, 0))


def test_a_trickle_does_not_move_the_deadline():
    now = iter([0, 1, 6])  # when the wait begins, then at each look at the socket
    ours, theirs = socket.socketpair()
    with theirs, Connection("bk", ours, request_timeout_s=5, clock=lambda: next(now)) as connection:
        theirs.sendall(struct.pack(">iI", 24, 0x02020000))
        with pytest.raises(BookieUnreachableError, match="within 5 s"):
            connection.read(ReadEntry(7, 0))
        assert connection.closed


@pytest.mark.parametrize("after", [0, 3, 4, 20, 40])
def test_a_connection_lost_in_mid_answer_names_the_bookie(bookie, connect, after):
    bookie.faults.drop_after_bytes = after
    connection = connect()
    with pytest.raises(BookieUnreachableError, match="bookie bk: connection lost") as caught:
        connection.read(ReadEntry(7, 0))
    assert caught.value.closed_by_peer
    assert connection.closed


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        bytes(64),
        b"\xff" * 64,
        bytes.fromhex("00000018020200000000000000000000000000070000000000000063"),  # entry 99
        bytes.fromhex("00000018020200000000000000000000000000080000000000000000"),  # ledger 8
        bytes.fromhex("00000018020100000000000000000000000000070000000000000000"),  # an add
    ],
)
def test_an_answer_to_nothing_asked_closes_the_connection(bookie, connect, garbage):
    bookie.faults.garbage = garbage
    connection = connect()
    with pytest.raises(FormatError):
        connection.read(ReadEntry(7, 0))
    assert connection.closed


def test_a_batch_answer_for_another_range_is_a_format_error(bookie, connect):
    bookie.faults.garbage = struct.pack(">iIiqqq", 32, 0x02070000, 0, 7, 5, 1)
    connection = connect()
    connection.submit(batch())
    with pytest.raises(FormatError, match="from entry 5"):
        connection.receive_batch(batch())


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(min_size=1, max_size=80))
def test_any_garbage_ends_in_one_of_our_errors(data):
    ours, theirs = socket.socketpair()
    with theirs, Connection("bk", ours, request_timeout_s=5, frame_bytes_max=1 << 20) as connection:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises((FormatError, BookieError)):
            connection.read(ReadEntry(7, 0))


def test_the_pool_connects_once_per_bookie_and_again_after_a_loss(bookie):
    with BookiePool(BookieSettings(), {"bk": bookie.address}) as pool:
        first = pool.connection("bk")
        assert pool.connection("bk") is first
        first.close()
        second = pool.connection("bk")
        assert second is not first
        assert bytes(second.read(ReadEntry(7, 1))) == stored(1)
        assert bookie.connections == 2
    assert second.closed


def test_the_pool_takes_a_function_for_addresses_and_a_hook_for_the_transport(bookie):
    called = []

    def connect(host, port, timeout_s):
        called.append((host, port, timeout_s))
        return connect_plain(host, port, timeout_s)

    with BookiePool(
        BookieSettings(connect_timeout_s=3), lambda _: bookie.address, connect=connect
    ) as pool:
        pool.connection("bk")
    assert called == [(*bookie.address, 3)]


def test_no_address_and_no_listener_are_unreachable(closed_port):
    with BookiePool(BookieSettings(), {"dead": ("127.0.0.1", closed_port)}) as pool:
        with pytest.raises(BookieUnreachableError, match="bookie dead: no connection"):
            pool.connection("dead")
        with pytest.raises(BookieUnreachableError, match="bookie other: not registered"):
            pool.connection("other")


def test_silence_is_remembered_for_a_while_and_unsettles_a_no_to_batches():
    now = [100.0]
    pool = BookiePool(BookieSettings(), {}, clock=lambda: now[0], suspect_s=30)
    pool.note_batch_support("bk", supported=False)
    assert pool.batch_support("bk") is BatchSupport.NO
    assert not pool.silent_lately("bk")
    pool.note_silent("bk")
    assert pool.silent_lately("bk")
    assert pool.batch_support("bk") is BatchSupport.UNKNOWN
    now[0] += 30
    assert not pool.silent_lately("bk")


def test_a_bookie_that_stops_reading_does_not_block_for_ever():
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with theirs, Connection("bk", ours, request_timeout_s=0.05) as connection:
        requests = [ReadEntry(7, e) for e in range(100_000)]
        with pytest.raises(BookieUnreachableError, match="within"):
            connection.submit(*requests)
    assert threading.active_count() < 50
