"""An HTTP proxy that refuses some requests, loses or breaks the answers of others, or lets them
wait.

Bytes pass as they are, the Host header included, so that a signed request stays signed. Answers
pass in pieces as they come. Which request is struck is a rule's business (`once` here,
s3_chaos.py).
"""

from __future__ import annotations

import http.client
import socket
import struct
import sys
import threading
from collections.abc import Callable
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NoReturn, Self
from urllib.parse import urlsplit


class Do(Enum):
    """What happens to one request."""

    PASS = "pass"
    REFUSE = "503, and the server never sees it"
    FAIL = "500, and the server never sees it"
    DENY = "403, and the server never sees it"
    RESET = "the connection is reset, and the server never sees it"
    LOSE_ANSWER = "the server does it, the connection dies before the answer"
    STALL = "the server does it, the answer waits for `stall_s`"
    SHORT = "the server does it, the answer ends orderly in the middle of its body"
    CUT = "the server does it, the connection is reset in the middle of the answer's body"


_ANSWERS = {  # the code is S3's: clients wait longer after SlowDown than after a 500
    Do.REFUSE: (503, "SlowDown"),
    Do.FAIL: (500, "InternalError"),
    Do.DENY: (403, "AccessDenied"),
}
_PIECE = 1 << 16
Rule = Callable[[str, str], Do]


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that died in mid-answer is no news; any other failure is told as usual."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class HttpProxy:
    """Context manager; `rule` gets (method, path with query) and may change at any time.

    An answer without a body cannot break in the middle; SHORT and CUT then break it before it
    begins.
    """

    def __init__(self, upstream: str, rule: Rule | None = None, *, stall_s: float = 0.1) -> None:
        self.rule: Rule = rule or (lambda _method, _path: Do.PASS)
        self.stall_s = stall_s
        self.replaced: dict[
            str, str
        ] = {}  # answer headers by lower-case name, with their new value
        self.struck: list[tuple[str, str]] = []
        self._over = threading.Event()
        parts = urlsplit(upstream)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                """Nothing goes to standard error."""

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                doing = proxy.rule(self.command, self.path)
                if doing is not Do.PASS:
                    proxy.struck.append((self.command, self.path))
                if doing is Do.RESET:
                    self.reset()
                if doing in _ANSWERS:
                    self.refuse(*_ANSWERS[doing])
                    return
                server = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
                try:
                    server.putrequest(
                        self.command, self.path, skip_host=True, skip_accept_encoding=True
                    )
                    for name, value in self.headers.items():
                        if name.lower() != "expect":
                            server.putheader(name, value)
                    server.endheaders(body)
                    self.pass_answer(server.getresponse(), doing)
                finally:
                    server.close()

            def refuse(self, status: int, code: str) -> None:
                body = f"<Error><Code>{code}</Code><Message>by the rule</Message></Error>".encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/xml")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def pass_answer(self, answer: http.client.HTTPResponse, doing: Do) -> None:
                if doing is Do.LOSE_ANSWER:
                    answer.read()
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if doing is Do.STALL:
                    proxy._over.wait(proxy.stall_s)
                told = answer.getheader("Content-Length")
                said = answer.read() if told is None and self.command != "HEAD" else None
                length = len(said) if said is not None else int(told or 0)
                breaks = doing in (Do.SHORT, Do.CUT)
                if breaks and (self.command == "HEAD" or length == 0):
                    self.reset()
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                        self.send_header(name, proxy.replaced.get(name.lower(), value))
                self.send_header("Content-Length", str(length))
                self.end_headers()
                if self.command == "HEAD":
                    return
                left = length // 2 if breaks else length
                while left > 0:
                    piece = said[:left] if said is not None else answer.read(min(_PIECE, left))
                    if not piece:
                        self.reset()  # the server itself broke off
                    self.wfile.write(piece)
                    left -= len(piece)
                if doing is Do.CUT:
                    self.reset()
                if doing is Do.SHORT:
                    self.close_connection = True

            def reset(self) -> NoReturn:
                """End the connection with a reset, as a server that dies does."""
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.rfile.close()
                self.wfile.close()
                self.connection.close()
                raise ConnectionResetError("reset by the rule")

        for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.handle_any)
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()


def once(method: str, part: str, doing: Do) -> Rule:
    """Strike the first request of a method whose path holds `part`, and no other."""
    struck: list[str] = []

    def rule(asked: str, path: str) -> Do:
        if asked == method and part in path and not struck:
            struck.append(path)
            return doing
        return Do.PASS

    return rule
