"""A way to a server that is longer by so many milliseconds: answers come later, none comes slower.

    python -m benchmarks.far_store HOST:PORT MILLISECONDS   prints its port; ends when standard
                                                            input does

Owns: every byte that comes back is held for the same time, however many are under way, as a wire
would; what goes there is passed on at once. Bytes pass as they are, so that a signed request, its
Host header included, stays signed.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import time
from contextlib import suppress

_PIECE = 1 << 20


class FarServer:
    """Listens on a port of its own and forwards to the server; threads end with the process."""

    def __init__(self, upstream: tuple[str, int], delay_s: float) -> None:
        self._upstream, self._delay_s = upstream, delay_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(self._upstream)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            held: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            threading.Thread(target=_forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self._hold, args=(server, held), daemon=True).start()
            threading.Thread(target=_let_go, args=(held, client), daemon=True).start()

    def _hold(self, source: socket.socket, held: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            try:
                data = source.recv(_PIECE)
            except OSError:
                data = b""
            held.put((time.monotonic() + self._delay_s, data))


def _forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_PIECE):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def _let_go(held: queue.SimpleQueue[tuple[float, bytes]], target: socket.socket) -> None:
    with suppress(OSError):
        while True:
            due_s, data = held.get()
            time.sleep(max(0.0, due_s - time.monotonic()))
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(data)


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    server = FarServer((host, int(port)), float(sys.argv[2]) / 1000)
    print(server.port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
