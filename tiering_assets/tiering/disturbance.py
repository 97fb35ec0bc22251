"""When is publishing worth an unload? design section 6.2, "disturb rarely".

Publishing makes a loaded topic reload (about 0.15 s without acknowledgements), so pending ledgers
wait until there is enough of them or the oldest has waited long enough since our last disturbance.
A ledger sealed by our own unload never triggers: publish -> unload -> new sealed ledger -> publish
would go on for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

CLOCKS_APART = timedelta(seconds=5)  # a broker's closing time may lie a little before our record


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A certified ledger that waits for its topic's next publication."""

    ledger_id: int
    bytes: int
    closed_at: datetime


def sealed_by_us(
    closed_at: Mapping[int, datetime], disturbed_at: Iterable[datetime]
) -> frozenset[int]:
    """Ledgers that our own unloads sealed: the first one closed at or after each of them.

    An unload closes the open ledger, but its closing time is written when the topic is loaded
    again, which may be hours later; so it is known by its order, not by its time.
    """
    ours = set()
    for moment in disturbed_at:
        after = [(when, i) for i, when in closed_at.items() if when >= moment - CLOCKS_APART]
        if after:
            ours.add(min(after)[1])
    return frozenset(ours)


def worth_disturbing(
    pending: Sequence[Pending],
    *,
    ours: frozenset[int],
    now: datetime,
    last_disturbed_at: datetime | None,
    bytes_min: int,
    age_max: timedelta,
) -> bool:
    """True when the pending bytes or the oldest pending ledger's wait reach their limit.

    `ours` are the ledgers that our own unloads sealed (see `sealed_by_us`): they go out with the
    next publication but are no reason for one. `last_disturbed_at` is our last one of this topic.
    """
    reasons = [one for one in pending if one.ledger_id not in ours]
    if not reasons:
        return False
    if sum(one.bytes for one in reasons) >= bytes_min:
        return True
    oldest = min(one.closed_at for one in reasons)
    since = oldest if last_disturbed_at is None else max(oldest, last_disturbed_at)
    return now - since >= age_max
