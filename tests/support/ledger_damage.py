"""For each check of the coverage and certificate suites, a damage that no other should report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.support.ledger_facts import HOUR, LEDGER_ID, OTHER_UID, STARTED, UID, Case, listed
from tiering_assets.quality.ledger_facts import CopyFacts
from tiering_assets.records.models import BlockFacts, PublishedLedger, SuiteResult
from tiering_assets.records.stored import Stored

Damage = Callable[[Case], Case]
ML_OTHER = "public/default/persistent/invoices"


def in_copy(change: Callable[[CopyFacts], dict[str, Any]]) -> Damage:
    return lambda case: replace(case, copy=replace(case.copy, **change(case.copy)))


def both(first: Damage, second: Damage) -> Damage:
    return lambda case: second(first(case))


def changed(found: Any, **changes: Any) -> Any:
    """Other values in a record, stored or not, or in an object's HEAD."""
    if isinstance(found, Stored):
        return replace(found, record=replace(found.record, **changes))
    return replace(found, **changes)


def in_record(name: str, **changes: Any) -> Damage:
    return in_copy(lambda copy: {name: changed(getattr(copy, name), **changes)})


def in_part(name: str, part: str, **changes: Any) -> Damage:
    """The same one level deeper."""

    def change(copy: CopyFacts) -> dict[str, Any]:
        found = getattr(copy, name)
        return {name: changed(found, **{part: replace(getattr(found.record, part), **changes)})}

    return in_copy(change)


def in_store(name: str, **changes: Any) -> Damage:
    """What the store says of a record, or its digest."""
    return in_copy(lambda copy: {name: replace(getattr(copy, name), **changes)})


def in_block(at: int, **changes: Any) -> Damage:
    def change(copy: CopyFacts) -> dict[str, Any]:
        assert copy.certificate is not None
        blocks: list[BlockFacts] = list(copy.certificate.record.blocks)
        blocks[at] = replace(blocks[at], **changes)
        return {"certificate": changed(copy.certificate, blocks=tuple(blocks))}

    return in_copy(change)


def in_list(**changes: Any) -> Damage:
    """The topic lists the ledger with other values."""

    def damage(case: Case) -> Case:
        ledgers = tuple(
            replace(info, **changes) if info.ledger_id == LEDGER_ID else info
            for info in case.topic.ledgers
        )
        return replace(case, topic=replace(case.topic, ledgers=ledgers))

    return damage


def in_context(**changes: Any) -> Damage:
    def damage(case: Case) -> Case:
        info = next(i for i in case.topic.ledgers if i.ledger_id == LEDGER_ID)
        assert info.offload is not None
        return in_list(offload=replace(info.offload, **changes))(case)

    return damage


def lists(*ledgers: Any) -> Damage:
    return lambda case: replace(case, topic=replace(case.topic, ledgers=ledgers))


def published_too(ledger_id: int) -> Damage:
    return lambda case: replace(
        case, topic=replace(case.topic, published=case.topic.published | {ledger_id})
    )


def in_publication(**changes: Any) -> Damage:
    def change(copy: CopyFacts) -> dict[str, Any]:
        assert copy.publication is not None
        ledgers = tuple(
            replace(p, **changes) if p.ledger_id == LEDGER_ID else p
            for p in copy.publication.record.ledgers
        )
        return {"publication": changed(copy.publication, ledgers=ledgers)}

    return in_copy(change)


def published_again(copy: CopyFacts) -> dict[str, Any]:
    assert copy.publication is not None
    again = PublishedLedger(
        ledger_id=LEDGER_ID, uid=OTHER_UID, certificate_sha256="0" * 64, previous="0" * 64
    )
    ledgers = (again, *copy.publication.record.ledgers)
    return {"publication": changed(copy.publication, ledgers=ledgers)}


SELF, BEFORE = listed(LEDGER_ID, UID), listed(40, OTHER_UID)
FAILED = SuiteResult(name="index_objects/0", digest="", success=False, evaluated=1, successful=0)

# fmt: off
DAMAGES: list[tuple[str, Damage]] = [
    ("listed_once", lists(BEFORE, SELF, listed(45, UUID(int=45)), replace(SELF, offload=None))),
    ("list_ascends", lists(listed(45, UUID(int=45)), SELF, BEFORE)),
    ("listed_closed", in_list(closed_at_ms=None)),
    ("no_ledger_lost", published_too(41)),
    ("listed_entries", in_list(entries=101)),
    ("listed_bytes", in_list(size=10_001)),
    ("context_attempt", in_context(uid=UUID(int=46))),
    ("context_complete", in_context(complete=False)),
    ("context_bucket", in_context(properties={"bucket": "elsewhere"})),
    ("context_bucket", in_context(properties={})),
    ("attempt_not_shared", lists(listed(40, UID), SELF)),
    ("published_once", in_copy(published_again)),
    ("node_last_entry_id", in_record("node", last_entry_id=100)),
    ("node_length", in_record("node", length=10_001)),
    ("node_identity", in_record("node", czxid=78)),
    ("node_identity", in_record("node", ctime_ms=1)),
    ("node_identity", in_record("node", digest_type="CRC32")),
    ("no_entry_missing", in_block(1, first_entry_id=51)),
    ("no_entry_missing", in_block(0, first_entry_id=1)),
    ("no_entry_missing", in_block(1, last_entry_id=98)),
    ("no_entry_twice", in_block(1, first_entry_id=49)),
    ("no_entry_twice", in_block(1, first_entry_id=0)),
    ("no_entry_beyond", in_block(1, last_entry_id=100)),
    ("certified_ledger_id", in_part("certificate", "ledger", ledger_id=43)),
    ("certified_topic", in_record("certificate", ml_name=ML_OTHER)),
    ("certified_entries", in_record("certificate", entries=101)),
    ("certified_payload", both(in_record("certificate", payload_bytes=10_001), in_block(0, payload_bytes=5001))),
    ("blocks_payload", in_record("certificate", payload_bytes=9_999)),
    ("blocks_payload", in_block(0, payload_bytes=4999)),
    ("blocks_length", in_block(1, block_length=6001)),
    ("digests_present", in_block(0, entries_sha256="")),
    ("digests_present", in_block(1, entries_sha256="x" * 64)),
    ("data_digest", in_part("certificate", "data", sha256="0" * 64)),
    ("suites_passed", in_record("certificate", suites=(FAILED,))),
    ("attempt_ledger", in_part("attempt", "ledger", ctime_ms=1)),
    ("attempt_ledger", in_part("attempt", "ledger", last_entry_id=98)),
    ("attempt_uid", in_record("attempt", uid=OTHER_UID)),
    ("attempt_topic", in_record("attempt", ml_name=ML_OTHER)),
    ("attempt_bucket", in_record("attempt", bucket="elsewhere")),
    ("attempt_data_key", in_record("attempt", data_key="other")),
    ("attempt_index_key", in_record("attempt", index_key="other")),
    ("attempt_size", in_record("attempt", object_bytes=11_999)),
    ("attempt_blocks", in_record("attempt", blocks=3)),
    ("chain_attempt", in_store("attempt", sha256="0" * 64)),
    ("chain_certificate", in_record("outcome", previous="0" * 64)),
    ("chain_outcome", in_publication(previous="0" * 64)),
    ("chain_publication", in_publication(certificate_sha256="0" * 64)),
    ("outcome", in_record("outcome", outcome="abandon")),
    ("outcome_uid", in_record("outcome", uid=OTHER_UID)),
    ("published_topic", in_record("publication", ml_name=ML_OTHER)),
    ("data_size", in_record("data", size=11_999)),
    ("data_etag", in_record("data", etag='"x"')),
    ("data_version", in_record("data", version_id="v2")),
    ("data_version", in_record("data", version_id=None)),
    ("certified_index_size", in_record("index", size=301)),
    ("index_etag", in_record("index", etag='"x"')),
    ("index_version", in_record("index", version_id="v1")),
    ("index_digest", in_copy(lambda _: {"index_sha256": "0" * 64})),
    ("verified_after_start", both(in_store("attempt", stored_at=STARTED + 2 * HOUR), in_record("attempt", started_at=STARTED + 2 * HOUR))),
    ("published_after_verified", both(in_store("publication", stored_at=STARTED), in_record("publication", confirmed_at=STARTED))),
    ("published_in_past", in_record("publication", confirmed_at=STARTED + 10 * HOUR + timedelta(seconds=61))),
]
# fmt: on
