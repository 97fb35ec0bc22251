"""The job `pause_tiering`, run by Dagster over simulated servers."""

import dagster as dg
import pytest

from tests.support.default_cluster import CLUSTER
from tests.support.sim_clients import Process
from tests.support.sim_dagster import SimulatedTiering
from tests.support.sim_world import World
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.defs.pause_job import define_pause_tiering
from tiering_assets.look.brakes.brake import PAUSE, Brake, list_brakes

TOPIC = "t/ns/persistent/orders"


@pytest.fixture
def stack():
    """Topic `orders` with a closed ledger 0 and an open one."""
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    site.broker.produce(TOPIC, [b"first", b"last"])
    site.broker.roll_over(TOPIC)
    found = Process(world, "launched", site).stack()
    SimulatedTiering.now_open["stack"] = found
    return found


def launch(tags=None, **config):
    return define_pause_tiering(CLUSTER).execute_in_process(
        run_config={"ops": {"pause_topics": {"config": config}}},
        resources={"tiering_stack": SimulatedTiering()},
        tags=tags,
        raise_on_error=False,
    )


def failure(result):
    [event] = [e for e in result.all_events if e.event_type is dg.DagsterEventType.STEP_FAILURE]
    return event.step_failure_data.user_failure_data.description


def paused(stack) -> list[Brake]:
    return [one for one in list_brakes(stack, PAUSE) if not isinstance(one, str)]


def test_it_pauses_and_enables_and_says_who(stack):
    result = launch(
        topics=["t/ns/orders", "persistent://t/ns/orders"],
        namespaces=["t/other"],
        mode="disabled",
        reason="migration",
        tags={"user": "ops@example.com"},
    )
    assert result.success
    assert sorted(
        (p.scope.kind, p.scope.name, p.mode, p.author, p.reason) for p in paused(stack)
    ) == [
        ("namespace", "t/other", "disabled", "ops@example.com", "migration"),
        ("topic", TOPIC, "disabled", "ops@example.com", "migration"),
    ]
    [event] = [e for e in result.all_events if e.event_type is dg.DagsterEventType.STEP_OUTPUT]
    told = event.event_specific_data.metadata["what"].value
    assert "* topic persistent://t/ns/orders: disabled; covers 1 topics" in told
    [outcome] = offload_batch(stack, [0])
    assert str(outcome.wait).startswith("disabled: by the pause of topic")
    assert launch(topics=["t/ns/orders"], mode="enabled", reason="migrated").success
    assert [p.scope.kind for p in paused(stack)] == ["namespace"]
    [outcome] = offload_batch(stack, [0])
    assert outcome.state == "published"


def test_all_without_a_login_is_paused_by_dagster(stack):
    assert launch(all=True, reason="disk").success
    assert [(p.scope.kind, p.mode, p.author) for p in paused(stack)] == [
        ("all", "paused", "dagster")
    ]
    assert launch(all=True, reason="again").success  # safe to run twice
    assert [p.reason for p in paused(stack)] == ["disk"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"reason": "x"}, "expected names in topics or namespaces, or all: true; found none"),
        ({"all": True}, "reason is empty"),
        ({"all": True, "reason": " "}, "reason is empty"),
        ({"all": True, "topics": ["t/ns/orders"], "reason": "x"}, "found 1 names"),
        (
            {"all": True, "mode": "off", "reason": "x"},
            "mode is 'off', expected enabled, disabled, paused",
        ),
        ({"namespaces": ["t"], "reason": "x"}, "expected tenant/namespace"),
        ({"topics": ["orders"], "reason": "x"}, "not a topic name"),
        ({"namespaces": ["t/ns"], "topics": ["t/ns/ordres"], "reason": "x"}, "no such topic"),
    ],
)
def test_a_config_that_cannot_be_ends_with_one_sentence_and_writes_nothing(stack, config, said):
    result = launch(**config)
    assert not result.success
    assert failure(result).startswith("pause_tiering: ")
    assert said in failure(result)
    assert paused(stack) == []
