"""The deletion lag runs from the publication that stands, not from one that was taken back."""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, is_released, reasons_of
from tiering_assets.change.topic_change import undo
from tiering_assets.change.topic_edit import Copy, TopicChange
from tiering_assets.ground.evidence import counts_for


def withdraw(scene, certificate):
    record = certificate.record
    change = TopicChange(contexts={0: Copy(record.uid, record.ledger.last_entry_id)})
    czxid = scene.stack.topics.read(TOPIC)[1].stat.czxid
    undo(scene.process(), TOPIC, change, czxid=czxid, why="a test")


def test_taken_out_and_published_again_waits_for_a_lag_of_its_own(scene):
    certificate = scene.publish().certificate
    scene.past_the_lag()
    withdraw(scene, certificate)
    assert scene.context() is None
    scene.publish()
    scene.wait(5)
    assert "deletion lag has not elapsed" in reasons_of(scene.release())
    first, second = (one.record.ledgers[0].context_ms for one in scene.publications())
    assert first != second == scene.context().timestamp_ms
    scene.past_the_lag()
    assert is_released(scene.release())


def test_every_withdrawal_is_written_before_the_context_goes(scene):
    certificate = scene.publish().certificate
    withdraw(scene, certificate)
    [withdrawal] = scene.withdrawals()
    assert [(one.ledger_id, one.uid) for one in withdrawal.withdrawn] == [
        (0, certificate.record.uid)
    ]
    assert withdrawal.why.endswith("a test")


def test_confirming_again_what_stands_and_is_recorded_writes_nothing(scene):
    scene.publish()
    before = set(scene.world.objects.peek_keys())
    assert scene.publish().noop
    new = set(scene.world.objects.peek_keys()) - before
    of_any_run = ("/claims/", "/day-book/")
    assert {key for key in new if not any(folder in key for folder in of_any_run)} == set()


def test_a_context_without_a_record_is_confirmed_with_the_timestamp_that_stands(scene):
    scene.publish()
    stamp = scene.context().timestamp_ms
    for publication in scene.publications():
        scene.world.objects.delete(scene.stack.book.prefix + publication.key)
    scene.wait(1000)
    assert "not confirmed" in reasons_of(scene.release())
    scene.publish()
    [publication] = scene.publications()
    assert publication.record.ledgers[0].context_ms == stamp == scene.context().timestamp_ms
    assert "deletion lag has not elapsed" in reasons_of(scene.release())


@pytest.mark.parametrize("taken_out", [False, True])
def test_a_record_of_before_counts_from_its_confirmation(scene, taken_out, monkeypatch):
    """Records of a time when the timestamp was not kept."""
    certificate = scene.publish().certificate
    [stored] = scene.publications()
    old = replace(
        stored.record,
        ledgers=tuple(replace(one, context_ms=None) for one in stored.record.ledgers),
    )
    scene.stack.book.replace(stored, old)
    scene.past_the_lag()
    if taken_out:
        withdraw(scene, certificate)
        scene.publish()
        assert "deletion lag has not elapsed" in reasons_of(scene.release())
    else:
        assert is_released(scene.release())


def test_a_timestamp_counts_to_the_millisecond_and_none_counts_from_before(scene):
    at = scene.stack.now()
    ms = int(at.timestamp() * 1000)
    assert counts_for(ms, ms, confirmed_at=at)
    assert not counts_for(ms, ms - 1, confirmed_at=at)
    assert counts_for(ms, None, confirmed_at=at)
    assert not counts_for(ms + 1, None, confirmed_at=at)
