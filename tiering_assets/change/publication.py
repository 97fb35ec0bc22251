"""Which of a topic's certified attempts go into its managed-ledger node, given a fresh read of it.

Owns: a context of anybody else, complete or not, is never overwritten, unless it is exactly the
attempt that was found broken and is to be replaced; a ledger that left the list
was trimmed and is expired, not an error; a context of ours that is already there is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from resources.metastore.ledger_info import ManagedLedger
from tiering_assets.ground.reasons import Reason, Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationPlan:
    """Ledger ids by what the fresh read says of them."""

    write: tuple[int, ...]
    already: tuple[int, ...]
    waiting: Mapping[int, Wait] = field(default_factory=dict)


def plan_publication(
    topic: ManagedLedger,
    wanted: Mapping[int, UUID],
    replacing: Mapping[int, UUID] | None = None,
) -> PublicationPlan:
    """Sort the wanted ledgers (id -> attempt) into written now, written before, and not.

    `replacing` names broken attempts (id -> attempt) that a wanted one takes the place of.
    """
    broken = replacing or {}
    write: list[int] = []
    already: list[int] = []
    waiting: dict[int, Wait] = {}
    for ledger_id, uid in sorted(wanted.items()):
        listed = topic.ledger(ledger_id)
        if listed is None:
            waiting[ledger_id] = Wait(
                Reason.EXPIRED, "the topic no longer lists it; it was trimmed"
            )
        elif listed.is_open:  # one such ledger would make the edit of all others fail
            waiting[ledger_id] = Wait(Reason.OPEN, "the topic lists it as still written to")
        elif listed.offload is None:
            write.append(ledger_id)
        elif listed.offload.uid == uid and listed.offload.complete:
            already.append(ledger_id)
        elif listed.offload.complete and listed.offload.uid == broken.get(ledger_id):
            write.append(ledger_id)
        elif listed.offload.complete:
            waiting[ledger_id] = Wait(Reason.PUBLISHED, f"by attempt {listed.offload.uid}")
        else:
            waiting[ledger_id] = Wait(
                Reason.BROKER_COPYING, f"its context names attempt {listed.offload.uid}"
            )
    return PublicationPlan(write=tuple(write), already=tuple(already), waiting=waiting)
