"""Plans that a person approves between the run that records them and the run that carries them out.

Owns: a plan lies under the digest of what it says, so what was approved is what is carried out, and
only here, while it is young, and while nothing is held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.holds import require_nothing_held
from tiering_assets.records.codec import encode_record
from tiering_assets.records.signature import record_digest
from tiering_assets.records.stored import Stored
from tiering_assets.records.sweep_models import ExpiredPlan, ForgetPlan
from tiering_assets.resources.errors import ObjectNotFoundError, RefusedError

P = TypeVar("P", ExpiredPlan, ForgetPlan)


@dataclass(frozen=True, slots=True)
class RecordedPlan(Generic[P]):
    plan: P
    digest: str


def record_plan(stack: Stack, plan: P, key_of: Callable[[str], str]) -> RecordedPlan[P]:
    """Record the plan as the intent, under the key that its digest gives."""
    digest = record_digest(encode_record(plan))
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
    planned = (stored.record.instance, stored.record.bucket)
    ours = (stack.instance, stack.settings.store.bucket)
    if planned != ours:
        raise RefusedError(
            f"the plan is of instance {planned[0]} and bucket {planned[1]}, "
            f"these are {ours[0]} and {ours[1]}; make a plan here"
        )
    age = stack.objects.server_time() - stored.stored_at
    if age > timedelta(seconds=stack.settings.release.plan_valid_s):
        raise RefusedError(
            f"the plan is {age} old, more than release.plan_valid_s; make a new one and look at it"
        )
    require_nothing_held(stack, "the plan")
    return stored
