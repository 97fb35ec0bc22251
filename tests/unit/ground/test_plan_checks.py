"""No approved plan, whichever step made it, is carried out elsewhere, too late, or edited."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.ground.plan_checks import (
    approved_body,
    body_of,
    digest_of,
    require_not_ahead,
    require_valid,
)
from tiering_assets.records.models import ReleasePlan
from tiering_assets.records.sweep_models import ExpiredPlan, ForgetPlan
from tiering_assets.resources.errors import FormatError, RefusedError

NOTHING = timedelta(0)
EVERY_KIND = pytest.mark.parametrize("kind", ["release", "expired", "forget"])


@pytest.fixture
def stack():
    return Scene().stack


def made(stack, kind):
    about = {
        "instance": stack.instance,
        "bucket": stack.settings.store.bucket,
        "planned_at": stack.now(),
        "fleet": 3,
        "writer": stack.writer,
    }
    match kind:
        case "expired":
            return ExpiredPlan(copies=(), **about)
        case "forget":
            return ForgetPlan(ledgers=(), **about)
        case _:
            return ReleasePlan(
                release=(), not_released=(), tripwire=None, acknowledged=None, **about
            )


@EVERY_KIND
def test_a_young_plan_of_this_place_is_carried_out(stack, kind):
    valid = timedelta(seconds=stack.settings.release.plan_valid_s)
    require_valid(stack, made(stack, kind), age=valid, too_old="too old")


@EVERY_KIND
@pytest.mark.parametrize("field", ["instance", "bucket"])
def test_one_of_another_place_is_not(stack, kind, field):
    plan = replace(made(stack, kind), **{field: "another"})
    with pytest.raises(RefusedError, match=r"another.*; make a plan here"):
        require_valid(stack, plan, age=NOTHING, too_old="too old")


@EVERY_KIND
def test_one_that_is_too_old_is_not_and_says_so_in_its_own_words(stack, kind):
    age = timedelta(seconds=stack.settings.release.plan_valid_s + 1)
    with pytest.raises(RefusedError, match=r"^too old$"):
        require_valid(stack, made(stack, kind), age=age, too_old="too old")


def test_one_that_is_dated_ahead_by_more_than_clocks_differ_is_not(stack):
    skew = timedelta(seconds=stack.settings.publish.clock_skew_max_s)
    require_not_ahead(stack, stack.now(), age=-skew)
    with pytest.raises(RefusedError, match="dated in the future"):
        require_not_ahead(stack, stack.now(), age=-skew - timedelta(seconds=1))


@EVERY_KIND
def test_its_digest_names_all_that_it_says(stack, kind):
    plan = made(stack, kind)
    body = body_of(plan)
    said, digest = approved_body(body, "plan.json")
    assert digest == digest_of(plan) == body["digest"]
    assert said == {name: value for name, value in body.items() if name != "digest"}
    assert digest_of(replace(plan, fleet=4)) != digest
    with pytest.raises(FormatError, match=r"plan.json: the plan was edited, make a new one"):
        approved_body({**body, "fleet": 4}, "plan.json")


@pytest.mark.parametrize("body", [[], "plan", {"fleet": 3}])
def test_what_has_no_digest_is_no_plan(body):
    with pytest.raises(FormatError, match="not a release plan: it has no digest"):
        approved_body(body, "plan.json")
