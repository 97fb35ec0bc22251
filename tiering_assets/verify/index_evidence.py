"""The index object as it lies in the store now, for the release gate: does it agree, does it pass?"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from resources.errors import FormatError, ObjectStoreError
from resources.metastore.ledger_info import LedgerInfo
from resources.object_store.store import ObjectHead, StoredObject
from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.decoder import decode_index
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.records.models import Certificate
from tiering_assets.verify.verify import read_headers


@dataclass(frozen=True, slots=True)
class IndexNow:
    """`facts` go to the expectation suite; None where there is nothing to judge."""

    facts: IndexFacts | None
    agrees: bool


def look_at_index(
    stack: Stack,
    certificate: Certificate | None,
    data: ObjectHead | None,
    index: StoredObject | None,
    listed: LedgerInfo | None,
) -> IndexNow:
    """Decode it, compare it with the certificate, and read the block headers back."""
    if certificate is None or data is None or index is None:
        return IndexNow(None, agrees=False)
    try:
        facts = index_facts(stack, certificate, data, index, listed)
        found = decode_index(index.body)
    except (FormatError, ObjectStoreError):
        return IndexNow(None, agrees=False)
    table = [(e.first_entry_id, e.part_number, e.offset) for e in found.entries]
    agrees = (
        sha256(index.body).hexdigest() == certificate.index.sha256
        and found.data_object_length == certificate.data.size
        and table == [(b.first_entry_id, b.part_number, b.offset) for b in certificate.blocks]
    )
    return IndexNow(facts, agrees)


def index_facts(
    stack: Stack,
    certificate: Certificate,
    data: ObjectHead,
    index: StoredObject,
    listed: LedgerInfo | None,
) -> IndexFacts:
    """What the expectation suite judges of a certified copy; reads its block headers."""
    return IndexFacts(
        ledger_id=certificate.ledger.ledger_id,
        index=index.body,
        index_size=index.head.size,
        data_size=data.size,
        headers=read_headers(stack, certificate),
        last_entry_id=certificate.ledger.last_entry_id,
        ledger_length=certificate.ledger.length,
        payload_bytes=certificate.payload_bytes,
        topic_entries=None if listed is None else listed.entries,
        topic_bytes=None if listed is None else listed.size,
    )
