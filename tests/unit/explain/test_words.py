"""A ledger is called what it is, and who asks for what cannot be is told what can."""

import pytest

from tests.support.sim_scene import TOPIC, Scene, is_released, reasons_of
from tiering_assets.explain.ledger_report import report_ledger
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger.plan import plan_ledger
from tiering_assets.resources.errors import RefusedError


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
