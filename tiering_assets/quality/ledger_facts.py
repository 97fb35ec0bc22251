"""A ledger that waits for its release, and its topic, as they were found just now.

Owns the one value that is gathered, shown to the suites and judged by the gate: lists, records and
HEAD as they are. Nothing is compared here. None: not there, or it could not be learned; the gate
takes neither for good news. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tiering_assets.records.models import (
    Attempt,
    Certificate,
    LedgerFacts,
    Outcome,
    Publication,
    PublishedLedger,
)
from tiering_assets.records.stored import Stored
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.offload_context import OffloadContext
from tiering_assets.resources.object_store.store import ObjectHead


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """What is the same for all ledgers of a topic.

    `ledgers` is its list in the order given, `published` the ids that confirmed publications name.
    `bucket` is ours, `store_now` the store's clock, and `skew_s` the seconds that a clock of ours
    may be off it. `place_differs` says where brokers would look instead of our bucket,
    `cannot_read` names the brokers whose offload driver is not ours, and `left_alone` says why the
    topic is not reloaded now.
    """

    ml_name: str
    ledgers: Sequence[LedgerInfo]
    published: frozenset[int]
    bucket: str
    store_now: datetime
    skew_s: float
    place_differs: tuple[str, ...] | None
    cannot_read: tuple[str, ...] | None
    skips_unreadable_ledgers: bool | None
    shadows: tuple[str, ...]
    never_touched: str | None
    left_alone: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFacts:
    """One ledger: its context in the list, BookKeeper's facts, the records of its attempt, its
    objects.

    `data_reads` and `index_reads` say whether a GET of either answers now, `index_sha256` is of the
    index object's bytes, and `index_agrees` says that these decode to what the certificate has.
    """

    ledger_id: int
    context: OffloadContext | None
    node: LedgerFacts | None
    under_replicated: bool | None
    attempt: Stored[Attempt] | None
    certificate: Stored[Certificate] | None
    certificate_faults: tuple[str, ...]
    outcome: Stored[Outcome] | None
    publication: Stored[Publication] | None
    quarantine: str | None
    data: ObjectHead | None
    data_reads: bool
    index: ObjectHead | None
    index_reads: bool
    index_sha256: str
    index_agrees: bool
    hold: str | None

    @property
    def published(self) -> tuple[PublishedLedger, ...]:
        """Its entries in the publication."""
        entries = () if self.publication is None else self.publication.record.ledgers
        return tuple(entry for entry in entries if entry.ledger_id == self.ledger_id)

    @property
    def certified_entry(self) -> PublishedLedger | None:
        """Its entry in the publication with the certified attempt."""
        if self.certificate is None:
            return None
        uid = self.certificate.record.uid
        return next((entry for entry in self.published if entry.uid == uid), None)
