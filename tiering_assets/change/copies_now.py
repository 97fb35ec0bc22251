"""Certified copies as they lie in the bucket now: still the versions that were read back and
proven?

Owns: HEADs of both objects run in parallel, and what they say is dated. A copy that is gone, hidden
by a delete marker, replaced, about to expire or in a class that answers no read is no copy any
more. What could not be looked at within half of the evidence's age is left for the next look, so
that a slow store gets on by parts. A changed object lock is no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Dated, Kind
from tiering_assets.ground.stack import Stack, asking, is_young
from tiering_assets.look.ledger.object_class import can_be_read
from tiering_assets.look.ledger.quarantine import quarantine, why_quarantined
from tiering_assets.look.ledger.verification import head_differences
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, Outcome
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import CopyChangedError, RefusedError, TierkeeperError
from tiering_assets.resources.object_store.store import ObjectHead

_AT_ONCE = 64  # ledgers between two looks at the clock
_NAMED_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesNow:
    """`wrong` says of each ledger why its copy is none any more; `later` were not looked at."""

    sound: tuple[int, ...]
    wrong: Mapping[int, TierkeeperError]
    later: tuple[int, ...]
    evidence: Dated


def look_at_copies(stack: Stack, certificates: Mapping[int, Stored[Certificate]]) -> CopiesNow:
    """Look at both objects of each certified attempt, and for its quarantine.

    Raises:
        ObjectStoreError: the store did not answer; nothing is known of any copy.
    """
    evidence = asking(stack, Kind.OBJECTS, Kind.RECORDS)
    sound: list[int] = []
    wrong: dict[int, TierkeeperError] = {}
    left = sorted(certificates)
    while left and (not (sound or wrong) or is_young(stack, evidence, Kind.OBJECTS)):
        now, left = left[:_AT_ONCE], left[_AT_ONCE:]
        found = stack.in_parallel(lambda i: _look(stack, certificates[i].record), now)
        for ledger_id, problem in zip(now, found, strict=True):
            if problem is None:
                sound.append(ledger_id)
            else:
                wrong[ledger_id] = problem
    return CopiesNow(sound=tuple(sound), wrong=wrong, later=tuple(left), evidence=evidence)


def _look(stack: Stack, certificate: Certificate) -> TierkeeperError | None:
    ledger_id, uid = certificate.ledger.ledger_id, certificate.uid
    if certificate.bucket != stack.objects.bucket:
        return RefusedError(
            f"ledger {ledger_id}: place differs: its copy is in bucket {certificate.bucket!r}, "
            f"store.bucket is {stack.objects.bucket!r}; set it back, or offload the ledger again"
        )
    doubt = why_quarantined(stack, ledger_id, uid)
    if doubt is not None:
        return RefusedError(
            f"ledger {ledger_id}: attempt {uid} is quarantined since it was certified: {doubt}; "
            f"offload the ledger again"
        )
    found = copy_differences(
        stack,
        certificate,
        data=stack.objects.head(certificate.data.key),
        index=stack.objects.head(certificate.index.key),
    )
    if not found:
        return None
    outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
    if outcome is not None and outcome.record.outcome == "abandon":
        return RefusedError(
            f"ledger {ledger_id}: attempt {uid} was abandoned by another run; offload the ledger again"
        )
    return CopyChangedError(
        f"ledger {ledger_id}: the copy of attempt {uid} is not the certified one any more: "
        f"{'; '.join(found[:_NAMED_MAX])}; it is quarantined, offload the ledger again"
    )


def copy_differences(
    stack: Stack, certificate: Certificate, *, data: ObjectHead | None, index: ObjectHead | None
) -> list[str]:
    """How the two objects differ from the certified ones, or why no broker will read them."""
    found: list[str] = []
    for name, certified, head in (
        ("data", certificate.data, data),
        ("index", certificate.index, index),
    ):
        found += head_differences(name, certified, head)
        if head is None:
            continue
        if head.expiration is not None:
            found.append(f"{name} object: a lifecycle rule deletes it: {head.expiration}")
        if not can_be_read(stack, head):
            found.append(f"{name} object: no broker can read storage class {head.storage_class}")
    return found


def quarantine_changed(
    stack: Stack,
    wrong: Mapping[int, TierkeeperError],
    certificates: Mapping[int, Stored[Certificate]],
) -> None:
    """Quarantine every attempt whose copy changed; what only waits is left alone."""
    for ledger_id, problem in wrong.items():
        if not isinstance(problem, CopyChangedError):
            continue
        record = certificates[ledger_id].record
        quarantine(
            stack,
            ledger_id,
            record.uid,
            ml_name=record.ml_name,
            reason=str(problem),
            previous=record.previous,
        )
        reach("publish.quarantined", ledger_id, topic=record.ml_name, attempt=record.uid)
