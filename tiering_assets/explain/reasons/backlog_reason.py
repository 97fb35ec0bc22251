"""Why a ledger is not yet where policy wants it: exactly one reason each, from a closed list.

Owns the list and the evidence; backlog_rules.py owns the order in which reasons are looked for.

Two lists look alike and are not one. `Reason` in reasons.py is what one run says of a ledger that
it was given and left; a ledger that no run was ever given has none of those. This list covers every
ledger at every moment, and `of_wait` says which of its reasons each wait of a run is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from tiering_assets.ground.moments import moment
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.policy.selection import NotSelected


class BacklogReason(StrEnum):
    """The value is what people read. In the order in which a ledger may meet them."""

    OPEN = "open"
    DAMAGED = "damaged"
    UNSEALED = "unsealed in BookKeeper"
    BELOW_THRESHOLD = "below threshold"
    EXCLUDED = "excluded"
    DISABLED = "disabled"
    PAUSED = "paused"
    NOT_ADMITTED = "not admitted"
    OVER_BUDGET = "over budget"
    COPYING = "copying"
    FAILED = "failed"
    QUARANTINED = "quarantined"
    CANNOT_READ = "broker cannot read"
    MAY_RELEASE_FIRST = "broker may release first"
    WAITING_TO_DISTURB = "waiting to disturb"
    NODE_TOO_LARGE = "metadata node too large"
    PUBLISHED_BY_BROKER = "published (broker)"
    UNCONFIRMED = "unconfirmed"
    IN_LAG = "in lag"
    HELD = "held"
    CAPPED = "capped"
    UNSAFE = "unsafe"
    EXPIRED = "expired"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Because:
    """The one reason. `detail` names the rule, the error, the values or the evidence missing."""

    reason: BacklogReason
    detail: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}" if self.detail else self.reason.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What the last attempts, or runs without one, came to. Automation asks for no run before
    `next_try`; None without it.
    """

    error: str
    attempts: int
    next_try: datetime | None = None

    def __str__(self) -> str:
        tries = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        when = "with the next run that takes it up"
        if self.next_try is not None:
            when = f"not before {moment(self.next_try)}"
        return f"{self.error}; {tries}; next try {when}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicBlockers:
    """What stands in the way of all ledgers of a topic; None where nothing does.

    `policy_unread` is why the policy is not known. The last four only stop publications.
    """

    switched_off: Wait | None = None
    refused: str | None = None
    policy_unread: str | None = None
    cannot_read: str | None = None
    may_release_first: str | None = None
    coexists: str | None = None
    over_budget: str | None = None
    node_too_large: str | None = None

    @property
    def forbidden(self) -> str | None:
        """Why no run is asked for: what its policy forbids now, no run can bring further."""
        facts = (
            self.refused,
            self.policy_unread,
            self.cannot_read,
            self.may_release_first,
            self.coexists,
        )
        return next((why for why in facts if why is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogEvidence:
    """All that is looked at for one ledger. None means that nothing is known to speak for a reason.

    `not_selected` and `selection` are the verdict of selection.py and its numbers; `wait` what a
    run would say at once if it took the ledger up now; `missing` what the release gate wants and
    has not. `goes_out_at` is when its topic is reloaded for what is proven, None where that is due.
    `by_broker`: its topic names an attempt of which no record of ours exists. `damaged`: what to
    do, where a check found the copy broken that its topic names.
    """

    state: LedgerState
    topic: TopicBlockers
    quarantined: bool = False
    damaged: str | None = None
    certified: bool = False
    recorded: bool = False
    by_broker: bool = False
    hold: str | None = None
    due_at: datetime | None = None
    goes_out_at: datetime | None = None
    not_selected: NotSelected | None = None
    selection: str = ""
    failure: Failure | None = None
    wait: Wait | None = None
    missing: str | None = None
    capped: str | None = None


_OF_RUNS: Final[Mapping[Reason, BacklogReason]] = {
    Reason.OPEN: BacklogReason.OPEN,
    Reason.UNSEALED: BacklogReason.UNSEALED,
    Reason.EMPTY: BacklogReason.EXCLUDED,
    Reason.MISSING: BacklogReason.UNSAFE,
    Reason.NOT_IN_TOPIC: BacklogReason.EXPIRED,
    Reason.NEVER_TOUCHED: BacklogReason.EXCLUDED,
    Reason.FOREIGN: BacklogReason.EXCLUDED,
    Reason.PUBLISHED: BacklogReason.UNCONFIRMED,
    Reason.RELEASED: BacklogReason.DONE,
    Reason.BROKER_COPYING: BacklogReason.COPYING,
    Reason.DATA_MISSING: BacklogReason.UNSAFE,
    Reason.EXPIRED: BacklogReason.EXPIRED,
    Reason.QUARANTINED: BacklogReason.QUARANTINED,
    Reason.DISABLED: BacklogReason.DISABLED,
    Reason.PAUSED: BacklogReason.PAUSED,
    Reason.CLAIMED: BacklogReason.COPYING,
    Reason.WAITING_TO_DISTURB: BacklogReason.WAITING_TO_DISTURB,
    Reason.OVER_BUDGET: BacklogReason.OVER_BUDGET,
    Reason.LEFT_ALONE: BacklogReason.WAITING_TO_DISTURB,
    Reason.BOOKIES_SHORT: BacklogReason.WAITING_TO_DISTURB,
    Reason.UNDO_UNCONFIRMED: BacklogReason.WAITING_TO_DISTURB,
}


def of_wait(wait: Wait) -> Because:
    """Which reason a run's wait is. Where the words differ, the run's own stay in the detail."""
    reason = _OF_RUNS[wait.reason]
    return Because(reason, wait.detail if reason.value == wait.reason.value else str(wait))
