"""A ledger is called what it is, and who asks for what cannot be is told what can."""

import pytest

from tests.support.sim_scene import TOPIC, Scene, is_released, reasons_of
from tiering_assets.explain.ledger_report import report_ledger
from tiering_assets.ground.damage_advice import next_step
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger.plan import plan_ledger
from tiering_assets.offload_format.keys import data_key
from tiering_assets.resources.errors import RefusedError
from tiering_assets.verify.verify_again import verify_again


@pytest.fixture
def scene():
    scene = Scene()
    scene.fill(TOPIC)
    return scene


def test_a_released_ledger_is_not_called_published(scene):
    scene.publish()
    assert scene.offload().state == "published"
    scene.past_the_lag()
    assert is_released(scene.release())
    again = scene.offload()
    assert (again.state, again.copied, again.error) == ("released", False, None)
    planned = plan_ledger(scene.process(), 0, ml_name=TOPIC)
    assert isinstance(planned, Wait)
    assert planned.reason is Reason.RELEASED
    assert str(planned) == f"already released: brokers read the copy {scene.context().uid}"


def test_of_a_brokers_copy_there_is_one_sentence_and_a_next_step(scene):
    assert scene.broker.offload(TOPIC)
    uid = scene.context().uid
    said = reasons_of(scene.release())
    assert said.startswith(f"a broker's own offloader made the copy {uid}")
    assert "None" not in said
    report = report_ledger(scene.process(), 0)
    assert report.reasons == (said,)
    assert report.next_step.startswith(f"tierkeeper object verify {uid}-ledger-0 ")
    scene.past_the_lag()
    assert reasons_of(scene.release()) == said
    assert scene.cluster.has_node(0)


def test_a_deleted_topics_release_is_refused_and_no_retry(scene):
    scene.publish()
    scene.past_the_lag()
    scene.broker.delete_topic(TOPIC)
    with pytest.raises(RefusedError, match="the topic was deleted") as refused:
        scene.release()
    assert refused.value.retryable is False
    assert "tierkeeper expired-copy list" in str(refused.value)


def test_a_published_copys_next_step_is_what_moves_it(scene):
    scene.publish()
    assert report_ledger(scene.process(), 0).next_step == "wait, or lift the reasons"
    scene.past_the_lag()
    assert report_ledger(scene.process(), 0).next_step == "tierkeeper ledger release 0 --execute"
    key = data_key(scene.context().uid, 0)
    body, _metadata = scene.world.objects.peek(key)
    scene.world.objects.rot(key, body[:-1] + bytes([body[-1] ^ 1]))
    [found] = verify_again(scene.process(), [0], source=False, found_by="ledger verify").values()
    assert not isinstance(found, Exception)
    assert found.findings
    assert report_ledger(scene.process(), 0).next_step == next_step(TOPIC)
