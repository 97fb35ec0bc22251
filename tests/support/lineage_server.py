"""A server that receives OpenLineage events on loopback, and answers as it is told.

Each request is answered by the next of `answers`, and with 200 where there is none: a status, DROP
(the connection ends without an answer), HOLD (an answer comes when the server is left) or DRIP (its
header comes byte by byte until then).
"""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

DROP, HOLD, DRIP = "drop", "hold", "drip"


class LineageServer:
    """`events` were answered with 200, in the order of their arrival; `asked` are all requests."""

    def __init__(self, port: int) -> None:
        self.events: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str | None]] = []  # path, Authorization
        self.connections: set[Any] = set()
        self.answers: deque[int | str] = deque()
        self.url = f"http://127.0.0.1:{port}"
        self.ends = Event()

    @property
    def told(self) -> list[str]:
        """The events in short: job, what became of it, and how many outputs it has."""
        return [short(event) for event in self.events]


def short(event: dict[str, Any]) -> str:
    job = event["job"]["name"].partition(".")[2]
    return f"{job} {event['eventType']} {len(event['outputs'])}"


@contextmanager
def lineage_server(*answers: int | str, port: int = 0) -> Iterator[LineageServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.asked.append((self.path, self.headers.get("Authorization")))
            server.connections.add(self.client_address)
            answer = server.answers.popleft() if server.answers else 200
            if answer == DROP:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if answer == HOLD:
                server.ends.wait()
                answer = 200
            if answer == DRIP:
                self._drip()
                return
            if answer == 200:
                server.events.append(json.loads(body))
            self.send_response(int(answer))
            if answer == 302:
                self.send_header("Location", f"{server.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            server.asked.append((f"GET {self.path}", self.headers.get("Authorization")))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _drip(self) -> None:
            self.close_connection = True
            try:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not server.ends.wait(0.02):
                    self.wfile.write(b"x")
            except OSError:
                return

        def log_message(self, *_words: object) -> None:
            """Keep the test output clean."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_request: object) -> None:
            """A client that waits no longer has closed its end."""

    httpd = Quiet(("127.0.0.1", port), Handler)
    server = LineageServer(httpd.server_address[1])
    server.answers.extend(answers)
    thread = Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.ends.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()
