"""One blocking socket to one bookie, version 2 of the protocol for its whole life.

Owns: what is asked and not yet answered. A reply is matched by (opcode, ledger, entry) or by its
request id, never by its place in the stream. An answer that nothing asked for, a broken frame, a
deadline or a lost connection closes the socket: after any of these the stream cannot be trusted.
The caller takes every answer it asked for before it turns to other work, because a bookie's read
thread waits for a socket that is not drained, and with it every client on that thread.
Refuses to be shared between threads. TLS and authentication have their place in `Connect`: it
returns a socket on which version 2 requests may be sent at once.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from tiering_assets.resources.bookkeeper.frames import FRAME_BYTES_MAX, LENGTH, FrameBuffer
from tiering_assets.resources.bookkeeper.meter import ReadMeter, TakenRead
from tiering_assets.resources.bookkeeper.wire_v2 import (
    ADD_ENTRY,
    BATCH_READ_ENTRY,
    EOK,
    READ_ENTRY,
    AddEntry,
    AddReply,
    BatchReadEntry,
    BatchReply,
    ReadEntry,
    ReadReply,
    Reply,
    Request,
    decode_reply,
    describe,
    encode_request,
    error_for_status,
)
from tiering_assets.resources.errors import BookieUnreachableError, FormatError

Connect = Callable[[str, int, float], socket.socket]
Clock = Callable[[], float]
_Key = tuple[int, int, int]


def connect_plain(host: str, port: int, timeout_s: float) -> socket.socket:
    """Open a TCP connection in clear, without authentication. Raises OSError."""
    opened = socket.create_connection((host, port), timeout=timeout_s)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


class Connection:
    """Pipelines requests to one bookie; a closed one stays closed."""

    def __init__(
        self,
        bookie_id: str,
        opened: socket.socket,
        *,
        request_timeout_s: float,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        clock: Clock = time.monotonic,
        meter: ReadMeter | None = None,
    ) -> None:
        self.bookie_id = bookie_id
        self.answered = 0  # replies taken off this connection
        self._socket = opened
        self._timeout_s = request_timeout_s
        self._clock = clock
        self._frames = FrameBuffer(frame_bytes_max=frame_bytes_max)
        self._frame_bytes_max = self._early_bytes_max = frame_bytes_max
        self._asked: Counter[_Key] = Counter()
        self._early: dict[_Key, list[Reply]] = {}  # came before the reply that was waited for
        self._early_bytes = 0
        self._closed = False
        self._meter = meter
        self._taken: dict[_Key, list[TakenRead]] = {}  # for answers that are to come

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def buffer_bytes(self) -> int:
        """Memory held to receive: two buffers at most, each no larger than one frame may be."""
        return self._frames.capacity_bytes + self._early_bytes

    def submit(self, *requests: Request) -> None:
        """Send requests; `receive` must then be called for each of them.

        Raises:
            BookieUnreachableError: the connection is closed, lost or stuck.
        """
        if self._closed:
            raise BookieUnreachableError(f"bookie {self.bookie_id}: the connection is closed")
        if self._meter is not None:
            self._take(self._meter, requests)
        for request in requests:
            self._asked[_key_of(request)] += 1
        data = b"".join([encode_request(request) for request in requests])
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(error, describe(requests[0])) from error
        except BaseException:
            self.close()
            raise

    def receive(self, request: Request) -> Reply:
        """Return the good reply to a submitted request; views in it follow `FrameBuffer`'s rule.

        Raises:
            BookieError: the class that the reply's status stands for; the connection stays good.
            BookieUnreachableError: closed, lost, or no answer within the request timeout.
            FormatError: the bookie sent something that is no answer; the connection is closed.
        """
        key = _key_of(request)
        reply = self._take_early(key)
        if reply is None:
            if self._closed:
                raise BookieUnreachableError(f"bookie {self.bookie_id}: the connection is closed")
            try:
                reply = self._receive(key, request)
            except BaseException:  # whatever it was, the place in the stream is lost
                self.close()
                raise
        self.answered += 1
        if reply.status != EOK:
            raise error_for_status(reply.status, bookie_id=self.bookie_id, request=request)
        return reply

    def read(self, request: ReadEntry) -> memoryview:
        """Ask for one stored entry and wait for it; errors as in `receive`."""
        self.submit(request)
        return self.receive_read(request)

    def receive_read(self, request: ReadEntry) -> memoryview:
        """Return the stored entry of a submitted read; errors as in `receive`."""
        reply = self.receive(request)
        if not isinstance(reply, ReadReply):
            raise self._wrong_kind(request)
        return reply.stored

    def receive_batch(self, request: BatchReadEntry) -> memoryview:
        """Return the records of a submitted batch read; errors as in `receive`."""
        reply = self.receive(request)
        if not isinstance(reply, BatchReply):
            raise self._wrong_kind(request)
        return reply.records

    def hold(self) -> None:
        """Keep the views of the last reply valid until the next `hold`."""
        self._frames.hold()

    def close(self) -> None:
        """Close the socket; views handed out stay valid."""
        self._closed = True
        self._asked.clear()
        self._early.clear()
        self._early_bytes = 0
        self._socket.close()
        for waiting in self._taken.values():  # how much of these answers came is not known
            for taken in waiting:
                taken.settle(taken.bytes_max)
        self._taken.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _receive(self, wanted: _Key, request: Request) -> Reply:
        deadline = self._clock() + self._timeout_s
        while True:
            frame = self._frames.next_frame()
            if frame is None:
                self._fill(deadline, request)
                continue
            reply = decode_reply(frame)
            key = _key_of_reply(reply)
            if self._asked[key] <= 0:
                raise FormatError(f"bookie {self.bookie_id} sent a reply that nothing asked for")
            self._asked[key] -= 1
            if not self._asked[key]:
                del self._asked[key]
            if self._taken:
                self._settle(key, LENGTH.size + len(frame))
            if key != wanted:
                self._keep_early(key, reply)
                continue
            if isinstance(reply, BatchReply) and isinstance(request, BatchReadEntry):
                found = (reply.ledger_id, reply.first_entry_id)
                if found != (request.ledger_id, request.first_entry_id):
                    raise FormatError(
                        f"bookie {self.bookie_id} answered a {describe(request)} "
                        f"with ledger {found[0]} from entry {found[1]}"
                    )
            return reply

    def _fill(self, deadline: float, request: Request) -> None:
        remaining_s = deadline - self._clock()
        try:
            if remaining_s <= 0:
                raise TimeoutError
            self._socket.settimeout(remaining_s)
            count = self._socket.recv_into(self._frames.writable())
        except OSError as error:
            raise self._lost(error, describe(request)) from error
        if count == 0:
            raise self._lost(ConnectionResetError("closed by the bookie"), describe(request))
        self._frames.wrote(count)

    def _take(self, meter: ReadMeter, requests: tuple[Request, ...]) -> None:
        reads = [request for request in requests if not isinstance(request, AddEntry)]
        if not reads:
            return
        found = meter.take_reads(len(reads))
        # An answer above what was taken for it would break the budget; it is refused as garbage is.
        bounds = [taken.bytes_max - LENGTH.size for taken in found]
        self._frames.frame_bytes_max = min([self._frame_bytes_max, *bounds[:1]])
        for request, taken in zip(reads, found, strict=False):
            self._taken.setdefault(_key_of(request), []).append(taken)

    def _settle(self, key: _Key, spent: int) -> None:
        waiting = self._taken.get(key)
        if waiting:
            waiting.pop().settle(spent)
            if not waiting:
                del self._taken[key]

    def _take_early(self, key: _Key) -> Reply | None:
        replies = self._early.get(key)
        if not replies:
            return None
        reply = replies.pop(0)
        if not replies:
            del self._early[key]
        self._early_bytes -= _size_of(reply)
        return reply

    def _keep_early(self, key: _Key, reply: Reply) -> None:
        self._early_bytes += _size_of(reply)
        if self._early_bytes > self._early_bytes_max:
            raise FormatError(
                f"bookie {self.bookie_id} sent more than {self._early_bytes_max} bytes "
                "of replies out of order"
            )
        match reply:  # the buffer is reused before this reply is taken
            case ReadReply():
                reply = replace(reply, stored=memoryview(bytes(reply.stored)))
            case BatchReply():
                reply = replace(reply, records=memoryview(bytes(reply.records)))
            case AddReply():
                pass
        self._early.setdefault(key, []).append(reply)

    def _lost(self, error: OSError, asked: str) -> BookieUnreachableError:
        self.close()
        if isinstance(error, TimeoutError):
            return BookieUnreachableError(
                f"bookie {self.bookie_id}: no answer to {asked} within {self._timeout_s:g} s"
            )
        return BookieUnreachableError(
            f"bookie {self.bookie_id}: connection lost during {asked}: {error}",
            closed_by_peer=isinstance(error, ConnectionResetError | BrokenPipeError),
        )

    def _wrong_kind(self, request: Request) -> FormatError:
        self.close()
        return FormatError(f"bookie {self.bookie_id}: another kind of reply to {describe(request)}")


def _key_of(request: Request) -> _Key:
    match request:
        case ReadEntry():
            return (READ_ENTRY, request.ledger_id, request.entry_id)
        case BatchReadEntry():
            return (BATCH_READ_ENTRY, request.request_id, 0)
        case AddEntry():
            return (ADD_ENTRY, request.ledger_id, request.entry_id)


def _key_of_reply(reply: Reply) -> _Key:
    match reply:
        case ReadReply():
            return (READ_ENTRY, reply.ledger_id, reply.entry_id)
        case BatchReply():
            return (BATCH_READ_ENTRY, reply.request_id, 0)
        case AddReply():
            return (ADD_ENTRY, reply.ledger_id, reply.entry_id)


def _size_of(reply: Reply) -> int:
    match reply:
        case ReadReply():
            return len(reply.stored)
        case BatchReply():
            return len(reply.records)
        case AddReply():
            return 0
