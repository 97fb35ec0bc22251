"""How a client of ZooKeeper is made: connected, quiet, and back soon after an outage.

Owns: an outage of any length is followed by an attempt within about a second of its end. Kazoo by
itself doubles its pause up to an hour, and a request of ours waits for seconds only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kazoo import exceptions as zk_errors
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.metastore.store_uri import ZooKeeperAddress

_PAUSE_MAX_S = 1.0


def connect_client(
    address: ZooKeeperAddress,
    *,
    session_timeout_s: float,
    connect_timeout_s: float,
    on_state: Callable[[Any], object] | None = None,
) -> KazooClient:
    """Return a client with a session; `on_state` hears of every change of its connection.

    Raises:
        MetadataError: no session within `connect_timeout_s`; says what the last attempt met.
    """
    said = _Quiet(logging.getLogger(__name__), {})
    client = KazooClient(
        hosts=",".join(address.hosts) + address.chroot,
        timeout=session_timeout_s,
        connection_retry={"max_tries": -1, "max_delay": _PAUSE_MAX_S},  # for ever
        logger=said,
    )
    if on_state is not None:
        client.add_listener(on_state)
    try:
        client.start(timeout=connect_timeout_s)
    except (KazooTimeoutError, zk_errors.KazooException) as error:
        close_client(client)
        raise MetadataError(
            f"no connection to ZooKeeper {address} within {connect_timeout_s} s ({said.last}): check"
            " metadata.store (hosts and port) and that a server runs there"
        ) from error
    return client


def close_client(client: KazooClient) -> None:
    with suppress(zk_errors.KazooException):
        client.stop()
        client.close()


class _Quiet(logging.LoggerAdapter[logging.Logger]):
    """Kazoo reports every reconnect as a warning; whoever calls us gets an error where it
    counts.
    """

    last = "no answer"

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if str(msg).startswith(("Connection dropped", "Connection time-out")):  # of one attempt
            self.last = str(msg) % args
        super().log(min(level, logging.DEBUG), msg, *args, **kwargs)
