"""What a ledger that waits for its release is judged by: lists, records and objects as read now.

Owns the input of the coverage and certificate suites. Everything comes from the two metadata trees,
the records and HEAD, as it was found; nothing is compared here. None: not there, or not readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from resources.metastore.ledger_info import LedgerInfo
from resources.object_store.store import ObjectHead
from tiering_assets.records.models import Attempt, Certificate, LedgerFacts, Outcome, Publication


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """A topic's list of ledgers in the order given, and the ids that confirmed publications name."""

    ml_name: str
    ledgers: Sequence[LedgerInfo]
    published: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFacts:
    """One ledger with a certificate. A `…_sha256` is the digest of that record's exact bytes, and
    `…_stored_at` the time that the store gave it.

    `index_sha256` is of the index object's bytes, `store_now` the store's clock, and `skew_s` the
    seconds that a clock of ours may be off it.
    """

    ledger_id: int
    node: LedgerFacts | None
    attempt: Attempt | None
    attempt_sha256: str
    attempt_stored_at: datetime | None
    certificate: Certificate
    certificate_sha256: str
    certificate_stored_at: datetime
    outcome: Outcome | None
    outcome_sha256: str
    publication: Publication | None
    publication_stored_at: datetime | None
    data: ObjectHead | None
    index: ObjectHead | None
    index_sha256: str
    store_now: datetime
    skew_s: float
