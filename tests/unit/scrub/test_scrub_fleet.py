"""Which copies a scrub knows of, and what of each."""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.support.copies import BLOCK_BYTES, BROKERS, OURS, PAYLOADS, Copy
from tests.support.left_behind import PATH
from tests.support.sim_scene import TOPIC
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.scrub.fleet import find_fleet
from tiering_assets.scrub.heal import Healed, heal_topic
from tiering_assets.scrub.scrub import scrub


def find(copy, ml_names=None):
    return find_fleet(copy.scene.process(), ml_names)


def doubt(copy, uid):
    quarantine(copy.scene.stack, copy.ledger_id, uid, ml_name=TOPIC, reason="rot", previous="")
    copy.scene.world.monitor.damaged.add(uid)


@pytest.mark.parametrize("who", [OURS, BROKERS])
def test_a_copy_is_known_by_what_lies_there(who):
    one = Copy(who).candidate
    assert one.object_bytes == len(PAYLOADS) * BLOCK_BYTES
    assert one.certified is (who == OURS)
    assert one.in_bookkeeper
    assert not one.failing


def test_one_whose_ledger_bookkeeper_lost_is_known_to_be_the_last():
    copy = Copy()
    copy.lose_ledger()
    assert copy.candidate.in_bookkeeper is False


def test_the_topics_that_are_named_are_the_only_ones():
    copy = Copy()
    other = "t/ns/persistent/other"
    copy.scene.broker.create_topic(other)
    copy.scene.publish(copy.scene.fill(other))
    assert {one.ml_name for one in find(copy).candidates} == {TOPIC, other}
    assert {one.ml_name for one in find(copy, [TOPIC]).candidates} == {TOPIC}


def test_what_a_broker_has_not_completed_is_no_copy():
    copy = Copy()
    other = copy.scene.fill(TOPIC)
    assert not copy.scene.broker.offload(TOPIC, stops_after=1)
    assert copy.scene.context(other) is not None
    assert [one.ledger_id for one in find(copy).candidates] == [copy.ledger_id]


def test_what_a_broker_put_into_another_bucket_is_not_looked_for_here():
    copy = Copy(BROKERS)
    nodes = copy.scene.cluster.metadata.nodes
    found = decode_managed_ledger(nodes[PATH].data)
    message = found.message_copy()
    for one in message.ledgerInfo[0].offloadContext.driverMetadata.properties:
        if one.key == "bucket":
            one.value = "elsewhere"
    data = encode_managed_ledger(found.with_message(message))
    nodes[PATH] = replace(nodes[PATH], data=data)
    assert find(copy).candidates == ()


# ----- whose place a copy took


def test_a_copy_that_took_nobodys_place_has_nothing_to_finish():
    assert find(Copy()).replaced == {}


@pytest.fixture
def healed():
    """A copy that has taken the place of a broken one, and that one's attempt."""
    copy = Copy()
    was = copy.uid
    doubt(copy, was)
    copy.scene.wait(5)
    result = heal_topic(copy.scene.process(), TOPIC, {copy.ledger_id: was})
    assert isinstance(result[copy.ledger_id], Healed)
    return copy, was


def test_a_copy_that_took_a_broken_ones_place_names_it(healed):
    copy, was = healed
    assert find(copy).replaced == {copy.ledger_id: (was,)}


def test_one_that_is_broken_itself_has_nothing_to_finish(healed):
    copy, _was = healed
    copy.scene.wait(5)
    doubt(copy, copy.uid)
    assert find(copy).replaced == {}


def test_one_of_a_broker_has_nothing_to_finish():
    copy = Copy(BROKERS)
    doubt(copy, UUID(int=3))
    assert find(copy).replaced == {}


def test_one_that_was_doubted_and_read_well_since_did_not_take_its_own_place():
    copy = Copy()
    doubt(copy, copy.uid)
    copy.scene.wait(5)
    before = copy.uid
    scrub(copy.scene.process(), deep=True, heal=False)
    assert copy.uid == before
    assert not copy.candidate.failing
    assert find(copy).replaced == {}


def test_the_ledgers_that_are_named_are_the_only_ones():
    copy = Copy()
    other = copy.scene.fill(TOPIC)
    copy.scene.publish(other)
    stack = copy.scene.process()
    assert {one.ledger_id for one in find_fleet(stack).candidates} == {copy.ledger_id, other}
    assert [one.ledger_id for one in find_fleet(stack, [TOPIC], [other]).candidates] == [other]
