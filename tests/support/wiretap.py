"""A TCP proxy that notes what passes and when, so that rates can be judged from outside.

Bytes pass as they are and are noted when they come out of the sender's socket. What clients of an
S3 server send is told apart by its request: one request at a time on a connection, as S3 clients
do.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

_REQUEST = re.compile(rb"(GET|PUT|POST|HEAD|DELETE) (\S+) HTTP/1\.1\r\n")


class Seen(NamedTuple):
    """`size` bytes at `when` (monotonic seconds) of the request `what`, empty for other
    protocols.
    """

    when: float
    size: int
    what: str = ""


class Wiretap:
    """Context manager; `sent` is what clients said without their headers, `answered` what came
    back.

    `requests` has one item for each request of HTTP.
    """

    def __init__(self, upstream: tuple[str, int]) -> None:
        self.sent: list[Seen] = []
        self.answered: list[Seen] = []
        self.requests: list[Seen] = []
        self._upstream = upstream
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self.url = f"http://127.0.0.1:{self.address[1]}"

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for each in (self._listener, *self._sockets):
            each.close()

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._upstream, timeout=10)
            except OSError:
                return
            server.settimeout(None)
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [client, server]
            self._spawn(self._pass, client, server, self._note_sent())
            self._spawn(self._pass, server, client, self._note_answered)

    def _pass(
        self, source: socket.socket, target: socket.socket, note: Callable[[bytes], None]
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(1 << 16):
                note(chunk)
                target.sendall(chunk)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _note_sent(self) -> Callable[[bytes], None]:
        what = ""

        def note(chunk: bytes) -> None:
            nonlocal what
            now, size = time.monotonic(), len(chunk)
            request = _REQUEST.match(chunk)
            if request is not None:
                what = f"{request[1].decode()} {request[2].decode()}"
                self.requests.append(Seen(now, 1, what))
                size = len(chunk.partition(b"\r\n\r\n")[2])
            if size:
                self.sent.append(Seen(now, size, what))

        return note

    def _note_answered(self, chunk: bytes) -> None:
        self.answered.append(Seen(time.monotonic(), len(chunk)))


def most_in(seen: Iterable[Seen], *, seconds: float = 10.0) -> int:
    """The most that any window of so many seconds holds."""
    items = sorted(seen)
    most = total = first = 0
    for item in items:
        total += item.size
        while items[first].when <= item.when - seconds:
            total -= items[first].size
            first += 1
        most = max(most, total)
    return most
