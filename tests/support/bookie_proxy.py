"""A TCP proxy in front of a bookie that flips bits of its answers, holds them back, or dies in
them.

For the case "a replica has rotted on disk": requests pass untouched, and in version 2 read and
batch read answers the last payload byte of each chosen entry comes out with its lowest bit flipped,
while the stored digest stays as it was.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Self

from tests.support.bookie_sim import read_exactly


class BookieProxy:
    """Context manager; give clients `address` in place of the bookie's own.

    `flipped` holds (ledger_id, entry_id) and may change at any time; `flips` counts what was done.
    An entry with an empty payload has its digest hit instead, which is just as wrong. `delay_s` is
    asked for each answer, `drops` whether the connection dies in the middle of it.
    """

    def __init__(
        self, upstream: tuple[str, int], *, flipped: set[tuple[int, int]] | None = None
    ) -> None:
        self.flipped = flipped if flipped is not None else set()
        self.flips = 0
        self.answers = 0
        self.dropped = 0
        self.delay_s: Callable[[], float] = lambda: 0.0
        self.drops: Callable[[], bool] = lambda: False
        self._upstream = upstream
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for each in self._sockets:
            each.close()

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                bookie = socket.create_connection(self._upstream, timeout=10)
            except OSError:
                client.close()
                continue
            bookie.settimeout(None)
            for each in (client, bookie):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets |= {client, bookie}
            self._spawn(self._pass_requests, client, bookie)
            self._spawn(self._pass_answers, bookie, client)

    def _pass_requests(self, client: socket.socket, bookie: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := client.recv(1 << 16):
                bookie.sendall(chunk)
        with contextlib.suppress(OSError):
            bookie.shutdown(socket.SHUT_RDWR)

    def _pass_answers(self, bookie: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (prefix := read_exactly(bookie, 4)) is not None:
                body = read_exactly(bookie, struct.unpack(">i", prefix)[0])
                if body is None:
                    break
                self.answers += 1
                time.sleep(self.delay_s())
                answer = prefix + self._tampered(bytearray(body))
                if self.drops():
                    self.dropped += 1
                    client.sendall(answer[: len(answer) // 2])
                    break
                client.sendall(answer)
        for each in (client, bookie):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _tampered(self, body: bytearray) -> bytes:
        if len(body) < 24:
            return bytes(body)
        header, status, ledger_id, entry_id = struct.unpack_from(">Iiqq", body)
        opcode = (header >> 16) & 0xFF
        if header >> 24 != 2 or status != 0:
            return bytes(body)
        if opcode == 2 and len(body) > 56:
            entry_id = struct.unpack_from(">q", body, 32)[0]  # also right for "last entry" reads
            self._flip(body, ledger_id, entry_id, len(body))
        elif opcode == 7:
            at = 32
            while at + 4 <= len(body):
                end = at + 4 + struct.unpack_from(">i", body, at)[0]
                self._flip(body, ledger_id, entry_id, end)
                at, entry_id = end, entry_id + 1
        return bytes(body)

    def _flip(self, body: bytearray, ledger_id: int, entry_id: int, end: int) -> None:
        if (ledger_id, entry_id) in self.flipped:
            body[end - 1] ^= 1
            self.flips += 1
