"""The manual trigger's run config: what it means, and one sentence for what cannot be.

Over simulated servers; a real run is in tests/stack/test_topic_offload.py.
"""

from dataclasses import replace

import dagster as dg
import pytest

from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.defs.batch.offload_prefix import plan_of
from tiering_assets.defs.shared.batches import OffloadBatch
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy, TieringMode
from tiering_assets.resources.errors import MetadataError

ML_NAME = "t/ns/persistent/orders"
TOPIC = "persistent://t/ns/orders"


@pytest.fixture
def stack():
    """Ledgers 0 and 1 of ten bytes are closed, 2 is open; one more topic is partitioned."""
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(ML_NAME)
    for _ in range(2):
        site.broker.produce(ML_NAME, [b"first", b"later"])
        site.broker.roll_over(ML_NAME)
    site.broker.create_topic("t/ns/persistent/parts-partition-0")
    return Process(world, "launched", site).stack()


def refused(stack, chosen=(), **config):
    with pytest.raises(dg.Failure) as failure:
        plan_of(stack, OffloadBatch(**config), chosen=chosen)
    assert failure.value.allow_retries is False
    return failure.value.description


@pytest.mark.parametrize("config", [{}, {"topics": [TOPIC]}, {"before": "", "keep_bytes": None}])
def test_the_defaults_ask_for_no_position(stack, config):
    assert plan_of(stack, OffloadBatch(**config), chosen=[]) is None
    assert plan_of(stack, OffloadBatch(**config), chosen=[5]) is None


@pytest.mark.parametrize("topic", [TOPIC, "t/ns/orders"])
def test_a_position_and_a_size_choose_ledgers_of_the_one_topic(stack, topic):
    for batch, expected in (
        (OffloadBatch(topics=[topic], before="1:0"), [0]),
        (OffloadBatch(topics=[topic], keep_bytes=0), [0, 1]),
    ):
        plan = plan_of(stack, batch, chosen=[])
        assert plan is not None
        assert plan.prefix.ledger_ids == expected


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"before": "1:0"}, "expected 1 name in `topics`, found 0"),
        ({"keep_bytes": 1, "topics": [TOPIC, TOPIC]}, "expected 1 name in `topics`, found 2"),
        ({"before": "1:0", "keep_bytes": 0, "topics": [TOPIC]}, "give one"),
        ({"before": "one", "topics": [TOPIC]}, "'one' is no position; expected LEDGER:ENTRY"),
        ({"keep_bytes": -2, "topics": [TOPIC]}, "keep-bytes is -2, expected 0 to"),
        ({"before": "7:0", "topics": [TOPIC]}, "beyond the topic's last ledger, 2"),
        ({"before": "1:2", "topics": [TOPIC]}, "ledger 1 ends with entry 1"),
        ({"keep_bytes": 0, "topics": [f"{TOPIC}s"]}, "has no such topic"),
        ({"keep_bytes": 0, "topics": ["t/ns/parts"]}, "is partitioned and each partition has"),
        ({"keep_bytes": 0, "topics": ["nonsense"]}, "not a topic name"),
        ({"keep_bytes": 0, "topics": ["t/ns/__change_events"]}, "has no such topic"),
    ],
)
def test_what_cannot_be_ends_the_run_with_one_sentence(stack, config, said):
    told = refused(stack, **config)
    assert told.startswith("offload: ")
    assert said in told


def test_ids_and_a_position_are_two_answers_to_one_question(stack):
    assert "not by both; found 2 ids" in refused(stack, chosen=[1, 2], topics=[TOPIC], keep_bytes=0)


@pytest.mark.parametrize("mode", [TieringMode.DISABLED, TieringMode.PAUSED])
def test_a_topic_that_is_switched_off_is_refused(stack, mode):
    own = OwnPolicies(default=OwnPolicy(mode=mode))
    off = replace(stack, own_policies=own)
    assert f"tiering is {mode.value}: by the default level" in refused(
        off, topics=[TOPIC], keep_bytes=0
    )


def test_an_outage_stays_an_error_that_may_be_retried(stack):
    class Away:
        def read(self, _ml_name):
            raise MetadataError("no store answers")

    with pytest.raises(MetadataError):
        plan_of(
            replace(stack, topics=Away()), OffloadBatch(topics=[TOPIC], keep_bytes=0), chosen=[]
        )
