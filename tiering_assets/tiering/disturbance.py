"""When is publishing worth an unload? design section 6.2, "disturb rarely".

Publishing makes a loaded topic reload (about 0.15 s without acknowledgements), so pending ledgers
wait until there is enough of them or the oldest has waited long enough since our last disturbance.
A ledger sealed by our own unload never triggers: publish -> unload -> new sealed ledger -> publish
would go on for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A certified ledger that waits for its topic's next publication."""

    ledger_id: int
    bytes: int
    closed_at: datetime


def worth_disturbing(
    pending: Sequence[Pending],
    *,
    now: datetime,
    last_disturbed_at: datetime | None,
    bytes_min: int,
    age_max: timedelta,
    disturbed_before: Sequence[datetime] = (),
) -> bool:
    """True when the pending bytes or the oldest pending ledger's wait reach their limit.

    `last_disturbed_at` is our last publication or release of the topic, `disturbed_before` are
    earlier ones; a ledger closed within a few seconds of any of them was sealed by that unload and
    does not count as a reason. Without the earlier ones a release would turn the ledger that the
    publication before it sealed into a reason.
    """
    caused_by_us = timedelta(seconds=5)
    ours = [*disturbed_before, *([] if last_disturbed_at is None else [last_disturbed_at])]
    reasons = [p for p in pending if all(abs(p.closed_at - at) > caused_by_us for at in ours)]
    if not reasons:
        return False
    if sum(p.bytes for p in reasons) >= bytes_min:
        return True
    oldest = min(p.closed_at for p in reasons)
    since = oldest if last_disturbed_at is None else max(oldest, last_disturbed_at)
    return now - since >= age_max
