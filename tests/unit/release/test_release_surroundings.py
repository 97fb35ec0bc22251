"""What is the same for all ledgers of a topic: unknown is no good answer, and what is slow is asked
once.
"""

from collections import Counter

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.change.disturb import see
from tiering_assets.look.topic.topic_evidence import find_shadows
from tiering_assets.release.look import gather_topic
from tiering_assets.resources.errors import BrokerError


@pytest.fixture
def scene():
    """Ledger 0 is published, and a broker is known to have its topic loaded."""
    scene = Scene()
    scene.publish()
    scene.broker.load(TOPIC)
    scene.wait(120)
    return scene


@pytest.fixture
def asked(scene):
    """How often the broker is asked what, from now on."""
    found: Counter[str] = Counter()
    for name in ("runtime_configs", "activity"):
        really = getattr(scene.broker, name)

        def ask(*args, _name=name, _really=really):
            found[_name] += 1
            return _really(*args)

        setattr(scene.broker, name, ask)
    return found


@pytest.fixture
def gather(scene, asked):
    stack = scene.process("release")

    def gather(before=None, **how):
        topic, _node = stack.topics.read(TOPIC)
        shadows, seen = find_shadows(stack), see(stack, TOPIC)
        return gather_topic(stack, TOPIC, topic, shadows, seen, before=before, **how)

    return gather


def test_brokers_that_do_not_tell_their_settings_leave_both_facts_unknown(scene, gather):
    def silent():
        raise BrokerError("no answer")

    scene.broker.runtime_configs = silent
    about = gather()
    assert about.brokers is None
    assert about.facts.cannot_read is None
    assert about.facts.skips_unreadable_ledgers is None


@pytest.mark.parametrize(
    ("said", "skips"), [("false", False), ("true", True), ("", None), ("maybe", None)]
)
def test_a_broker_that_does_not_say_whether_it_skips_leaves_it_unknown(scene, gather, said, skips):
    scene.set_config(autoSkipNonRecoverableData=said)
    assert gather().facts.skips_unreadable_ledgers is skips


def test_what_is_young_is_not_asked_again(scene, gather, asked):
    first = gather()
    scene.wait(5)
    asked.clear()
    second = gather(first)
    assert asked == {}
    assert second.brokers is first.brokers
    assert second.publications is first.publications


def test_brokers_are_asked_anew_where_a_change_is_tried_again(gather, asked):
    """Its other half may have heard by then that they skip what they fail to read."""
    first = gather()
    asked.clear()
    gather(first, anew=True)
    assert asked == {"runtime_configs": 1}


def test_brokers_are_asked_again_once_half_of_their_time_is_over(scene, gather, asked):
    first = gather()
    scene.wait(scene.stack.settings.evidence.surroundings_age_max_s / 2 + 1)
    asked.clear()
    gather(first)
    assert asked == {"runtime_configs": 1}
