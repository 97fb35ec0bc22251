"""What every approved plan must be before any of it is carried out, whichever step made it.

Owns: a plan is named by the digest of what it says, so what a person approved is what is carried
out; and it is carried out only here, in the cluster and bucket that it was made for, and while it
is young.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tiering_assets.ground.stack import Stack
from tiering_assets.records.codec import encode_record
from tiering_assets.records.models import ReleasePlan
from tiering_assets.records.signature import DIGEST, digest_problem, record_digest, with_digest
from tiering_assets.records.sweep_models import ExpiredPlan, ForgetPlan
from tiering_assets.resources.errors import FormatError, RefusedError

AnyPlan = ReleasePlan | ExpiredPlan | ForgetPlan


def digest_of(plan: AnyPlan) -> str:
    """What names a plan: the digest of all that it says."""
    return record_digest(encode_record(plan))


def body_of(plan: AnyPlan) -> dict[str, Any]:
    """A plan as people read it, with its digest."""
    return with_digest(encode_record(plan))


def approved_body(body: object, where: object) -> tuple[Mapping[str, Any], str]:
    """What a written plan says, and its digest. FormatError when it was edited, or is none."""
    if not isinstance(body, dict) or DIGEST not in body:
        raise FormatError(f"{where}: not a release plan: it has no digest")
    problem = digest_problem(body)
    if problem is not None:
        raise FormatError(f"{where}: the plan was edited, make a new one: {problem}")
    return {name: value for name, value in body.items() if name != DIGEST}, str(body[DIGEST])


def require_valid(stack: Stack, plan: AnyPlan, *, age: timedelta, too_old: str) -> None:
    """RefusedError for a plan of another place, and, saying `too_old`, for one that is no more
    young.
    """
    place = (plan.instance, plan.bucket)
    ours = (stack.instance, stack.settings.store.bucket)
    if place != ours:
        raise RefusedError(
            f"the plan is of instance {place[0]} and bucket {place[1]}, "
            f"these are {ours[0]} and {ours[1]}; make a plan here"
        )
    if age > timedelta(seconds=stack.settings.release.plan_valid_s):
        raise RefusedError(too_old)


def require_not_ahead(stack: Stack, planned_at: datetime, *, age: timedelta) -> None:
    """RefusedError for a plan that is dated later than our clocks may differ, as it would not
    age.
    """
    if age < -timedelta(seconds=stack.settings.publish.clock_skew_max_s):
        raise RefusedError(f"the plan is dated in the future, {planned_at}; check the clocks")
