"""The connections of one reader or task: one per bookie, made when first needed.

Owns: what was learnt about each bookie in this pool's life. Whether it knows batch reads (a bookie
before 4.17 resets the connection on the first one) and whether it was silent lately, so that a dead
bookie costs one timeout and not one per request. A bookie id is not an address; the addresses come
from BookKeeper's registration and are given to the pool, which dials them as `bookies.address_map`
says.
Refuses to be shared between threads: each thread or task makes its own pool.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import Enum
from types import TracebackType
from typing import Self

from tiering_assets.resources.bookkeeper.address_map import AddressMap
from tiering_assets.resources.bookkeeper.connection import Clock, Connect, Connection, connect_plain
from tiering_assets.resources.bookkeeper.frames import FRAME_BYTES_MAX
from tiering_assets.resources.bookkeeper.meter import ReadMeter
from tiering_assets.resources.errors import BookieUnreachableError
from tiering_assets.resources.settings import BookieSettings

Address = tuple[str, int]
Addresses = Mapping[str, Address] | Callable[[str], Address]
SUSPECT_S = 30.0  # twice the request timeout: short against a restart, long against a batch


class BatchSupport(Enum):
    UNKNOWN = "unknown"
    YES = "yes"
    NO = "no"


class BookiePool:
    """Context manager; `addresses` maps a bookie id to (host, port), or is a function that does."""

    def __init__(
        self,
        settings: BookieSettings,
        addresses: Addresses,
        *,
        connect: Connect = connect_plain,
        clock: Clock = time.monotonic,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        suspect_s: float = SUSPECT_S,
        meter: ReadMeter | None = None,
    ) -> None:
        self.clock = clock
        self._settings = settings
        self._addresses = addresses
        self._address_map = AddressMap.parse(settings.address_map)
        self._connect = connect
        self._frame_bytes_max = frame_bytes_max
        self._suspect_s = suspect_s
        self._meter = meter
        self._connections: dict[str, Connection] = {}
        self._batch_support: dict[str, BatchSupport] = {}
        self._suspect_until: dict[str, float] = {}
        self._last_request_id = 0

    def connection(self, bookie_id: str) -> Connection:
        """Return the open connection to a bookie, made now if there is none.

        Raises:
            BookieUnreachableError: no address is known, or it does not accept a connection.
        """
        known = self._connections.get(bookie_id)
        if known is not None and not known.closed:
            return known
        advertised = self._address(bookie_id)
        host, port = self._address_map.dialled(advertised)
        try:
            opened = self._connect(host, port, self._settings.connect_timeout_s)
        except OSError as error:
            raise BookieUnreachableError(
                f"bookie {bookie_id}: no connection to {self._address_map.told(advertised)}: {error}"
            ) from error
        made = Connection(
            bookie_id,
            opened,
            request_timeout_s=self._settings.request_timeout_s,
            frame_bytes_max=self._frame_bytes_max,
            clock=self.clock,
            meter=self._meter,
        )
        self._connections[bookie_id] = made
        return made

    def reads_at_once(self, window: int) -> int:
        """How many single reads may be in flight: the window, or fewer under a budget."""
        bound = None if self._meter is None else self._meter.reads_at_once()
        return window if bound is None else max(1, min(window, bound))

    def next_request_id(self) -> int:
        """Return an id that no other batch read of this pool has."""
        self._last_request_id += 1
        return self._last_request_id

    def batch_support(self, bookie_id: str) -> BatchSupport:
        return self._batch_support.get(bookie_id, BatchSupport.UNKNOWN)

    def note_batch_support(self, bookie_id: str, *, supported: bool) -> None:
        """Remember how the first batch read of a bookie ended."""
        self._batch_support[bookie_id] = BatchSupport.YES if supported else BatchSupport.NO

    def note_silent(self, bookie_id: str) -> None:
        """Remember that a bookie could not be reached; it is tried last for a while."""
        self._suspect_until[bookie_id] = self.clock() + self._suspect_s
        if self.batch_support(bookie_id) is BatchSupport.NO:
            # It may have been going down when the batch was reset: ask again when it is back.
            del self._batch_support[bookie_id]

    def silent_lately(self, bookie_id: str) -> bool:
        return self.clock() < self._suspect_until.get(bookie_id, float("-inf"))

    @property
    def buffer_bytes(self) -> int:
        """Receive buffers of all connections together."""
        return sum(c.buffer_bytes for c in self._connections.values())

    def close(self) -> None:
        """Close every connection; the pool may be used again and then makes new ones."""
        for made in self._connections.values():
            made.close()
        self._connections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _address(self, bookie_id: str) -> Address:
        if callable(self._addresses):
            return self._addresses(bookie_id)
        found = self._addresses.get(bookie_id)
        if found is None:
            raise BookieUnreachableError(
                f"bookie {bookie_id}: not registered, its address is unknown"
            )
        return found
