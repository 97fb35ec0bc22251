"""Topics of a batch are changed side by side: with the outcomes of one after the other, within the
budgets of reloads and releases, and one canary a namespace.
"""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sim_clients import Process
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.batch.release_batch import release_batch
from tiering_assets.ground.reasons import Reason
from tiering_assets.records import keys
from tiering_assets.records.models import Canary, Disturbance
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import RefusedError


def one_by_one(act, items):
    return [act(item) for item in items]


def set_limits(scene, room, **limits):
    section = getattr(scene.world.settings, room)
    scene.world.settings = replace(scene.world.settings, **{room: replace(section, **limits)})


def filled(topics, *, seed=1, each=1):
    """A scene, and the ledgers of so many loaded topics beside the one that it has."""
    scene = Scene(seed)
    found = {}
    for number in range(topics):
        name = f"t/ns/persistent/many-{number}"
        scene.broker.create_topic(name)
        found[name] = [scene.fill(name) for _ in range(each)]
        scene.broker.produce(name, [b"more"])  # a broker has it loaded
    return scene, found


def all_of(found):
    return [i for ids in found.values() for i in ids]


def in_a_run(scene, act, *, side_by_side=True):
    """What a run comes to; `side_by_side` decides about its topics alone."""
    found = []

    def run(process: Process):
        stack = process.stack()
        if not side_by_side:
            stack = replace(stack, topics_in_parallel=one_by_one)
        found.append(act(stack))

    scene.world.start("a run", scene.world.scheduler.now, scene.site, run)
    scene.world.scheduler.run()
    assert scene.world.scheduler.failures == []
    assert scene.world.monitor.found == []
    return found[0]


def reloads(scene):
    return list(scene.stack.book.iter_records(Disturbance, keys.DISTURBANCES))


def publish(topics, *, budget, side_by_side, seed):
    scene, found = filled(topics, seed=seed)
    scene.publish()  # the namespace's canary
    ledgers = all_of(found)
    before = len(reloads(scene))
    set_limits(scene, "disturb", per_cluster_hour_max=before + budget)
    outcomes = in_a_run(
        scene, lambda stack: offload_batch(stack, ledgers), side_by_side=side_by_side
    )
    return Counter(one.state for one in outcomes), len(reloads(scene)) - before


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 7), st.integers(0, 9), st.integers(0, 10_000))
def test_no_schedule_of_topics_side_by_side_exceeds_the_budget_of_reloads(topics, budget, seed):
    states, made = publish(topics, budget=budget, side_by_side=True, seed=seed)
    assert made == min(topics, budget)
    expected = {"published": made, Reason.OVER_BUDGET.value: topics - made}
    assert states == Counter({name: count for name, count in expected.items() if count})
    assert (states, made) == publish(topics, budget=budget, side_by_side=False, seed=seed)


def test_topics_are_published_at_the_same_time():
    spans = {}
    for side_by_side in (False, True):
        scene, found = filled(4)
        scene.publish()
        began_s = scene.world.scheduler.now
        in_a_run(
            scene,
            lambda stack, found=found: offload_batch(stack, all_of(found)),
            side_by_side=side_by_side,
        )
        spans[side_by_side] = scene.world.scheduler.now - began_s
    assert spans[True] < 0.7 * spans[False]


@pytest.mark.parametrize("seed", range(5))
def test_a_namespace_without_a_canary_gets_one_however_many_topics_begin(seed):
    scene, found = filled(4, seed=seed, each=2)
    in_a_run(scene, lambda stack: offload_batch(stack, all_of(found)))
    # The first topic reloads twice, behind its canary; the others once each.
    assert len(reloads(scene)) == len(found) + 1
    assert isinstance(scene.canary(), Canary)


@pytest.mark.parametrize("seed", range(5))
def test_releases_side_by_side_share_the_hours_cap(seed):
    scene, found = filled(4, seed=seed, each=2)
    ledgers = all_of(found)
    in_a_run(scene, lambda stack: offload_batch(stack, ledgers))
    scene.past_the_lag()
    for name in found:
        scene.broker.load(name)
    set_limits(scene, "release", per_hour_max=5)
    done = in_a_run(scene, lambda stack: release_batch(stack, ledgers)).outcomes
    assert sum(isinstance(one.result, Released) for one in done) == 5


def test_one_topics_failure_is_its_own():
    scene, found = filled(4)
    scene.publish()
    broken = sorted(found)[1]
    refuse = scene.broker.read_entry

    def read_entry(topic, ledger_id, entry_id):
        if ledger_id in found[broken]:
            raise RefusedError("no")
        return refuse(topic, ledger_id, entry_id)

    scene.broker.read_entry = read_entry
    outcomes = in_a_run(scene, lambda stack: offload_batch(stack, all_of(found)))
    states = {one.ml_name: one.state for one in outcomes}
    assert states.pop(broken) == "failed"
    assert set(states.values()) == {"published"}
    assert TOPIC not in states
