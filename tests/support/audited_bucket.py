"""A small ledger of two blocks with its whole chain of records, put into any object store.

The objects are written down without the encoder (sim_ledger.py), the records by the product's own
record book, so that their bytes are those that a run would write.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from struct import pack
from typing import Any
from uuid import UUID, uuid4

from tests.support.fault_lab import framed
from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.ground.day_book import Scribe
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.offload_format.digests import DigestKind
from tiering_assets.offload_format.message_facts import MessageCount, MessageFacts
from tiering_assets.records import keys, models
from tiering_assets.records.writer import Writer
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.ledger_metadata import (
    encode_ledger_metadata,
    index_ledger_metadata,
)
from tiering_assets.resources.object_store.store import ObjectStore

WRITER = Writer(tool_version="0.1.0", host="h:1", run_id="run-1")
ML_NAME = "public/default/persistent/audited"


def day_book_of(objects: ObjectStore, instance: str = "inst") -> RecordBook:
    """A book whose run names in the day book what it writes; `close_page` writes a close page."""
    scribe = Scribe(
        writer=WRITER,
        command="test",
        now=objects.server_time,
        tell=lambda _line: None,
        sleep=lambda _s: None,
        turn=nullcontext,
    )
    return RecordBook(objects, instance, scribe)


@dataclass
class Chain:
    """One attempt's objects and records; `stored` by kind, as the book returned them."""

    ledger_id: int
    uid: UUID
    data: bytes
    index: bytes
    stored: dict[type, Any] = field(default_factory=dict)

    @property
    def certificate(self) -> models.Certificate:
        record: models.Certificate = self.stored[models.Certificate].record
        return record


# Told by the first block alone: a certificate may have both sorts.
_FACTS = {1: MessageFacts(publish_min_ms=1_700_000_000_000, publish_max_ms=1_700_000_000_001)}


def _counted(payloads: list[bytes]) -> MessageFacts:
    """As a copy tells it."""
    found = MessageCount()
    for one in payloads:
        found.add(memoryview(one))
    return found.facts()


def digested(kind: DigestKind, first: int, payloads: list[bytes], block: bytes) -> bytes:
    """What the entries' digest of a block is made of, by its kind."""
    if kind == "frames":
        return block[: 128 + sum(12 + len(payload) for payload in payloads)]
    return b"".join(pack(">qi", i, len(p)) + p for i, p in enumerate(payloads, start=first))


def put_chain(
    objects: ObjectStore,
    book: RecordBook,
    ledger_id: int,
    *,
    payloads: list[bytes] | None = None,
    ml_name: str = ML_NAME,
    outcome: str = "publish",
    czxid: int = 77,
    block_digest: DigestKind = "frames",
    block_bytes: int = 400,
    counted: bool = False,
) -> Chain:
    """Objects and every record up to the release; with `abandon`, up to the outcome.

    Blocks have the messages and times of their entries where these are `counted`.
    """
    payloads = payloads or [b"%d:" % i + bytes(range(40 + i)) for i in range(8)]
    plan = plan_layout_from_sizes([len(p) for p in payloads], block_bytes_max=block_bytes)
    length, last = sum(map(len, payloads)), len(payloads) - 1
    uid, at = uuid4(), objects.server_time() - timedelta(seconds=2)
    blocks, bodies = [], []
    for block in plan:
        own = payloads[block.first_entry_id : block.last_entry_id + 1]
        body = framed(block.first_entry_id, own, block.block_length)
        bodies.append(body)
        facts_of = _counted(own) if counted else _FACTS.get(block.part_number, MessageFacts())
        blocks.append(
            models.BlockFacts(
                part_number=block.part_number,
                first_entry_id=block.first_entry_id,
                last_entry_id=block.last_entry_id,
                offset=block.offset,
                block_length=block.block_length,
                payload_bytes=block.payload_bytes,
                sha256=sha256(body).hexdigest(),
                entries_sha256=sha256(
                    digested(block_digest, block.first_entry_id, own, body)
                ).hexdigest(),
                messages=len(own) if facts_of is _FACTS.get(1) else facts_of.messages,
                publish_min_ms=facts_of.publish_min_ms,
                publish_max_ms=facts_of.publish_max_ms,
            )
        )
    data = b"".join(bodies)
    metadata = LedgerMetadata(
        ledger_id=ledger_id,
        state=BookKeeperState.CLOSED,
        last_entry_id=last,
        length=length,
        ensemble_size=1,
        write_quorum=1,
        ack_quorum=1,
        digest_type=DigestType.CRC32C,
        password=None,
        segments=(EnsembleFragment(0, ("bk0",)),),
    )
    inner = index_ledger_metadata(
        encode_ledger_metadata(metadata), ledger_id=ledger_id, ctime_ms=1_700_000_000_000
    )
    rows = b"".join(pack(">qiq", b.first_entry_id, b.part_number, b.offset) for b in plan)
    size = 32 + len(inner) + len(rows)
    index = pack(">IIqqII", 0xDE47DE47, size, len(data), 128, len(plan), len(inner)) + inner + rows
    key = f"{uid}-ledger-{ledger_id}"
    heads = []
    for name, body in ((key, data), (f"{key}-index", index)):
        objects.put(name, body, metadata={"s3managedledgeroffloaderformatversion": "1"})
        head = objects.head(name)
        assert head is not None
        heads.append(head)
    facts = models.LedgerFacts(
        ledger_id=ledger_id,
        last_entry_id=last,
        length=length,
        digest_type="CRC32C",
        ctime_ms=1_700_000_000_000,
        czxid=5,
    )
    chain = Chain(ledger_id, uid, data, index)

    def write(name: str, record: models.Record) -> Any:
        stored = book.create(name, record)
        chain.stored[type(record)] = stored
        return stored

    attempt = write(
        keys.attempt(ledger_id, uid),
        models.Attempt(
            ledger=facts,
            uid=uid,
            ml_name=ml_name,
            ml_czxid=czxid,
            bucket=objects.bucket,
            data_key=key,
            index_key=f"{key}-index",
            block_bytes=block_bytes,
            blocks=len(plan),
            object_bytes=len(data),
            started_at=at,
            writer=WRITER,
        ),
    )
    whole = sha256(b"".join(bytes.fromhex(b.sha256) for b in blocks)).hexdigest()
    digests = (whole, sha256(index).hexdigest())
    both = [
        models.ObjectFacts(
            key=h.key, size=h.size, etag=h.etag, sha256=digest, version_id=h.version_id
        )
        for h, digest in zip(heads, digests, strict=True)
    ]
    certificate = write(
        keys.certificate(ledger_id, uid),
        models.Certificate(
            block_digest=block_digest,
            ledger=facts,
            uid=uid,
            ml_name=ml_name,
            bucket=objects.bucket,
            entries=last + 1,
            payload_bytes=length,
            data=both[0],
            index=both[1],
            blocks=tuple(blocks),
            suites=(),
            verified_at=at,
            seconds=0.5,
            writer=WRITER,
            previous=attempt.sha256,
        ),
    )
    decided = write(
        keys.outcome(ledger_id, uid),
        models.Outcome(
            ledger_id=ledger_id,
            uid=uid,
            outcome=outcome,  # type: ignore[arg-type]
            reason="test",
            decided_at=at,
            writer=WRITER,
            previous=certificate.sha256,
        ),
    )
    if outcome == "publish":
        _publish_and_release(write, book, chain, decided.sha256, facts, ml_name, czxid, at)
    return chain


def _publish_and_release(
    write: Any,
    book: RecordBook,
    chain: Chain,
    decided: str,
    facts: models.LedgerFacts,
    ml_name: str,
    czxid: int,
    at: datetime,
) -> None:
    ledger_id, uid = chain.ledger_id, chain.uid
    certificate = chain.stored[models.Certificate]
    number = len(book.keys(keys.publications_of(ml_name))) + 1
    publication = write(
        keys.publication(ml_name, number),
        models.Publication(
            ml_name=ml_name,
            ledgers=(
                models.PublishedLedger(
                    ledger_id=ledger_id,
                    uid=uid,
                    certificate_sha256=certificate.sha256,
                    previous=decided,
                ),
            ),
            node_version=3,
            node_czxid=czxid,
            confirmed_by="unload",
            confirmed_at=at,
            writer=WRITER,
        ),
    )
    intent = write(
        keys.release_intent(ledger_id, uid),
        models.ReleaseIntent(
            ledger=facts,
            uid=uid,
            ml_name=ml_name,
            certificate_sha256=certificate.sha256,
            deletion_lag_s=0.5,
            published_at=publication.record.confirmed_at,
            ml_version=4,
            ledger_metadata_hex="00",
            intended_at=at + timedelta(seconds=1),
            writer=WRITER,
            previous=decided,
        ),
    )
    write(
        keys.release(ledger_id, uid),
        models.Release(
            ledger_id=ledger_id,
            uid=uid,
            ml_name=ml_name,
            ml_version=4,
            bytes_released=facts.length,
            released_at=at + timedelta(seconds=2),
            writer=WRITER,
            previous=intent.sha256,
        ),
    )
