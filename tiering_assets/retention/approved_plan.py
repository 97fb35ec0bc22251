"""Plans that a person approves between the run that records them and the run that carries them out.

Owns: what a plan names goes only while the plan may be carried out (ground/plan_checks.py) and
nothing is held, and of it only what is judged once more, by what is so right before each delete:
what was judged for the whole plan may be old.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from tiering_assets.clean.sweep import refuse_mass_delete
from tiering_assets.ground.plan_checks import digest_of, require_valid
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.holds import require_nothing_held
from tiering_assets.records.stored import Stored
from tiering_assets.records.sweep_models import ExpiredPlan, ForgetPlan
from tiering_assets.resources.errors import (
    ObjectNotFoundError,
    ObjectStoreError,
    RefusedError,
    StaleEvidenceError,
)

P = TypeVar("P", ExpiredPlan, ForgetPlan)


class Planned(Protocol):
    """Something that a plan may take. `why_kept` is empty where it may go."""

    @property
    def why_kept(self) -> str: ...

    def kept(self, why: str) -> Self: ...

    def failed(self, error: str) -> Self: ...


T = TypeVar("T", bound=Planned)
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class RecordedPlan(Generic[P]):
    plan: P
    digest: str


def record_plan(
    stack: Stack, going: int, make: Callable[[int], P], key_of: Callable[[str], str]
) -> RecordedPlan[P] | None:
    """Record a plan for so many attempts as the intent, under its digest; None for none of them.

    `make` gets the number of all attempts. RefusedError when too much of the fleet would go.
    """
    fleet = len(stack.book.pairs("attempts/"))
    refuse_mass_delete(stack, going, fleet=fleet)
    if not going:
        return None
    plan = make(fleet)
    digest = digest_of(plan)
    stack.book.create(key_of(digest), plan)
    return RecordedPlan(plan, digest)


def approved_plan(stack: Stack, kind: type[P], key: str, *, made_by: str) -> Stored[P]:
    """Return the plan that may be carried out now; `made_by` is the command that records one.

    Raises:
        ObjectNotFoundError: there is no such plan.
        RefusedError: it is another place's or stale, or everything is held.
    """
    stored = stack.book.read(kind, key)
    if stored is None:
        raise ObjectNotFoundError(f"{key}: no such plan; `{made_by}` makes one")
    age = stack.objects.server_time() - stored.stored_at
    require_valid(
        stack,
        stored.record,
        age=age,
        too_old=f"the plan is {age} old, more than release.plan_valid_s; make a new one and look "
        f"at it",
    )
    require_nothing_held(stack, "the plan")
    return stored


def keep_others(
    found: Iterable[T], only: Collection[K] | None, name_of: Callable[[T], K]
) -> list[T]:
    """What a person saw and said yes to may go; the rest of the plan stays. None is all of it."""
    if only is None:
        return list(found)
    return [
        one if one.why_kept or name_of(one) in only else one.kept("it was not shown as going")
        for one in found
    ]


def carry_out(
    stack: Stack, found: Iterable[T], again: Callable[[T], T | None], delete: Callable[[T], T]
) -> list[T]:
    """Each with what became of it. `again` judges it anew: None where its topic lists its
    ledger.
    """
    return [_carry_out(stack, seen, again, delete) for seen in found]


def _carry_out(
    stack: Stack, seen: T, again: Callable[[T], T | None], delete: Callable[[T], T]
) -> T:
    if seen.why_kept:
        return seen
    now = again(seen)
    if now is None:
        return seen.kept("its topic lists the ledger again")
    if now.why_kept:
        return now
    try:
        return delete(now)
    except (ObjectStoreError, RefusedError, StaleEvidenceError) as error:
        stack.narrate(str(error))
        return now.failed(str(error))
