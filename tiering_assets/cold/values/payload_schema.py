"""One version of a topic's schema, as payloads are read by it, and which one a message means.

Owns: messages name a version in 8 bytes, big-endian; older brokers wrote more behind them. A topic
that was made again counts versions from 0 again. A message in a ledger that is younger than the
newer schema's own is of the newer topic, as BookKeeper counts ledgers up. Of an older ledger its
publish time tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tiering_assets.resources.errors import FormatError

DELETED: Final = "DELETED"
_VERSION_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadSchema:
    """`type` is Pulsar's name, `definition` the bytes that brokers store.

    `ledger_id` is the ledger that they lie in, `registered_at_ms` when a broker took them.
    """

    version: int
    type: str
    definition: bytes = field(repr=False)
    properties: Mapping[str, str]
    incarnation: int = 0
    ledger_id: int = 0
    registered_at_ms: int = 0

    @property
    def said(self) -> str:
        return f"schema version {self.version} ({self.type})"


def version_number(stored: bytes) -> int:
    """FormatError for bytes that name none."""
    if len(stored) < _VERSION_BYTES:
        raise FormatError(f"its schema version has {len(stored)} bytes, expected {_VERSION_BYTES}")
    return int.from_bytes(stored[:_VERSION_BYTES], "big", signed=True)


def newest(schemas: Sequence[PayloadSchema]) -> PayloadSchema | None:
    """The one whose type values get: the newest that is no deletion."""
    found = [one for one in schemas if one.type != DELETED]
    return max(found, key=lambda one: (one.incarnation, one.version), default=None)


def meant(
    candidates: Sequence[PayloadSchema], *, ledger_id: int, publish_ms: int | None
) -> PayloadSchema:
    """Of those with one version number, in the order of incarnations, the one that a message means.

    `publish_ms` is the message's; a message without one is of the oldest that its ledger allows.
    """
    chosen = candidates[0]
    for one in candidates[1:]:
        is_later = publish_ms is not None and publish_ms >= one.registered_at_ms
        if ledger_id > one.ledger_id or is_later:
            chosen = one
    return chosen
