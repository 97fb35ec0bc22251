"""From the records and objects of one attempt to what is told of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tiering_assets.audit.audit_sights import ObjectSeen, PublicationSeen, RecordSeen
from tiering_assets.audit.chain_audit import AttemptHistory
from tiering_assets.audit.record_audit import ReadRecord
from tiering_assets.audit.topic_figures import UNKNOWN
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name
from tiering_assets.resources.object_store.store import ObjectHead


def topic_of(ml_name: object) -> str:
    """The topic that a record names, as people call it; UNKNOWN for what is no topic's name."""
    if not isinstance(ml_name, str):
        return UNKNOWN
    try:
        return str(parse_managed_ledger_name(ml_name))
    except FormatError:
        return ml_name if "/" in ml_name else UNKNOWN


def records_seen(history: AttemptHistory) -> tuple[RecordSeen, ...]:
    """The attempt's own records, by key."""
    found = [
        RecordSeen(key=one.key, sha256=one.sha256, stored_at=one.stored_at) for one in _own(history)
    ]
    found += [RecordSeen(key=key, sha256=None, stored_at=None) for key in history.unreadable]
    return tuple(sorted(found, key=lambda one: one.key))


def topic_seen(history: AttemptHistory) -> str:
    """By the first record of the chain that names one."""
    named = [getattr(one.record, "ml_name", None) for one in _own(history)]
    named += [read.record.ml_name for read, _entry in history.published]
    return next((topic for name in named if (topic := topic_of(name)) != UNKNOWN), UNKNOWN)


def object_seen(key: str, head: ObjectHead | None) -> ObjectSeen:
    if head is None:
        return ObjectSeen(key=key)
    return ObjectSeen(key=key, size=head.size, etag=head.etag, version_id=head.version_id)


def publication_seen(read: ReadRecord) -> PublicationSeen:
    topic = topic_of(read.record.ml_name)
    return PublicationSeen(key=read.key, sha256=read.sha256, topic=topic, stored_at=read.stored_at)


def signer_of(body: Mapping[str, object]) -> str | None:
    """The key that a record says it is signed by."""
    signature = body.get("signature")
    key_id = signature.get("key_id") if isinstance(signature, Mapping) else None
    return key_id if isinstance(key_id, str) else None


def _own(history: AttemptHistory) -> list[ReadRecord]:
    found = (
        history.attempt,
        history.certificate,
        history.quarantine,
        history.outcome,
        history.intent,
        history.release,
        history.removal,
    )
    return [one for one in found if one is not None]
