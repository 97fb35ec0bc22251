"""Which rows a run wants, and how large its rounds may be to end in time. Values in, values out.

Owns: a single ledger is never made smaller than its kind's least in a measured round of full size;
what does not fit then is left out by the run, which says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.content import KINDS, LEDGERS, TOPICS, Kind
from benchmarks.figures import CONTENDERS, SEAWEED, VERSITY

ALL_KINDS = (*KINDS, LEDGERS, TOPICS)
OF_MANY = ("ours-copy", "ours-verify", "ours-release (signed)")
OF_MANY_ALONE = ("ours-release (signed)",)
ON_VERSITY = (
    "broker",
    "ours-copy",
    "ours-verify",
    "ours-release",
    "ceiling-store",
    "ceiling-put-get",
    "ceiling-least-work",
)
FIXED = 0.6  # of a warm-up's time: what is the same at any size (reloads of topics, polling)
FAR_MBS = 5.0  # of reads from farther away: the broker's consumer takes nearly all of it
VERSITY_SHARE = 0.6  # of the first round on the first store: neither Spark nor reads
LATER_SHARE = 0.8  # of the first round: neither Spark nor Python's loop
FEWEST_ROUNDS = 2  # so that each goes first once
RESTART_S = 25.0  # a broker that begins to use another store, and agents with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """What a kind's warm-up took, and of what share of its full size."""

    kind: Kind
    share: float
    seconds: float

    def at(self, share: float, *, least: bool) -> float:
        """Seconds that a round of that share should take."""
        real = self.kind.scaled(share, least=least) / self.kind.scaled(self.share)
        return self.seconds * (FIXED + (1 - FIXED) * real)


def warm_share(kind: Kind) -> float:
    return 0.1 if kind is LEDGERS else 0.25


def is_single(kind: Kind) -> bool:
    return kind.topics == kind.ledgers == 1


def far_s(kind: Kind, messages: int) -> float:
    """Seconds that a round of reads from farther away should take."""
    return messages * kind.message_bytes / 1e6 / FAR_MBS


def seconds_of(
    warm: Iterable[Warm], share: float, *, rounds: int, least: bool, versity: bool, far: bool
) -> float:
    """What all phases should take after the first one's warm-up."""
    total = 0.0
    for one in warm:
        per_round = one.at(share, least=least)
        total += rounds * per_round
        if is_single(one.kind):
            total += VERSITY_SHARE * (rounds * per_round + one.seconds / 3) if versity else 0.0
            messages = one.kind.scaled(share, least=least)
            total += rounds * far_s(one.kind, messages) if far else 0.0
    return total + RESTART_S * (versity + far)


def share_that_fits(
    warm: Sequence[Warm], *, size: float, rounds: int, left_s: float, versity: bool, far: bool
) -> float:
    """How large, from 0.02 to 1 of `size`, the measured rounds may be to end in time."""

    def fits(share: float) -> bool:
        seconds = seconds_of(
            warm, share * size, rounds=rounds, least=size >= 1, versity=versity, far=far
        )
        return seconds <= left_s

    low, high = 0.02, 1.0
    if fits(high):
        return high
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def rounds_that_fit(
    first_s: Mapping[Kind, float],
    messages: Mapping[Kind, int],
    *,
    rounds: int,
    left_s: float,
    versity: bool,
    far: bool,
) -> int:
    """As many as end in time after a first one that took so long; two at least of those asked for.

    Fewer rounds of all rows tell more than all rounds of some.
    """
    for fewer in range(rounds, FEWEST_ROUNDS, -1):
        total = RESTART_S * (versity + far)
        for kind, seconds in first_s.items():
            total += (fewer - 1) * LATER_SHARE * seconds
            if is_single(kind):
                total += fewer * VERSITY_SHARE * seconds if versity else 0.0
                total += fewer * far_s(kind, messages[kind]) if far else 0.0
        if total <= left_s:
            return fewer
    return min(rounds, FEWEST_ROUNDS)


def wanted_rows() -> list[tuple[str, str, str]]:
    """Contender, kind and store of every row that a whole run has."""
    wanted = [
        (contender.name, kind.name, SEAWEED)
        for contender in CONTENDERS
        for kind in ALL_KINDS
        if contender.name in OF_MANY or is_single(kind)
        if contender.name not in OF_MANY_ALONE or not is_single(kind)
    ]
    on_versity = [(name, kind.name, VERSITY) for name in ON_VERSITY for kind in KINDS]
    return wanted + on_versity
