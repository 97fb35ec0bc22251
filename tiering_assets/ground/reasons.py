"""Why a ledger is not yet where policy wants it: exactly one reason each, from a closed list.

And why something is not done to it now, with every reason there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar


class Reason(Enum):
    """The value is what people read in the CLI, in Dagster metadata and in docs/states.md."""

    OPEN = "open"
    UNSEALED = "unsealed in BookKeeper"
    EMPTY = "no entries"
    MISSING = "missing from BookKeeper"
    NOT_IN_TOPIC = "not in its topic's ledger list"
    NEVER_TOUCHED = "never touched"
    FOREIGN = "belongs to another managed ledger"
    PUBLISHED = "already published"
    RELEASED = "already released"
    BROKER_COPYING = "the broker is copying it"
    DATA_MISSING = "entries are missing"
    EXPIRED = "expired"
    QUARANTINED = "quarantined"
    DISABLED = "disabled"
    PAUSED = "paused"
    CLAIMED = "another run works on it"
    WAITING_TO_DISTURB = "waiting to disturb"
    OVER_BUDGET = "over budget"
    LEFT_ALONE = "left alone"
    BOOKIES_SHORT = "bookies short"
    UNDO_UNCONFIRMED = "undo unconfirmed"

    @property
    def is_fault(self) -> bool:
        """Waiting does not help: a person must look."""
        return self in {Reason.MISSING, Reason.DATA_MISSING, Reason.QUARANTINED}


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now, or never. `detail` names values and the next step; nothing failed."""

    reason: Reason
    detail: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}" if self.detail else self.reason.value


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class NotNow(Generic[R]):
    """Something is not done now, because: every reason, each a sentence with its values."""

    reasons: tuple[R, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.reasons))


def not_now(*reasons: str) -> NotNow[str]:
    return NotNow(reasons)
