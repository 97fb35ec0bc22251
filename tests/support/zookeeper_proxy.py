"""A TCP proxy in front of ZooKeeper: cut off, or one write never arrives, or its answer never
comes.

Requests are frames of a 4-byte length, the request's number and its kind; answers begin with the
number of their request. Source: ZooKeeper ClientCnxn, ZooDefs.OpCode.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

from tests.support.bookie_sim import read_exactly

SET_DATA = 5
MULTI = 14
_QUESTION = -1
_ANY_RIGHT = struct.pack(">i", 2**31 - 1)  # a version that no node has: may we write?


class ZooKeeperProxy:
    """Context manager; clients connect to `connect_string`."""

    def __init__(self, upstream: str) -> None:
        host, port = upstream.rsplit(":", 1)
        self._upstream = (host, int(port))
        self._lose: int | None = None
        self._drop: int | None = None
        self.lost = 0
        self._away = False
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connect_string = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def lose_answer_of(self, kind: int) -> None:
        """The next request of this kind is done; its answer is dropped with the connection."""
        self._lose = kind

    def drop_request_of(self, kind: int) -> None:
        """The next request of this kind never arrives; the connection dies with it."""
        self._drop = kind

    def go_away(self) -> None:
        """Cut every connection and refuse new ones until come_back()."""
        self._away = True
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def come_back(self) -> None:
        self._away = False

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.go_away()
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
            if self._away:
                client.close()
                continue
            server = socket.create_connection(self._upstream, timeout=10)
            server.settimeout(None)
            self._sockets |= {client, server}
            pending: set[int] = set()
            self._spawn(self._requests, client, server, pending)
            self._spawn(self._answers, client, server, pending)

    def _requests(self, client: socket.socket, server: socket.socket, pending: set[int]) -> None:
        first = True  # the connect request has neither number nor kind
        with contextlib.suppress(OSError):
            while (prefix := read_exactly(client, 4)) is not None:
                body = read_exactly(client, struct.unpack(">i", prefix)[0])
                if body is None:
                    break
                if not first:
                    number, kind = struct.unpack_from(">ii", body)
                    if kind == SET_DATA and body.endswith(_ANY_RIGHT):
                        kind = _QUESTION
                    if kind == self._drop:
                        self._drop = None
                        self.lost += 1
                        break
                    if kind == self._lose:
                        self._lose = None
                        pending.add(number)
                first = False
                server.sendall(prefix + body)
        _end(server)
        _end(client)

    def _answers(self, client: socket.socket, server: socket.socket, pending: set[int]) -> None:
        first = True
        with contextlib.suppress(OSError):
            while (prefix := read_exactly(server, 4)) is not None:
                body = read_exactly(server, struct.unpack(">i", prefix)[0])
                if body is None:
                    break
                if not first and struct.unpack_from(">i", body)[0] in pending:
                    self.lost += 1
                    _end(server)
                    break
                first = False
                client.sendall(prefix + body)
        _end(client)


def _end(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
