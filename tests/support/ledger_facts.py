"""A ledger that is ready for its release, as the coverage and certificate suites see it: made
up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, TypeVar
from uuid import UUID

from tiering_assets.quality.ledger_facts import CopyFacts, TopicFacts
from tiering_assets.quality.ledger_frame import LedgerRow, ledger_rows
from tiering_assets.records.models import (
    Attempt,
    BlockFacts,
    Certificate,
    LedgerFacts,
    ObjectFacts,
    Outcome,
    Publication,
    PublishedLedger,
    Record,
    SuiteResult,
)
from tiering_assets.records.stored import Stored
from tiering_assets.records.writer import Writer
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.offload_context import OffloadContext
from tiering_assets.resources.object_store.store import ObjectHead

R = TypeVar("R", bound=Record)

ML_NAME = "public/default/persistent/orders"
LEDGER_ID = 42
UID, OTHER_UID = UUID(int=42), UUID(int=43)
STARTED = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
WRITER = Writer(tool_version="0.1.0", host="worker-1:7", run_id="run-7")
LEDGER = LedgerFacts(
    ledger_id=LEDGER_ID,
    last_entry_id=99,
    length=10_000,
    digest_type="CRC32C",
    ctime_ms=1_767_225_600_000,
    czxid=77,
)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def block(part: int, first: int, last: int, offset: int) -> BlockFacts:
    return BlockFacts(
        part_number=part,
        first_entry_id=first,
        last_entry_id=last,
        offset=offset,
        block_length=6000,
        payload_bytes=5000,
        sha256=digest(f"block {part}"),
        entries_sha256=digest(f"entries {part}"),
    )


BLOCKS = (block(1, 0, 49, 0), block(2, 50, 99, 6000))
CERTIFICATE = Certificate(
    block_digest="frames",
    ledger=LEDGER,
    uid=UID,
    ml_name=ML_NAME,
    bucket="tiered",
    entries=100,
    payload_bytes=10_000,
    data=ObjectFacts(
        key="data",
        size=12_000,
        etag='"d"',
        sha256=sha256(b"".join(bytes.fromhex(b.sha256) for b in BLOCKS)).hexdigest(),
        version_id="v1",
    ),
    index=ObjectFacts(key="index", size=300, etag='"i"', sha256=digest("index")),
    blocks=BLOCKS,
    suites=(
        SuiteResult(
            name="index_objects/1", digest=digest("suite"), success=True, evaluated=1, successful=1
        ),
    ),
    verified_at=STARTED + HOUR,
    seconds=1.0,
    writer=WRITER,
    previous=digest("attempt record"),
)
ATTEMPT = Attempt(
    ledger=LEDGER,
    uid=UID,
    ml_name=ML_NAME,
    ml_czxid=7,
    bucket="tiered",
    data_key="data",
    index_key="index",
    block_bytes=6000,
    blocks=2,
    object_bytes=12_000,
    started_at=STARTED,
    writer=WRITER,
)
OUTCOME = Outcome(
    ledger_id=LEDGER_ID,
    uid=UID,
    outcome="publish",
    reason="certified",
    decided_at=STARTED + 2 * HOUR,
    writer=WRITER,
    previous=digest("certificate record"),
)
PUBLICATION = Publication(
    ml_name=ML_NAME,
    ledgers=(
        PublishedLedger(
            ledger_id=40,
            uid=OTHER_UID,
            certificate_sha256=digest("another certificate"),
            previous=digest("another outcome"),
        ),
        PublishedLedger(
            ledger_id=LEDGER_ID,
            uid=UID,
            certificate_sha256=digest("certificate record"),
            previous=digest("outcome record"),
        ),
    ),
    node_version=5,
    node_czxid=7,
    confirmed_by="unload acknowledged",
    confirmed_at=STARTED + 3 * HOUR,
    writer=WRITER,
)


def head(key: str, size: int, etag: str, version_id: str | None = None) -> ObjectHead:
    return ObjectHead(
        key=key,
        size=size,
        etag=etag,
        last_modified=STARTED,
        server_date=STARTED,
        version_id=version_id,
    )


def listed(ledger_id: int, uid: UUID, **changes: Any) -> LedgerInfo:
    info = LedgerInfo(
        ledger_id=ledger_id,
        entries=100,
        size=10_000,
        closed_at_ms=1_767_225_700_000,
        offload=OffloadContext(uid=uid, complete=True, properties={"bucket": "tiered"}),
    )
    return replace(info, **changes)


@dataclass(frozen=True, slots=True)
class Case:
    """One ledger and its topic, to be damaged."""

    topic: TopicFacts
    copy: CopyFacts

    def row(self, ledger_id: int | None = None) -> LedgerRow:
        """Its row, under another number where many cases share a batch."""
        [row] = ledger_rows(self.topic, [self.copy])
        return row if ledger_id is None else as_ledger(row, ledger_id)


def as_ledger(row: LedgerRow, ledger_id: int) -> LedgerRow:
    """Every id of the row moved by as much, so that what was in order stays so."""
    by = ledger_id - row.ledger_id
    return row._replace(
        ledger_id=ledger_id,
        certified_ledger_id=row.certified_ledger_id + by,
        previous_listed=row.previous_listed + by,
    )


def stored(record: R, said: str, at: datetime) -> Stored[R]:
    return Stored(key="", record=record, sha256=digest(said), stored_at=at, etag="")


SOUND = Case(
    topic=TopicFacts(
        ml_name=ML_NAME,
        ledgers=(listed(40, OTHER_UID), listed(LEDGER_ID, UID), listed(45, UUID(int=45))),
        published=frozenset({7, 40, LEDGER_ID}),  # 7 was trimmed with the front of the list
        bucket="tiered",
        store_now=STARTED + 10 * HOUR,
        skew_s=60.0,
        place_differs=(),
        cannot_read=(),
        skips_unreadable_ledgers=False,
        shadows=(),
        never_touched=None,
        left_alone=None,
    ),
    copy=CopyFacts(
        ledger_id=LEDGER_ID,
        context=listed(LEDGER_ID, UID).offload,
        node=LEDGER,
        under_replicated=False,
        attempt=stored(ATTEMPT, "attempt record", STARTED),
        certificate=stored(CERTIFICATE, "certificate record", STARTED + HOUR),
        certificate_faults=(),
        outcome=stored(OUTCOME, "outcome record", STARTED + 2 * HOUR),
        publication=stored(PUBLICATION, "publication record", STARTED + 3 * HOUR),
        quarantine=None,
        data=head("data", 12_000, '"d"', "v1"),
        data_reads=True,
        index=head("index", 300, '"i"'),
        index_reads=True,
        index_sha256=digest("index"),
        index_agrees=True,
        hold=None,
    ),
)
