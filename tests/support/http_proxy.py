"""An HTTP proxy that answers 503 or 403 to some requests, or does them and keeps the answer to itself.

Bytes pass as they are, the Host header included, so that a signed request stays signed.
"""

from __future__ import annotations

import http.client
import socket
import sys
import threading
from collections.abc import Callable
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit


class Do(Enum):
    """What happens to one request."""

    PASS = "pass"
    REFUSE = "503, and the server never sees it"
    DENY = "403, and the server never sees it"
    LOSE_ANSWER = "the server does it, the connection dies before the answer"


_ANSWERS = {Do.REFUSE: (503, "Slow Down"), Do.DENY: (403, "Forbidden")}
Rule = Callable[[str, str], Do]


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that died in mid-answer is no news; any other failure is told as usual."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class HttpProxy:
    """Context manager; `rule` gets (method, path with query) and may change at any time."""

    def __init__(self, upstream: str, rule: Rule | None = None) -> None:
        self.rule: Rule = rule or (lambda _method, _path: Do.PASS)
        self.struck: list[tuple[str, str]] = []
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
                if doing in (Do.REFUSE, Do.DENY):
                    self.send_response(*_ANSWERS[doing])
                    self.send_header("Content-Length", "0")
                    self.end_headers()
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
                    answer = server.getresponse()
                    said = answer.read()
                finally:
                    server.close()
                if doing is Do.LOSE_ANSWER:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", length or str(len(said)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(said)

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
