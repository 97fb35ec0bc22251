"""Questions whose answer says that a server is ready, and one plain HTTP call.

Owns: a probe returns True or False and never raises for a server that is not there yet. http.client
is used because it knows no proxies: these servers are on the loopback address.
"""

from __future__ import annotations

import http.client
from contextlib import closing, suppress
from urllib.parse import urlsplit

from tiering_assets.resources.devstack.config import HOST
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore

_PROBE_TIMEOUT_S = 5.0
_REDIRECTS_MAX = 5
HTTP_OK = 200
HTTP_REDIRECT = 307
HTTP_FORBIDDEN = 403


def http_call(
    port: int,
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    timeout_s: float = _PROBE_TIMEOUT_S,
) -> tuple[int, bytes]:
    """Return status and body; a broker that names the topic's owner is followed to it.

    Raises OSError or http.client.HTTPException when nobody answers.
    """
    headers = {} if body is None else {"Content-Type": "application/json"}
    for _ in range(_REDIRECTS_MAX):
        with closing(http.client.HTTPConnection(HOST, port, timeout=timeout_s)) as connection:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != HTTP_REDIRECT:
                return answer.status, said
            to = urlsplit(answer.headers["Location"])
            port, path = to.port or port, f"{to.path}?{to.query}" if to.query else to.path
    raise http.client.HTTPException(f"{method} {path}: redirected {_REDIRECTS_MAX} times")


def http_answers(port: int, path: str, *statuses: int, timeout_s: float = _PROBE_TIMEOUT_S) -> bool:
    """Say whether GET `path` answers with one of the statuses."""
    with suppress(OSError, http.client.HTTPException):
        return http_call(port, "GET", path, timeout_s=timeout_s)[0] in statuses
    return False


def zookeeper_gives_a_session(port: int) -> bool:
    """Say whether ZooKeeper opens a session; it answers `ruok` before it can."""
    with suppress(MetadataError):
        ZooKeeperStore(f"zk:{HOST}:{port}", connect_timeout_s=_PROBE_TIMEOUT_S).close()
        return True
    return False
