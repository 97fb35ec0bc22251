"""The record of a broker's own copy, by the first deep look that read all of it and found nothing.

Owns: it is created once and never replaced, and only where the attempt is none of ours: ours get
certificates. A look that went on where a budget had ended another has read a part only, and writes
none; nor does one under which the object changed. A scrub goes on whatever becomes of it.
"""

from __future__ import annotations

from hashlib import sha256

from tiering_assets.ground.effects import reach
from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.digests import object_digest
from tiering_assets.records import keys
from tiering_assets.records.models import BrokerCopy, ObjectFacts
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.object_store.store import ObjectHead, kept_version
from tiering_assets.scrub.check import Checked
from tiering_assets.scrub.plan import Candidate


def record_copy(stack: Stack, checked: Checked) -> None:
    """Write the record, if this look read a broker's copy as a whole and there is none yet."""
    candidate, found = checked.look.candidate, _found(stack, checked)
    if found is None:
        return
    try:
        written = _record(stack, candidate, found)
    except (TierkeeperError, ValueError) as error:  # the latter of a record that is too large
        _tell(stack, candidate, f"its copy is not recorded: {error}")
        return
    if written is not None and _same(written) != _same(found):
        _tell(stack, candidate, f"its copy is another than when it was recorded: {written.data}")


def _found(stack: Stack, checked: Checked) -> BrokerCopy | None:
    """What the look says, None where it does not say all of it."""
    candidate, sight = checked.look.candidate, checked.sight
    if checked.findings or len(checked.read) != checked.blocks:
        return None
    if sight is None or sight.data is None or sight.index is None:
        return None  # not without findings
    if sight.certificate is not None:
        return None
    return BrokerCopy(
        ledger_id=candidate.ledger_id,
        uid=candidate.uid,
        ml_name=candidate.ml_name,
        bucket=stack.objects.bucket,
        entries=checked.entries,
        payload_bytes=checked.payload_bytes,
        data=_facts(
            sight.data_key, sight.data, object_digest(block.sha256 for block in checked.read)
        ),
        index=_facts(sight.index_key, sight.index.head, sha256(sight.index.body).hexdigest()),
        blocks=checked.read,
        block_digest=sight.block_digest,
        bookies_compared=checked.in_bookkeeper,
        read_at=stack.now(),
        writer=stack.writer,
    )


def _facts(key: str, head: ObjectHead, digest: str) -> ObjectFacts:
    return ObjectFacts(
        key=key, size=head.size, etag=head.etag, sha256=digest, version_id=head.version_id
    )


def _record(stack: Stack, candidate: Candidate, found: BrokerCopy) -> BrokerCopy | None:
    """What lies there now; None where nothing may. One request, or five to write it."""
    ledger_id, uid = candidate.ledger_id, candidate.uid
    key = keys.broker_copy(ledger_id, uid)
    there = stack.book.read(BrokerCopy, key)
    if there is not None:
        return there.record
    if stack.book.exists(keys.attempt(ledger_id, uid)):
        return None  # of ours, and certified or not by whoever verifies it
    head = stack.objects.head(found.data.key)
    if head is None or _object(head) != _object(found.data):
        return None  # it changed while it was read: the next deep look sees which it is
    there, _fresh = stack.book.create_or_read(key, found)
    reach("scrub.copy_recorded", ledger_id, topic=candidate.ml_name, attempt=uid)
    return there.record


def _object(facts: ObjectHead | ObjectFacts) -> tuple[object, ...]:
    return facts.size, facts.etag, kept_version(facts.version_id)


def _same(record: BrokerCopy) -> tuple[object, ...]:
    return record.data, record.index, record.blocks


def _tell(stack: Stack, candidate: Candidate, what: str) -> None:
    stack.tell(
        f"ledger {candidate.ledger_id}, attempt {candidate.uid}: {what}",
        candidate.ledger_id,
        attempt=candidate.uid,
    )
