"""A store's answers that the local server cannot be brought to give: an archived object, another
clock.

A proxy in front of the real server passes every request as it is, so that signatures stay good, and
changes the answer. Bodies are held whole: this is for small objects.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

_NOT_OURS = ("transfer-encoding", "content-length", "connection")


@dataclass(frozen=True)
class Answer:
    """What the server said; header names as it wrote them."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def with_header(self, name: str, value: str) -> Answer:
        kept = tuple(one for one in self.headers if one[0].lower() != name.lower())
        return replace(self, headers=(*kept, (name, value)))


Alter = Callable[[str, str, Answer], Answer]


class AlteringProxy:
    """Context manager; `alter` gets (method, path with query, answer) and may change at any
    time.
    """

    def __init__(self, upstream: str, alter: Alter) -> None:
        self.alter = alter
        parts = urlsplit(upstream)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                """Nothing goes to standard error."""

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
                try:
                    server.putrequest(
                        self.command, self.path, skip_host=True, skip_accept_encoding=True
                    )
                    for name, value in self.headers.items():
                        if name.lower() != "expect":
                            server.putheader(name, value)
                    server.endheaders(body)
                    found = server.getresponse()
                    said = Answer(found.status, tuple(found.getheaders()), found.read())
                finally:
                    server.close()
                told = proxy.alter(self.command, self.path, said)
                self.send_response_only(told.status)
                for name, value in told.headers:
                    if name.lower() not in _NOT_OURS:
                        self.send_header(name, value)
                length = found.getheader("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", length or str(len(told.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(told.body)

        for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.handle_any)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()


def in_class(key: str, storage_class: str) -> Alter:
    """A store's answers for an object that it moved to another class, which reads as before."""

    def alter(_method: str, path: str, answer: Answer) -> Answer:
        if path.partition("?")[0].endswith(f"/{key}") and answer.status in (200, 206):
            return answer.with_header("x-amz-storage-class", storage_class)
        return answer

    return alter


def archived(key: str, storage_class: str = "GLACIER") -> Alter:
    """S3's answers for an object in an archive: HEAD names the class, GET is refused."""
    refusal = (
        b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>InvalidObjectState</Code>'
        b"<Message>The operation is not valid for the object's storage class</Message></Error>"
    )

    def alter(method: str, path: str, answer: Answer) -> Answer:
        if path.partition("?")[0].endswith(f"/{key}") and answer.status in (200, 206):
            if method == "HEAD":
                return answer.with_header("x-amz-storage-class", storage_class)
            if method == "GET":
                return Answer(403, (("Content-Type", "application/xml"),), refusal)
        return answer

    return alter


def expiring(key: str) -> Alter:
    """S3's answers for an object that a lifecycle rule will delete."""

    def alter(_method: str, path: str, answer: Answer) -> Answer:
        if path.partition("?")[0].endswith(f"/{key}") and answer.status in (200, 206):
            told = 'expiry-date="Fri, 23 Dec 2050 00:00:00 GMT", rule-id="tidy"'
            return answer.with_header("x-amz-expiration", told)
        return answer

    return alter


def clock_off(by: timedelta) -> Alter:
    """Answers of a store whose clock is off now, and was right when it wrote what is there."""

    def alter(_method: str, _path: str, answer: Answer) -> Answer:
        [date] = [value for name, value in answer.headers if name.lower() == "date"]
        moved = parsedate_to_datetime(date) + by
        return answer.with_header("Date", format_datetime(moved, usegmt=True))

    return alter


def written_later(key: str, by: timedelta) -> Alter:
    """Answers of a store whose clock was ahead when it wrote this object, and is right now."""

    def alter(_method: str, path: str, answer: Answer) -> Answer:
        if not path.partition("?")[0].endswith(f"/{key}"):
            return answer
        [date] = [value for name, value in answer.headers if name.lower() == "last-modified"]
        moved = parsedate_to_datetime(date) + by
        return answer.with_header("Last-Modified", format_datetime(moved, usegmt=True))

    return alter
