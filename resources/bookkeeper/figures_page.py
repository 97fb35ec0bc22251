"""Reads the page of figures that a bookie serves for Prometheus; one request, one answer.

Owns: nothing is tried twice, and an answer has a bound of time and size, because whoever reads from
the bookie waits for it. Asks for this path alone; others of the same server change the bookie.
"""

from __future__ import annotations

import http.client
from contextlib import closing

from tiering_assets.resources.bookkeeper.add_latency import AddLatency, parse_add_latency
from tiering_assets.resources.bookkeeper.address_map import Address, shown
from tiering_assets.resources.errors import BookieError, FormatError

PATH = "/metrics"
TIMEOUT_S = 1.0
PAGE_BYTES_MAX = 8 * 1024 * 1024  # a bookie of four threads has 160 KB


def read_add_latency(address: Address, *, timeout_s: float = TIMEOUT_S) -> AddLatency:
    """How long the bookie at this HTTP address says that its adds take.

    Raises:
        BookieError: no answer in time, another status, or a page without the figure.
    """
    where = f"figures of the bookie at http://{shown(address)}{PATH}"
    try:
        connection = http.client.HTTPConnection(*address, timeout=timeout_s)
        with closing(connection):
            connection.request("GET", PATH)
            answer = connection.getresponse()
            page = answer.read(PAGE_BYTES_MAX)
    except (OSError, http.client.HTTPException) as error:
        raise BookieError(f"{where}: {str(error) or type(error).__name__}") from error
    if answer.status != http.client.OK:
        raise BookieError(f"{where}: HTTP {answer.status}")
    try:
        return parse_add_latency(page)
    except FormatError as error:
        raise BookieError(f"{where}: {error}") from error
