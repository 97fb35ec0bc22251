"""Ledgers that wait for their release as a frame: one row each, all columns documented here.

Owns the names and meanings of the columns that the coverage and certificate suites, and all users'
suites, are written against; docs/quality.md is made of the comments. Nothing raises on any facts.
All columns have dtype object and hold Python values, because floats would round 64-bit integers.
Sizes are bytes, times milliseconds since 1970 UTC, ids of attempts text; None: not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tiering_assets.offload_format.digests import is_sha256, object_digest
from tiering_assets.quality.ledger_facts import CopyFacts, TopicFacts
from tiering_assets.records.models import Attempt, BlockFacts, Certificate, LedgerFacts, Outcome
from tiering_assets.records.stored import Stored
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.object_store.store import kept_version

if TYPE_CHECKING:
    import pandas as pd


class LedgerRow(NamedTuple):
    """One row of the frame; see the module for units."""

    ledger_id: int
    part: int  # always 0
    topic: str  # managed-ledger name, tenant/namespace/persistent/name

    # The topic's list of ledgers.
    times_listed: int  # how often the list names this ledger
    previous_listed: int  # id that stands before it in the list; -1 before the first
    listed_closed: bool  # whether the topic has closed it
    listed_entries: int | None
    listed_bytes: int | None
    unlisted_before: str  # published ids between the one before and this that the list lacks
    context_uid: str | None  # attempt that the list's offload context names
    context_complete: bool
    context_bucket: str | None
    ledgers_of_attempt: int  # how many ledgers of the list name that attempt

    # The ledger's node in BookKeeper.
    node_last_entry_id: int | None
    node_bytes: int | None
    node_identity: str | None  # digest type, creation time and czxid

    # The certificate.
    certified_ledger_id: int
    certified_uid: str
    certified_topic: str
    certified_bucket: str
    certified_last_entry_id: int
    certified_ledger_entries: int  # certified_last_entry_id + 1
    certified_ledger_bytes: int
    certified_identity: str
    certified_ledger: str  # last entry id, length and identity
    certified_entries: int
    certified_payload_bytes: int
    certified_data_key: str
    certified_data_bytes: int
    certified_data_etag: str
    certified_data_version: str  # "" where the store gave none
    certified_data_sha256: str
    certified_index_key: str
    certified_index_bytes: int
    certified_index_etag: str
    certified_index_version: str
    certified_index_sha256: str
    verified_ms: int | None
    certified_previous: str  # digest of the record that it follows
    suites_passed: int  # expectation suites that passed when it was written
    suites_failed: str  # names of those that did not

    # Its blocks.
    blocks: int
    blocks_bytes: int
    blocks_payload_bytes: int
    blocks_sha256: str  # digest of the data object by theirs
    digests_missing: int  # fields that should hold a SHA-256 and do not
    entries_missing: int  # entries of the ledger that no block covers
    entries_twice: int  # entries that a second block covers, too
    entries_beyond: int  # entries that blocks cover behind the ledger's last

    # The attempt's record.
    attempt_ledger: str | None  # as certified_ledger
    attempt_uid: str | None
    attempt_topic: str | None
    attempt_bucket: str | None
    attempt_data_key: str | None
    attempt_index_key: str | None
    attempt_data_bytes: int | None
    attempt_blocks: int | None
    attempt_sha256: str
    started_ms: int | None

    # The outcome and the publication.
    certificate_sha256: str
    outcome: str  # publish or abandon; "" where there is none
    outcome_uid: str | None
    outcome_previous: str | None
    outcome_sha256: str
    published_topic: str | None
    times_published: int  # how often the publication names this ledger
    published_certificate: str | None
    published_previous: str | None
    published_ms: int | None

    # HEAD of both objects.
    data_bytes: int | None
    data_etag: str | None
    data_version: str | None
    index_bytes: int | None
    index_etag: str | None
    index_version: str | None
    index_sha256: str
    storage_class: str  # of the data object; "" where the store gives none

    # Clocks. Spans are the longer of those by the records' own dates and by the store's: a clock
    # that was set is no proof of anything, two that agree are.
    verified_after_ms: int | None  # from the attempt to the certificate; see after_least_ms
    published_after_ms: int | None  # from the certificate to the publication; see after_least_ms
    after_least_ms: int  # how far below zero both may be: our clocks are set by two hosts
    store_now_ms: int  # the store's clock
    store_latest_ms: int  # the same, plus what ours may be off
    tool_version: str  # that wrote the certificate


@dataclass(frozen=True, slots=True)
class _Listed:
    times: int = 0
    previous: int = -1
    unlisted_before: str = ""
    info: LedgerInfo | None = None
    ledgers_of_attempt: int = 0


def ledger_rows(topic: TopicFacts, copies: Sequence[CopyFacts]) -> list[LedgerRow]:
    """The rows of some ledgers of a topic, in their order; none where there is no certificate."""
    listed = _list_of(topic)
    return [
        LedgerRow(
            ledger_id=copy.ledger_id,
            part=0,
            topic=topic.ml_name,
            **_in_list(listed.get(copy.ledger_id, _Listed())),
            **_in_bookkeeper(copy.node),
            **_certified(copy.certificate.record),
            **_certified_objects(copy.certificate.record),
            **_in_blocks(copy.certificate.record),
            **_attempted(copy.attempt),
            **_decided(copy.outcome, copy.certificate),
            **_published(copy),
            **_now_in_bucket(copy),
            **_spans(copy, copy.certificate),
            **_clocks(topic),
        )
        for copy in copies
        if copy.certificate is not None
    ]


def ledger_frame(rows: Sequence[LedgerRow]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(LedgerRow._fields), dtype=object)


def _list_of(topic: TopicFacts) -> dict[int, _Listed]:
    times = Counter(info.ledger_id for info in topic.ledgers)
    uids = Counter(info.offload.uid for info in topic.ledgers if info.offload is not None)
    lost = sorted(topic.published - times.keys())
    found: dict[int, _Listed] = {}
    previous = -1
    for info in topic.ledgers:
        ledger_id = info.ledger_id
        # What lies before the first one was trimmed, which is the topic's own affair.
        between = [i for i in lost if previous >= 0 and previous < i < ledger_id]
        found.setdefault(
            ledger_id,
            _Listed(
                times[ledger_id],
                previous,
                ", ".join(map(str, between)),
                info,
                0 if info.offload is None else uids[info.offload.uid],
            ),
        )
        previous = ledger_id
    return found


_Columns = dict[str, Any]  # names and types are LedgerRow's


def _in_list(listed: _Listed) -> _Columns:
    info = listed.info
    context = None if info is None else info.offload
    return {
        "times_listed": listed.times,
        "previous_listed": listed.previous,
        "listed_closed": info is not None and not info.is_open,
        "listed_entries": None if info is None else info.entries,
        "listed_bytes": None if info is None else info.size,
        "unlisted_before": listed.unlisted_before,
        "context_uid": None if context is None else str(context.uid),
        "context_complete": context is not None and context.complete,
        "context_bucket": None if context is None else context.properties.get("bucket"),
        "ledgers_of_attempt": listed.ledgers_of_attempt,
    }


def _in_bookkeeper(node: LedgerFacts | None) -> _Columns:
    return {
        "node_last_entry_id": None if node is None else node.last_entry_id,
        "node_bytes": None if node is None else node.length,
        "node_identity": None if node is None else _identity(node),
    }


def _certified(record: Certificate) -> _Columns:
    return {
        "certified_ledger_id": record.ledger.ledger_id,
        "certified_uid": str(record.uid),
        "certified_topic": record.ml_name,
        "certified_bucket": record.bucket,
        "certified_last_entry_id": record.ledger.last_entry_id,
        "certified_ledger_entries": record.ledger.last_entry_id + 1,
        "certified_ledger_bytes": record.ledger.length,
        "certified_identity": _identity(record.ledger),
        "certified_ledger": _whole(record.ledger),
        "certified_entries": record.entries,
        "certified_payload_bytes": record.payload_bytes,
        "certified_previous": record.previous,
        "suites_passed": sum(1 for suite in record.suites if suite.success),
        "suites_failed": ", ".join(suite.name for suite in record.suites if not suite.success),
        "tool_version": record.writer.tool_version,
    }


def _certified_objects(record: Certificate) -> _Columns:
    return {
        f"certified_{name}_{what}": value
        for name, facts in (("data", record.data), ("index", record.index))
        for what, value in (
            ("key", facts.key),
            ("bytes", facts.size),
            ("etag", facts.etag),
            ("version", kept_version(facts.version_id) or ""),
            ("sha256", facts.sha256),
        )
    }


def _in_blocks(record: Certificate) -> _Columns:
    missing, twice, beyond = _cover(record.blocks, record.ledger.last_entry_id)
    return {
        "blocks": len(record.blocks),
        "blocks_bytes": sum(block.block_length for block in record.blocks),
        "blocks_payload_bytes": sum(block.payload_bytes for block in record.blocks),
        "blocks_sha256": _digest(record),
        "digests_missing": _digests_missing(record),
        "entries_missing": missing,
        "entries_twice": twice,
        "entries_beyond": beyond,
    }


def _attempted(stored: Stored[Attempt] | None) -> _Columns:
    record = None if stored is None else stored.record
    return {
        "attempt_ledger": None if record is None else _whole(record.ledger),
        "attempt_uid": None if record is None else str(record.uid),
        "attempt_topic": None if record is None else record.ml_name,
        "attempt_bucket": None if record is None else record.bucket,
        "attempt_data_key": None if record is None else record.data_key,
        "attempt_index_key": None if record is None else record.index_key,
        "attempt_data_bytes": None if record is None else record.object_bytes,
        "attempt_blocks": None if record is None else record.blocks,
        "attempt_sha256": "" if stored is None else stored.sha256,
        "started_ms": None if record is None else _ms(record.started_at),
    }


def _decided(stored: Stored[Outcome] | None, certificate: Stored[Certificate]) -> _Columns:
    record = None if stored is None else stored.record
    return {
        "certificate_sha256": certificate.sha256,
        "verified_ms": _ms(certificate.record.verified_at),
        "outcome": "" if record is None else record.outcome,
        "outcome_uid": None if record is None else str(record.uid),
        "outcome_previous": None if record is None else record.previous,
        "outcome_sha256": "" if stored is None else stored.sha256,
    }


def _published(copy: CopyFacts) -> _Columns:
    record = None if copy.publication is None else copy.publication.record
    certified_first = sorted(copy.published, key=lambda entry: entry != copy.certified_entry)
    first = next(iter(certified_first), None)
    return {
        "published_topic": None if record is None else record.ml_name,
        "times_published": len(copy.published),
        "published_certificate": None if first is None else first.certificate_sha256,
        "published_previous": None if first is None else first.previous,
        "published_ms": None if record is None else _ms(record.confirmed_at),
    }


def _now_in_bucket(copy: CopyFacts) -> _Columns:
    heads = {
        f"{name}_{what}": value
        for name, head in (("data", copy.data), ("index", copy.index))
        for what, value in (
            ("bytes", None if head is None else head.size),
            ("etag", None if head is None else head.etag),
            ("version", None if head is None else kept_version(head.version_id) or ""),
        )
    }
    return {
        **heads,
        "index_sha256": copy.index_sha256,
        "storage_class": "" if copy.data is None else copy.data.storage_class or "",
    }


def _spans(copy: CopyFacts, certificate: Stored[Certificate]) -> _Columns:
    attempt, publication = copy.attempt, copy.publication
    verified = (certificate.record.verified_at, certificate.stored_at)
    return {
        "verified_after_ms": None
        if attempt is None
        else _longest((attempt.record.started_at, attempt.stored_at), verified),
        "published_after_ms": None
        if publication is None
        else _longest(verified, (publication.record.confirmed_at, publication.stored_at)),
    }


def _clocks(topic: TopicFacts) -> _Columns:
    skew_ms, now = round(topic.skew_s * 1000), _ms(topic.store_now)
    return {
        # Each host may be off the store's clock in its own direction.
        "after_least_ms": -2 * skew_ms,
        "store_now_ms": now,
        "store_latest_ms": now + skew_ms,
    }


def _cover(blocks: Sequence[BlockFacts], last_entry_id: int) -> tuple[int, int, int]:
    """Entries from 0 to the last that no block covers, that two cover, and covered ones behind."""
    missing = twice = 0
    expected = 0
    for block in sorted(blocks, key=lambda b: (b.first_entry_id, b.last_entry_id)):
        missing += max(0, block.first_entry_id - expected)
        twice += max(0, min(expected, block.last_entry_id + 1) - block.first_entry_id)
        expected = max(expected, block.last_entry_id + 1)
    missing += max(0, last_entry_id + 1 - expected)
    return missing, twice, max(0, expected - last_entry_id - 1)


def _identity(facts: LedgerFacts) -> str:
    return f"{facts.digest_type} ctime {facts.ctime_ms} czxid {facts.czxid}"


def _whole(facts: LedgerFacts) -> str:
    return f"last entry {facts.last_entry_id} length {facts.length} {_identity(facts)}"


def _digest(record: Certificate) -> str:
    try:
        return object_digest([block.sha256 for block in record.blocks])
    except ValueError:  # not hex
        return ""


def _digests_missing(record: Certificate) -> int:
    named = [digest for b in record.blocks for digest in (b.sha256, b.entries_sha256)]
    named += [record.data.sha256, record.index.sha256, record.previous]
    return sum(1 for one in named if not is_sha256(one))


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _longest(before: tuple[datetime, datetime], after: tuple[datetime, datetime]) -> int:
    """Milliseconds from one event to another, by the clock of two that says most."""
    return max(_ms(end) - _ms(start) for start, end in zip(before, after, strict=True))
