"""What a look at a certified copy asks, and of whom it is recorded."""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.support.pulsar_entries import MESSAGES_IN_BATCH, message
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.ledger.verification import rows_by_part
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.resources.errors import ObjectNotFoundError, ObjectStoreError, RefusedError
from tiering_assets.verify import verify as verification_step
from tiering_assets.verify.reverify import Reverified, certified_copy
from tiering_assets.verify.verify_again import verify_again, verify_object


@pytest.fixture
def scene():
    scene = Scene()
    scene.publish()
    return scene


def verify(scene, ledger_id=0, *, source=False):
    found = verify_again(scene.process(), [ledger_id], source=source, found_by="verify")[ledger_id]
    assert isinstance(found, Reverified), found
    return found


def rot(scene):
    uid = scene.context().uid
    scene.world.monitor.damaged.add(uid)
    scene.world.rot(data_key(uid, 0))


def test_a_sound_copy_is_read_once_and_nothing_is_recorded(scene, monkeypatch):
    reads: list[str] = []
    store = type(scene.world.objects)
    really = store.get_range

    def counted(self, key, **how):
        reads.append(key)
        return really(self, key, **how)

    monkeypatch.setattr(store, "get_range", counted)
    found = verify(scene)
    assert (found.findings, found.new, found.with_source) == ((), False, False)
    assert found.notes == ("bookies not asked",)
    assert len(reads) == found.blocks == 1
    assert not scene.is_quarantined(0, scene.context().uid)


def without_messages(rows):
    """As a version that did not know of them has kept them."""
    return {
        part: replace(row, messages=None, publish_min_ms=None, publish_max_ms=None)
        for part, row in rows_by_part(rows).items()
    }


@pytest.mark.parametrize("older", [True, False])
def test_what_a_certificate_says_of_messages_is_compared_with_nothing(monkeypatch, older):
    scene = Scene()
    scene.fill(TOPIC, message(5), message(7, (MESSAGES_IN_BATCH, 10)))
    with monkeypatch.context() as patch:
        if older:
            patch.setattr(verification_step, "rows_by_part", without_messages)
        scene.publish(1)
    stored, _sight = certified_copy(scene.process(), 1)
    [block] = stored.record.blocks
    told = (block.messages, block.publish_min_ms, block.publish_max_ms)
    assert told == ((None, None, None) if older else (11, 5, 7))
    assert verify(scene, 1, source=True).findings == ()


def test_entries_of_anybody_are_certified_without_messages(scene):
    [block] = certified_copy(scene.process(), 0)[0].record.blocks
    assert (block.messages, block.publish_min_ms, block.publish_max_ms) == (None, None, None)
    assert verify(scene, source=True).findings == ()


def test_an_outage_says_nothing_about_the_copy(scene):
    stack = scene.process()
    really = stack.runner.run

    def run(tasks):
        return [replace(row, error="no answer", retryable=True) for row in really(tasks)]

    stack.runner.run = run
    result = verify_again(stack, [0], source=False, found_by="verify")[0]
    assert isinstance(result, ObjectStoreError)
    assert str(result) == "ledger 0 block 1: no answer"
    assert not scene.is_quarantined(0, scene.context().uid)


def test_with_the_bookies_their_digests_are_compared(scene):
    found = verify(scene, source=True)
    assert (found.with_source, found.notes, found.findings) == (True, (), ())


def test_without_the_ledger_the_bookies_are_not_asked(scene):
    scene.fill(TOPIC)
    scene.past_the_lag()
    scene.release()
    found = verify(scene, source=True)
    assert found.with_source is False
    assert found.notes == ("bookies not asked: the bookie copy is released or gone",)


def test_a_data_object_that_is_gone_is_a_finding(scene):
    uid = scene.context().uid
    scene.world.monitor.damaged.add(uid)
    scene.world.objects.delete(data_key(uid, 0))
    found = verify(scene, source=True)
    assert found.findings
    assert found.new is True
    assert found.bytes_read == 0


def test_a_brokers_copy_and_no_copy_are_refused_by_name():
    scene = Scene()
    stack = scene.process()
    with pytest.raises(RefusedError, match="has no certified copy to verify"):
        certified_copy(stack, 0)
    assert scene.broker.offload(TOPIC)
    with pytest.raises(RefusedError, match="has no certificate, so somebody else made it"):
        certified_copy(stack, 0)
    found = verify_again(stack, [0], source=False, found_by="verify")[0]
    assert isinstance(found, RefusedError)


def test_a_certified_copy_that_is_not_published_yet_is_recorded_too():
    scene = Scene()
    certificate = scene.certify().certificate
    assert certificate is not None
    uid = certificate.record.uid
    scene.world.monitor.damaged.add(uid)
    scene.world.rot(data_key(uid, 0))
    assert verify_object(scene.process(), data_key(uid, 0)).findings
    assert scene.is_quarantined(0, uid)


def test_a_copy_that_was_replaced_between_two_looks_is_nobodys_damage(scene, monkeypatch):
    rot(scene)
    broken, looks = scene.context().uid, []
    store = type(scene.world.objects)
    really = store.head

    def replaced(self, key, **how):
        if key == data_key(broken, 0):
            looks.append(key)
            if len(looks) == 2:  # the second look begins: a heal has put another in its place
                quarantine(scene.stack, 0, broken, ml_name=TOPIC, reason="scrub", previous="0" * 64)
        return really(self, key, **how)

    monkeypatch.setattr(store, "head", replaced)
    assert verify(scene).new is False


def test_an_unfinished_attempt_of_ours_is_not_recorded():
    scene = Scene()
    certificate = scene.certify().certificate
    assert certificate is not None
    uid = certificate.record.uid
    scene.world.objects.delete(scene.stack.book.prefix + keys.certificate(0, uid))
    scene.world.objects.delete(index_key(uid, 0))
    assert verify_object(scene.process(), data_key(uid, 0)).findings
    assert not scene.is_quarantined(0, uid)
    assert scene.stack.book.keys(keys.DAMAGE) == []
    with pytest.raises(ObjectNotFoundError):
        verify_object(scene.process(), data_key(UUID(int=7), 0))


def test_a_sound_object_is_looked_at_once(scene):
    check = verify_object(scene.process(), data_key(scene.context().uid, 0))
    assert (check.findings, check.entries) == ((), 2)
