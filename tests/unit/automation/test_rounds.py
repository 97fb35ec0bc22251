"""A bounded look over topics: where it goes on, what it passes, and when it fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.automation.rounds import walk
from tiering_assets.resources.errors import BrokerError, TierkeeperError
from tiering_assets.resources.metastore.store import Node


def a_stack(topics):
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    for name in topics:
        site.broker.create_topic(f"t/ns/persistent/{name}")
    return Process(world, "rounds", site).stack()


NAMES = [f"topic-{number:02d}" for number in range(7)]


def short(ml_name):
    return ml_name.rpartition("/")[2]


@given(room=st.integers(1, 9))
def test_rounds_of_any_size_look_at_every_topic_once(room):
    stack = a_stack(NAMES)
    seen: list[str] = []
    after, rounds = None, 0
    while True:
        found = walk(stack, lambda t: [t.ml_name], after=after, seconds=60, room=room)
        seen += found.found
        rounds += 1
        after = found.resume
        if after is None:
            break
    assert [short(name) for name in seen] == NAMES
    assert rounds <= -(-len(NAMES) // room) + 1


def test_without_time_a_round_still_looks_at_one_topic():
    stack = a_stack(NAMES)
    found = walk(stack, lambda t: [t.ml_name], after=None, seconds=0, room=100)
    assert [short(name) for name in found.found] == NAMES[:1]
    assert short(found.resume) == NAMES[0]


def test_a_topic_that_cannot_be_looked_at_pins_nothing():
    stack = a_stack(NAMES)

    def look(topic):
        assert isinstance(topic.node, Node)
        if short(topic.ml_name) == NAMES[2]:
            raise BrokerError("no answer")
        return [topic.ml_name]

    found = walk(stack, look, after=None, seconds=60, room=3)
    assert [short(name) for name in found.found] == [NAMES[0], NAMES[1], NAMES[3]]
    assert {short(name): said for name, said in found.failed.items()} == {NAMES[2]: "no answer"}
    found.require_any()


def test_a_round_in_which_every_topic_failed_is_a_failure():
    stack = a_stack(NAMES)

    def look(topic):
        raise BrokerError(f"no answer about {short(topic.ml_name)}")

    found = walk(stack, look, after=None, seconds=60, room=3)
    with pytest.raises(TierkeeperError, match=r"none of 7 topics could be looked at.*topic-00"):
        found.require_any()


def test_no_topics_are_no_failure():
    found = walk(a_stack([]), lambda _t: [1], after=None, seconds=60, room=3)
    found.require_any()
    assert (found.found, found.resume) == ((), None)


def test_topics_deleted_since_the_cursor_was_written_are_passed():
    stack = a_stack(NAMES)
    found = walk(
        stack, lambda t: [t.ml_name], after="t/ns/persistent/topic-03-gone", seconds=60, room=99
    )
    assert [short(name) for name in found.found] == NAMES[4:]


def test_a_round_ends_when_what_was_found_weighs_enough():
    """A topic may hold thousands of ledgers, and a tick has a minute."""
    found = walk(
        a_stack(NAMES), lambda t: [t.ml_name], after=None, seconds=60, room=10, weigh=lambda _: 4
    )
    assert [short(name) for name in found.found] == NAMES[:3]
