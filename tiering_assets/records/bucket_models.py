"""Records of a bucket as a whole: that its store keeps its promises, the wanted rates, its day
book, the ledgers of large runs.

docs/records.md explains their fields, models.py has the rules of every record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import AwareDatetime, NonNegativeInt, PositiveInt

from tiering_assets.records.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketProof:
    """Written when every promise that the protocols rely on was tried out in the bucket, and held.

    `promises` are the names of what was tried, `endpoint` is through which.
    """

    kind: ClassVar[str] = "tierkeeper/bucket-proof/1"
    bucket: str
    endpoint: str
    promises: tuple[str, ...]
    proven_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The wanted rates of the cluster and of each topic: 0 is no bound, None is as settings say.

    Overwritten in place; whoever spends reads it every 10 s (docs/budgets.md).
    """

    kind: ClassVar[str] = "tierkeeper/budget/1"
    author: str
    set_at: AwareDatetime
    writer: Writer
    upload_bytes_per_s: NonNegativeInt | None = None
    bookie_read_bytes_per_s: NonNegativeInt | None = None
    store_requests_per_s: NonNegativeInt | None = None
    topic_upload_bytes_per_s: NonNegativeInt | None = None
    topic_bookie_read_bytes_per_s: NonNegativeInt | None = None
    topic_store_requests_per_s: NonNegativeInt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRecord:
    """A record by its key, relative to the instance's prefix, and the SHA-256 of its bytes.

    No digest is given of one that goes.
    """

    key: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBookPage:
    """Written before a run's first record of a ledger (`open`) and after its last one (`close`).

    Pages are numbered from 1 without gaps, and each names the digest of the one before it. So a
    page that vanished is missed, and so is a chain of records.

    `records` of a `close` page are those that were written, of a `gone` page those that are taken
    away, which is written before they go. Those of a `proof` page were found by a full listing,
    and no page had named them. `ledgers` of a `close` page are those that the run is done with.
    `for_run` is a run that died, whose ledgers another one closed. One `close` page of a run that
    failed for a ledger says so (`failed`). `previous` is the digest of the page before, empty for
    the first one.
    """

    kind: ClassVar[str] = "tierkeeper/page/1"
    number: PositiveInt
    previous: str
    phase: Literal["open", "close", "gone", "proof"]
    command: str
    written_at: AwareDatetime
    writer: Writer
    ledgers: tuple[int, ...] = ()
    records: tuple[NamedRecord, ...] = ()
    for_run: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBatch:
    """The ledgers of a run that has more than its configuration should list.

    The configuration names this record and the SHA-256 of its bytes, and the run refuses others.
    """

    kind: ClassVar[str] = "tierkeeper/run-batch/1"
    job: str
    ledger_ids: tuple[int, ...]
    asked_at: AwareDatetime
    writer: Writer


BucketRecord = BucketProof | Budget | DayBookPage | RunBatch
