"""Clients of metered stores that were closed, for the next such store of this process.

Owns: a client is of one store at a time and asks that one's meter; a closed store's meter is asked
no more. Each run of tasks has a store of its own, and to make a client costs 9 ms of CPU and a
connection: as much as all requests of a small ledger's records.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

from tiering_assets.resources.object_store.meter import StoreMeter

_KEPT_MAX: Final = 8  # in all; the oldest goes
_LOCK = threading.Lock()
_kept: list[MeteredClient] = []


@dataclass(eq=False, slots=True)
class MeteredClient:
    """A client and whose meter it asks, if anybody's. `key`: its process and settings."""

    key: Hashable
    client: Any  # boto3's
    meter: StoreMeter | None = None


def key_of(settings: Hashable) -> Hashable:
    """What clients of this process and these settings are kept by."""
    return os.getpid(), settings


def take(key: Hashable) -> MeteredClient | None:
    """One that was kept by this key, and nobody has."""
    with _LOCK:
        for i, one in enumerate(_kept):
            if one.key == key:
                return _kept.pop(i)
    return None


def keep(one: MeteredClient) -> None:
    """Give it back; no request of it is under way."""
    one.meter = None
    with _LOCK:
        _kept.append(one)
        del _kept[:-_KEPT_MAX]
