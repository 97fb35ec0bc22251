"""Questions whose answer says that a server is ready, and one plain HTTP call.

Owns: a probe returns True or False and never raises for a server that is not there yet. http.client
is used because it knows no proxies: these servers are on the loopback address.
"""

from __future__ import annotations

import http.client
import socket
from contextlib import closing, suppress

from resources.devstack.config import HOST

_PROBE_TIMEOUT_S = 5.0
HTTP_OK = 200
HTTP_FORBIDDEN = 403


def http_call(
    port: int,
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    timeout_s: float = _PROBE_TIMEOUT_S,
) -> tuple[int, bytes]:
    """Return status and body. Raises OSError or http.client.HTTPException when nobody answers."""
    headers = {} if body is None else {"Content-Type": "application/json"}
    with closing(http.client.HTTPConnection(HOST, port, timeout=timeout_s)) as connection:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def http_answers(port: int, path: str, *statuses: int) -> bool:
    """Say whether GET `path` answers with one of the statuses."""
    with suppress(OSError, http.client.HTTPException):
        return http_call(port, "GET", path)[0] in statuses
    return False


def zookeeper_is_ok(port: int) -> bool:
    """Say whether ZooKeeper answers `imok` to `ruok`."""
    with (
        suppress(OSError),
        socket.create_connection((HOST, port), timeout=_PROBE_TIMEOUT_S) as connection,
    ):
        connection.sendall(b"ruok")
        return connection.recv(16) == b"imok"
    return False
