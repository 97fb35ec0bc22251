"""A bookie on 127.0.0.1 that speaks the binary protocol, with faults to order.

Decodes and encodes on its own, sharing no code with resources/bookkeeper, and batch reads follow
the real server (BatchedReadEntryProcessor): the first entry always, then while the whole frame
stays within min(asked, 5 MiB); an error on a later entry ends the batch without a word. It knows
nothing of last entries or segments and serves whatever it stores.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

OK, NO_LEDGER, NO_ENTRY, BAD_REQUEST, UNAUTHORIZED = 0, 1, 2, 100, 102
SERVER_BATCH_BYTES_MAX = 5_242_880
SERVER_FRAME_BYTES_MAX = 5_242_880


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request as it came over the wire."""

    version: int
    opcode: int
    flags: int
    ledger_id: int
    entry_id: int
    body_bytes: int
    max_count: int = 0
    max_bytes: int = 0


@dataclass
class Faults:
    """Change at any time; entries are (ledger_id, entry_id)."""

    reset_on_batch: bool = False  # a bookie before 4.17
    silent: bool = False  # reads requests and never answers
    silent_to: set[tuple[int, int]] = field(default_factory=set)
    flipped: set[tuple[int, int]] = field(default_factory=set)  # last bit of the stored entry
    status: dict[tuple[int, int], int] = field(default_factory=dict)
    status_for_all: int = OK
    delay_s: float = 0.0
    drop_after_bytes: int | None = None  # of answers, per connection
    chunk_bytes: int | None = None  # answers in pieces of so many bytes
    garbage: bytes | None = None  # sent in place of the next answers
    reorder: int = 0  # so many single read answers are kept back and sent in reverse
    batch_count_max: int | None = None  # shorter batches than asked for
    batch_ignores_count: bool = False  # serves as many as fit, whatever count was asked


class BookieSim:
    """Context manager. `entries` maps (ledger_id, entry_id) to stored bytes and may be lazy."""

    def __init__(
        self,
        bookie_id: str = "bookie-0:3181",
        *,
        stored: Callable[[int, int], bytes | None] | None = None,
    ) -> None:
        self.bookie_id = bookie_id
        self.entries: dict[tuple[int, int], bytes] = {}
        self.faults = Faults()
        self.seen: list[Seen] = []
        self.connections = 0
        self._stored = stored
        self._keys: dict[int, bytes] = {}
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._closing = False

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the listener and every connection, as a bookie that dies."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def drop_connections(self) -> None:
        """End the connections that stand now; new ones are welcome."""
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def opcodes(self) -> set[int]:
        return {request.opcode for request in self.seen}

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Netty
            self.connections += 1
            with self._lock:
                self._open.add(connection)
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        sender = _Sender(connection, self.faults)
        try:
            with connection, contextlib.suppress(OSError):
                while (frame := _read_frame(connection)) is not None:
                    answer = self._answer(frame)
                    if answer is None:  # reset, as Netty does on a decoder error
                        linger = struct.pack("ii", 1, 0)
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                        return
                    if answer and not sender.send(answer):
                        return
        finally:
            with self._lock:
                self._open.discard(connection)

    def _answer(self, body: bytes) -> bytes | None:
        """Return the whole frame to send, b"" for silence, None to reset the connection."""
        header = struct.unpack_from(">I", body)[0]
        version, opcode, flags = header >> 24, (header >> 16) & 0xFF, header & 0xFFFF
        faults = self.faults
        if version != 2 or flags or opcode not in (1, 2, 7):
            self.seen.append(
                Seen(
                    version=version,
                    opcode=opcode,
                    flags=flags,
                    ledger_id=-1,
                    entry_id=-1,
                    body_bytes=len(body),
                )
            )
            return None
        if opcode == 1:
            body_answer = self._add(body, header)
        elif opcode == 2:
            body_answer = self._read(body, header)
        else:
            body_answer = self._batch(body, header)
        request = self.seen[-1]
        if faults.reset_on_batch and opcode == 7:
            return None
        if faults.delay_s:
            time.sleep(faults.delay_s)
        if faults.silent or (request.ledger_id, request.entry_id) in faults.silent_to:
            return b""
        if faults.garbage is not None:
            return faults.garbage
        return struct.pack(">i", len(body_answer)) + body_answer

    def _note(
        self, body: bytes, ledger_id: int, entry_id: int, count: int = 0, size: int = 0
    ) -> None:
        header = struct.unpack_from(">I", body)[0]
        self.seen.append(
            Seen(
                version=header >> 24,
                opcode=(header >> 16) & 0xFF,
                flags=header & 0xFFFF,
                ledger_id=ledger_id,
                entry_id=entry_id,
                body_bytes=len(body),
                max_count=count,
                max_bytes=size,
            )
        )

    def _lookup(self, ledger_id: int, entry_id: int) -> tuple[int, bytes]:
        at = (ledger_id, entry_id)
        faults = self.faults
        status = faults.status.get(at, faults.status_for_all)
        if status != OK:
            return status, b""
        stored = self._stored(ledger_id, entry_id) if self._stored else None
        if stored is None:
            stored = self.entries.get(at)
        if stored is None:
            known = any(ledger == ledger_id for ledger, _ in self.entries)
            return (NO_ENTRY if known else NO_LEDGER), b""
        if at in faults.flipped:
            stored = stored[:-1] + bytes([stored[-1] ^ 1])
        return OK, stored

    def _read(self, body: bytes, header: int) -> bytes:
        ledger_id, entry_id = struct.unpack_from(">qq", body, 4)
        self._note(body, ledger_id, entry_id)
        wanted = entry_id
        if entry_id == -1:
            wanted = max((e for (at, e) in self.entries if at == ledger_id), default=-1)
        status, stored = self._lookup(ledger_id, wanted)
        return struct.pack(">Iiqq", header, status, ledger_id, entry_id) + stored

    def _batch(self, body: bytes, header: int) -> bytes:
        ledger_id, first, request_id, max_count, max_bytes = struct.unpack_from(">qqqiq", body, 4)
        self._note(body, ledger_id, first, max_count, max_bytes)
        faults = self.faults
        count_max = max_count if max_count > 0 and not faults.batch_ignores_count else 1 << 31
        if faults.batch_count_max is not None:
            count_max = min(count_max, faults.batch_count_max)
        budget = min(max_bytes, SERVER_BATCH_BYTES_MAX)
        status, stored = self._lookup(ledger_id, first)
        answer = struct.pack(">Iiqqq", header, status, ledger_id, first, request_id)
        if status != OK:
            return answer
        parts, size, count = [answer], 24 + 8 + 4, 0
        while True:
            parts.append(struct.pack(">i", len(stored)) + stored)
            size += 4 + len(stored)
            count += 1
            if count >= count_max:
                break
            status, stored = self._lookup(ledger_id, first + count)
            if status != OK or size + 4 + len(stored) > budget:
                break
        return b"".join(parts)

    def _add(self, body: bytes, header: int) -> bytes:
        key = body[4:24]
        ledger_id, entry_id = struct.unpack_from(">qq", body, 24)
        self._note(body, ledger_id, entry_id)
        status = self.faults.status.get((ledger_id, entry_id), self.faults.status_for_all)
        if self._keys.setdefault(ledger_id, key) != key:
            status = UNAUTHORIZED
        if status == OK:
            self.entries[ledger_id, entry_id] = body[24:]  # digests are not looked at
        return struct.pack(">Iiqq", header, status, ledger_id, entry_id)


class _Sender:
    """Sends answers of one connection with the faults of the transport."""

    def __init__(self, connection: socket.socket, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults
        self._sent = 0
        self._kept: list[bytes] = []

    def send(self, answer: bytes) -> bool:
        """Whether the connection goes on."""
        if self._faults.reorder > 1 and answer[5:6] == b"\x02":
            self._kept.append(answer)
            if len(self._kept) < self._faults.reorder:
                return True
            answer = b"".join(reversed(self._kept))
            self._kept.clear()
        limit = self._faults.drop_after_bytes
        if limit is not None and self._sent + len(answer) > limit:
            self._connection.sendall(answer[: max(0, limit - self._sent)])
            return False
        self._sent += len(answer)
        step = self._faults.chunk_bytes or len(answer)
        for at in range(0, len(answer), step):
            self._connection.sendall(answer[at : at + step])
        return True


def _read_frame(connection: socket.socket) -> bytes | None:
    prefix = read_exactly(connection, 4)
    if prefix is None:
        return None
    length = struct.unpack(">i", prefix)[0]
    if not 0 <= length <= SERVER_FRAME_BYTES_MAX:
        return None
    return read_exactly(connection, length)


def read_exactly(connection: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        chunk = connection.recv(min(count - len(data), 1 << 20))
        if not chunk:
            return None
        data += chunk
    return bytes(data)
