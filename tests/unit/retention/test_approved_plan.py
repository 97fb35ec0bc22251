"""What a plan names goes one by one, each judged again right before, whatever it is."""

from dataclasses import dataclass, replace

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.records import keys
from tiering_assets.records.sweep_models import ForgetPlan
from tiering_assets.resources.errors import ObjectStoreError, RefusedError, StaleEvidenceError
from tiering_assets.retention.approved_plan import carry_out, keep_others, record_plan


@dataclass(frozen=True)
class Thing:
    name: str
    why_kept: str = ""
    error: str = ""
    gone: bool = False

    def kept(self, why):
        return replace(self, why_kept=why)

    def failed(self, error):
        return replace(self, error=error)


class Work:
    """`now` says what a second look makes of a thing; deleting `broken` things fails."""

    def __init__(self, now=None, broken=None):
        self.stack = Scene().stack
        self.now, self.broken = now or {}, broken or {}
        self.log: list[str] = []

    def again(self, seen):
        self.log.append(f"look at {seen.name}")
        return self.now.get(seen.name, seen)

    def delete(self, thing):
        self.log.append(f"delete {thing.name}")
        if thing.name in self.broken:
            raise self.broken[thing.name]
        return replace(thing, gone=True)

    def run(self, *things):
        return carry_out(self.stack, things, self.again, self.delete)


def test_each_is_looked_at_right_before_it_goes():
    work = Work()
    found = work.run(Thing("a"), Thing("b"))
    assert [one.gone for one in found] == [True, True]
    assert work.log == ["look at a", "delete a", "look at b", "delete b"]


def test_what_was_kept_before_is_not_looked_at_again():
    work = Work()
    assert work.run(Thing("a", why_kept="held")) == [Thing("a", why_kept="held")]
    assert work.log == []


def test_what_a_second_look_keeps_stays_and_says_why():
    work = Work(now={"a": Thing("a", why_kept="held now"), "b": None})
    assert [one.why_kept for one in work.run(Thing("a"), Thing("b"))] == [
        "held now",
        "its topic lists the ledger again",
    ]
    assert work.log == ["look at a", "look at b"]


@pytest.mark.parametrize("kind", [ObjectStoreError, RefusedError, StaleEvidenceError])
def test_what_could_not_be_deleted_is_told_and_holds_up_no_other(kind):
    work = Work(broken={"a": kind("no answer")})
    told: list[str] = []
    work.stack = replace(work.stack, narrate=told.append)
    first, second = work.run(Thing("a"), Thing("b"))
    assert (first.error, first.gone) == ("no answer", False)
    assert (second.error, second.gone) == ("", True)
    assert told == ["no answer"]


def plan_of(stack, going):
    def make(fleet):
        return ForgetPlan(
            instance=stack.instance,
            bucket=stack.settings.store.bucket,
            planned_at=stack.now(),
            ledgers=(),
            fleet=fleet,
            writer=stack.writer,
        )

    return record_plan(stack, going, make, keys.forget_plan)


def test_a_plan_of_nothing_is_not_recorded_and_another_lies_under_its_digest():
    scene = Scene()
    scene.certify()
    assert plan_of(scene.stack, 0) is None
    assert scene.stack.book.keys(keys.FORGET_PLANS) == []
    recorded = plan_of(scene.stack, 1)
    assert recorded is not None
    assert recorded.plan.fleet == 1
    assert scene.stack.book.keys(keys.FORGET_PLANS) == [keys.forget_plan(recorded.digest)]


def test_one_that_takes_too_much_of_the_fleet_is_refused():
    stack = Scene().stack
    with pytest.raises(RefusedError, match="is the metadata complete"):
        plan_of(stack, 10_000)
    assert stack.book.keys(keys.FORGET_PLANS) == []


def test_a_yes_covers_only_what_was_shown_as_going():
    things = [Thing("a"), Thing("b"), Thing("c", why_kept="held")]
    assert keep_others(things, None, lambda one: one.name) == things
    kept = keep_others(things, ["a"], lambda one: one.name)
    assert [one.why_kept for one in kept] == ["", "it was not shown as going", "held"]
