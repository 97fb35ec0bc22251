"""Is a published copy's ledger gone for good, and may its objects be missing then? Pure.

Owns: a ledger is gone when two reads of its topic's node agree about what became of it, and nothing
else has it; what is missing without that is a loss. Too many that go at once are no trim: a
metadata store that lost its lists looks like one, and so does a bucket that lost its objects in the
meantime.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tiering_assets.clean.gone_rules import Fate, fate_of, why_not_gone
from tiering_assets.records.sweep_models import Removal

SMALL = 100  # up to so many at once the share of the fleet is not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one look says of a published ledger. `czxid` and `version` are of its topic's node now,
    None without one; `published_czxid` and `published_version` of the node that the publication
    left.
    """

    ledger_id: int
    published_czxid: int
    published_version: int
    czxid: int | None
    version: int | None
    listed: Collection[int]
    elsewhere: str | None
    in_bookkeeper: bool


def judge_gone(sight: Sight) -> Fate | str:
    """What became of the ledger, or why it is not believed to be gone."""
    here = why_not_gone(
        sight.ledger_id,
        has_node=sight.czxid is not None,
        listed=sight.listed,
        elsewhere=sight.elsewhere,
        in_bookkeeper=sight.in_bookkeeper,
    )
    if here is not None:
        return here
    fate = fate_of(sight.czxid, sight.published_czxid)
    if fate is Fate.TRIMMED and (sight.version or 0) < sight.published_version:
        return (
            f"its node's version {sight.version} is below the recorded {sight.published_version}: "
            f"the metadata store went back in time"
        )
    return fate


def too_many_gone(gone: int, *, fleet: int, share_max: float) -> str | None:
    """Why so many copies at once are no trims; None where they may be."""
    if gone <= SMALL or gone <= share_max * fleet:
        return None
    return (
        f"{gone} of {fleet} attempts at once, more than the {share_max:.0%} of "
        f"release.fleet_share_max"
    )


def removal_faults(
    removal: Removal, *, outcome_sha256: str | None, published_czxids: Collection[int]
) -> list[tuple[str, object, object]]:
    """(what, expected, found) wherever a removal's record does not fit its attempt's other
    records.
    """
    wanted: list[tuple[str, object, object]] = []
    if outcome_sha256 is not None:
        wanted.append(("previous (outcome)", outcome_sha256, removal.previous))
    fates = {fate_of(removal.node_czxid, czxid).value for czxid in published_czxids}
    if removal.fate not in fates:
        wanted.append(("fate", " or ".join(sorted(fates)) or "of a publication", removal.fate))
    if removal.seen_again_at < removal.seen_at:
        wanted.append(("seen again", f"not before {removal.seen_at}", removal.seen_again_at))
    return [(what, expected, found) for what, expected, found in wanted if expected != found]
