"""The one check of evidence's age, called right before every effect that ground/evidence.py names."""

from __future__ import annotations

from resources.errors import StaleEvidenceError
from tiering_assets.ground.evidence import Bounds, Dated, Effect, Kind, why_too_old
from tiering_assets.ground.stack import Stack


def bounds_of(stack: Stack) -> Bounds:
    settings = stack.settings.evidence
    return Bounds(fast_s=settings.age_max_s, slow_s=settings.surroundings_age_max_s)


def asking(stack: Stack, *kinds: Kind) -> Dated:
    """Evidence of these kinds, dated now: to be made before the question is sent."""
    return Dated.at(stack.monotonic(), *kinds)


def require_fresh(stack: Stack, effect: Effect, evidence: Dated, *, what: str) -> None:
    """StaleEvidenceError where anything that the effect stands on is older than its bound."""
    why = why_too_old(evidence, effect, now_s=stack.monotonic(), bounds=bounds_of(stack))
    if why is not None:
        raise StaleEvidenceError(
            f"{what}: too long ago to {effect} on it: {why}; nothing was changed, run again "
            f"(evidence.age_max_s, evidence.surroundings_age_max_s)"
        )


def is_young(stack: Stack, evidence: Dated, kind: Kind) -> bool:
    """Whether a kind need not be asked for again yet."""
    return evidence.is_young(kind, now_s=stack.monotonic(), bounds=bounds_of(stack))
