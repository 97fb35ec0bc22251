"""A person gives up a published copy that can never be released; the next scrub makes another.

For copies whose bytes may be sound and whose records are not: dates that contradict each other, a
certificate that cannot be read any more. Nothing about the ledger changes but a quarantine record,
which forbids a release and has scrub/heal.py put a new attempt in the copy's place.

Owns: only while bookies have the ledger and nobody has marked it for release. A copy that is the
only one is never given up.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import look_at
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import LedgerNotFoundError, RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """`fresh` is False where the attempt was quarantined before; the first reason stays."""

    ledger_id: int
    uid: UUID
    topic: str
    fresh: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCopy:
    """A copy of ours that a topic names, while bookies have the ledger."""

    uid: UUID
    ml_name: str
    attempt: Stored[Attempt]

    @property
    def topic(self) -> str:
        return topic_of(self.ml_name)


def find_copy(stack: Stack, ledger_id: int) -> PublishedCopy:
    """The copy that may be given up.

    Raises:
        LedgerNotFoundError: bookies do not have the ledger.
        RefusedError: the copy is not one of ours, is not published, or is being released.
    """
    sight = look_at(stack, ledger_id)
    if sight.node is None or sight.ml_name is None:
        raise LedgerNotFoundError(
            f"ledger {ledger_id}: bookies do not have it (any more), or no topic owns it; its copy "
            f"stays as it is. `tierkeeper ledger show {ledger_id}` prints what is known"
        )
    listed = sight.listed
    context = None if listed is None else listed.offload
    if context is None or not context.complete:
        raise RefusedError(
            f"ledger {ledger_id}: not published, so there is no copy to replace; "
            f"`tierkeeper ledger offload {ledger_id} --execute` makes one"
        )
    if context.bookkeeper_deleted:
        raise RefusedError(
            f"ledger {ledger_id}: it is being released; run `tierkeeper ledger release {ledger_id} "
            f"--execute` to finish that"
        )
    attempt = stack.book.read(Attempt, keys.attempt(ledger_id, context.uid))
    if attempt is None:
        raise RefusedError(
            f"ledger {ledger_id}: its copy {context.uid} is not one of ours; "
            f"`tierkeeper scrub run --deep` looks at it"
        )
    return PublishedCopy(uid=context.uid, ml_name=sight.ml_name, attempt=attempt)


def give_up_copy(stack: Stack, ledger_id: int, *, reason: str, author: str) -> GivenUp:
    """Quarantine the attempt that the ledger's topic names. Errors as in `find_copy`."""
    copy = find_copy(stack, ledger_id)
    fresh = quarantine(
        stack,
        ledger_id,
        copy.uid,
        ml_name=copy.ml_name,
        reason=f"given up by {author}: {reason}",
        previous=copy.attempt.sha256,
    )
    return GivenUp(ledger_id=ledger_id, uid=copy.uid, topic=copy.topic, fresh=fresh)
