"""How far the offload of one topic is: PIP-17's status, from what is stored and not from memory.

Owns: a broker keeps its status in memory and forgets it with the next unload; this one is a
function of the topic's ledger list and of each ledger's one reason, so it is the same for whoever
asks. Source of the four words: org.apache.pulsar.client.admin.LongRunningProcessStatus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from tiering_assets.batch.offload_prefix_rules import first_unoffloaded
from tiering_assets.explain.reasons.backlog_reason import BacklogReason, Because
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, Position


class OffloadState(StrEnum):
    """ERROR: a ledger failed or a check found it wrong. RUNNING: one is being copied.

    SUCCESS: some are offloaded and none of that is so. NOT_RUN: none is.
    """

    NOT_RUN = "NOT_RUN"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class StatusAmount:
    ledgers: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """`offloaded`: brokers read the objects. `pending` are closed ledgers, `copying` not among
    them.

    `waiting` has the reason of each ledger that is pending or being copied.
    """

    status: OffloadState
    first_unoffloaded: Position | None
    offloaded: StatusAmount
    copying: StatusAmount
    pending: StatusAmount
    waiting: Mapping[int, Because]


_ERRORS = frozenset({BacklogReason.FAILED, BacklogReason.QUARANTINED, BacklogReason.UNSAFE})


def decide_status(ledgers: Sequence[LedgerInfo], reasons: Mapping[int, Because]) -> TopicStatus:
    """Sum up a topic's list, ascending by id. A ledger without a reason counts in no amount."""
    closed = [one for one in ledgers if not one.is_open and one.ledger_id in reasons]
    done: list[LedgerInfo] = []
    left: list[LedgerInfo] = []
    for one in closed:
        (done if one.offload is not None and one.offload.complete else left).append(one)
    copying: list[LedgerInfo] = []
    pending: list[LedgerInfo] = []
    for one in left:
        busy = reasons[one.ledger_id].reason is BacklogReason.COPYING
        (copying if busy else pending).append(one)
    found = {reasons[one.ledger_id].reason for one in closed}
    return TopicStatus(
        status=_state(found, copying=bool(copying), done=bool(done)),
        first_unoffloaded=first_unoffloaded(ledgers),
        offloaded=_amount(done),
        copying=_amount(copying),
        pending=_amount(pending),
        waiting={one.ledger_id: reasons[one.ledger_id] for one in left},
    )


def _state(found: Set[BacklogReason], *, copying: bool, done: bool) -> OffloadState:
    if found & _ERRORS:
        return OffloadState.ERROR
    if copying:
        return OffloadState.RUNNING
    return OffloadState.SUCCESS if done else OffloadState.NOT_RUN


def _amount(ledgers: Sequence[LedgerInfo]) -> StatusAmount:
    return StatusAmount(len(ledgers), sum(one.size or 0 for one in ledgers))
