"""Rows of `events` and `blocks`: what a page names, and what a record says of each block."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tiering_assets.catalogue.facts.known_ledger import BY_BROKER, BY_US
from tiering_assets.catalogue.facts.read_pages import FoundRecord, ReadPages, written_on
from tiering_assets.catalogue.facts.record_facts import folder_of, ledger_and_attempt
from tiering_assets.ground.named_records import ledgers_of
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage, NamedRecord
from tiering_assets.records.models import BlockFacts, BrokerCopy, Certificate
from tiering_assets.records.stored import Stored

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def event_rows(batch: ReadPages) -> Iterator[dict[str, Any]]:
    """What happened to records, one row for each name on a page.

    `what` is written, gone, damaged (other bytes than the page's) or missing. A page that nobody
    can read is a row as well: what it named is not known.
    """
    for page in batch.pages:
        if page.stored is None:
            yield {
                "page": page.number,
                "what": "page_damaged",
                "kind": "day-book",
                "key": keys.page(page.number),
                "why": page.why,
            }
            continue
        for named in page.stored.record.records:
            yield _event(page.stored.record, named, batch.found.get(named.key))


def _event(page: DayBookPage, named: NamedRecord, found: FoundRecord | None) -> dict[str, Any]:
    what, why = "written", None
    if page.phase == "gone":
        what = "gone"
    elif found is not None and found.stored is None:
        what, why = "missing" if found.missing else "damaged", found.why
    ledger_id, uid = ledger_and_attempt(named.key)
    return {
        "page": page.number,
        "at": page.written_at,
        "what": what,
        "kind": folder_of(named.key),
        "ledger_id": ledger_id,
        "uid": uid,
        "run_id": page.writer.run_id,
        "command": page.command,
        "key": named.key,
        "sha256": named.sha256,
        "why": why,
    }


def block_rows(batch: ReadPages) -> Iterator[dict[str, Any]]:
    """One row for each block of the certificates and brokers' copies that pages name."""
    for page in batch.readable:
        for named in written_on(page):
            found = batch.found.get(named.key)
            if (
                found
                and found.stored
                and isinstance(found.stored.record, (Certificate, BrokerCopy))
            ):
                yield from rows_of_blocks(found.stored, page=page.number)


def rows_of_blocks(
    stored: Stored[Certificate] | Stored[BrokerCopy], *, page: int
) -> Iterator[dict[str, Any]]:
    """The blocks of one record that this page names."""
    record = stored.record
    [ledger_id] = ledgers_of(record)
    by_us = isinstance(record, Certificate)
    for block in record.blocks:
        yield {
            "topic": record.ml_name,
            "ledger_id": ledger_id,
            "part": block.part_number,
            "first_entry_id": block.first_entry_id,
            "last_entry_id": block.last_entry_id,
            **_published(block),
            "bucket": record.bucket,
            "data_key": record.data.key,
            "version_id": record.data.version_id,
            "offset": block.offset,
            "length": block.block_length,
            "payload_bytes": block.payload_bytes,
            "sha256": block.sha256,
            "uid": str(record.uid),
            "certificate_sha256": stored.sha256 if by_us else None,
            "run_id": record.writer.run_id,
            "written_by": BY_US if by_us else BY_BROKER,
            "page": page,
        }


def _published(block: BlockFacts) -> dict[str, Any]:
    return {
        "publish_min": _time(block.publish_min_ms),
        "publish_max": _time(block.publish_max_ms),
        "messages": block.messages,
    }


def _time(ms: int | None) -> datetime | None:
    """None also for what no calendar has."""
    try:
        return None if ms is None else _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None
