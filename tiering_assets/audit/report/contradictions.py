"""Do the facts of a report contradict themselves? Pure.

Owns: what follows from other facts is worked out again, so that whoever edits one and seals it anew
has to edit them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tiering_assets.audit.record_audit import parse_place
from tiering_assets.audit.report.facts import (
    AttemptFacts,
    AuditFacts,
    LedgerVerdict,
    pairs_of,
    record_key,
    verdict_of,
)
from tiering_assets.records.models import Publication

_READ_WHOLE: Final = frozenset({LedgerVerdict.EQUAL, LedgerVerdict.GONE})


def contradictions(facts: AuditFacts) -> Iterator[str]:
    asked = facts.asked
    if asked.everything == bool(asked.ledger_ids):
        yield "the selection is both everything and single ledgers, or neither"
    pairs = [one.pair for one in facts.ledgers]
    if sorted({*pairs}) != pairs:
        yield "its attempts are out of order, or one is there twice"
    wrong = pairs_of(facts.findings)
    for one in facts.ledgers:
        where = f"ledger {one.ledger_id}, attempt {one.uid}"
        if not asked.everything and one.ledger_id not in asked.ledger_ids:
            yield f"{where}: nobody asked for it"
        yield from (f"{where}: {said}" for said in _of_attempt(facts, one, wrong=one.pair in wrong))
    for published in facts.publications:
        place = parse_place(published.key)
        if place is None or place.record_type is not Publication:
            yield "a publication's key is none"


def _of_attempt(facts: AuditFacts, one: AttemptFacts, *, wrong: bool) -> Iterator[str]:
    expected = verdict_of(one.objects, findings=wrong)
    if one.verdict is not expected:
        yield f"verdict {one.verdict}, and the other facts say {expected}"
    if one.signed_by is not None and one.signed_by not in facts.public_keys:
        yield "signed by a key that was not accepted"
    there = sum(found.size or 0 for found in one.objects)
    if not facts.deep and one.bytes_read:
        yield "bytes were read, and the audit was not deep"
    if facts.deep and expected in _READ_WHOLE and one.bytes_read != there:
        yield f"{one.bytes_read} bytes read of objects that have {there}"
    if not all(found.key for found in one.objects):
        yield "an object has no key"
    for name in one.records:
        place = parse_place(record_key(name, one.ledger_id, one.uid))
        if place is None or place.about.uid != one.uid:
            yield "a record of no kind that an audit reads"
