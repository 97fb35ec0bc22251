"""What a run, a sensor and a person are told of a ledger that our own unload closed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.admin_sim import running_admin_simulator, tell_broker
from tests.support.sim_scene import TAIL, TOPIC, scene_with_a_tail
from tiering_assets.automation import admission
from tiering_assets.automation.admission import AWAKE_S, Offloads
from tiering_assets.automation.rounds import walk
from tiering_assets.automation.tick_memory import TickMemory
from tiering_assets.batch import pipeline
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.change.disturb import not_due, pending_due_at
from tiering_assets.explain.backlog import explain_backlog, explain_ledger
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy
from tiering_assets.policy.policies import open_policies
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate
from tiering_assets.resources.metastore.ledger_info import encode_managed_ledger
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.settings import BrokerSettings

DAY = 86400.0


@pytest.fixture
def scene():
    return scene_with_a_tail()


def test_a_published_ledger_of_the_run_is_no_reason_to_wait_and_none_to_reload(scene):
    states = [one.state for one in offload_batch(scene.process(), [0, TAIL], when_due=True)]
    assert states == ["published", "waiting to disturb"]
    assert len(scene.stack.book.keys(keys.DISTURBANCES)) == 1


def test_what_waits_asks_its_broker_nothing(scene, monkeypatch):
    monkeypatch.setattr(pipeline, "change_topic", pytest.fail)
    assert scene.offload(TAIL, when_due=True).state == "waiting to disturb"


def test_a_ledger_or_topic_that_is_gone_meanwhile_is_told_as_such(scene):
    proven = {TAIL: scene.stack.book.require(Certificate, certificate_key(scene))}
    trim_list(scene)
    assert not_due(scene.stack, TOPIC, proven) == frozenset()
    del scene.cluster.metadata.nodes[managed_ledger_path(TOPIC)]
    assert not_due(scene.stack, TOPIC, proven) == frozenset()


def test_a_ledger_that_is_not_closed_is_no_reason(scene):
    topic, _node = scene.stack.topics.read(TOPIC)
    [still_open] = [one.ledger_id for one in topic.ledgers if one.is_open]
    waiting = {still_open: 10**12}
    assert pending_due_at(scene.stack.settings.publish, topic, waiting) is None


def certificate_key(scene):
    [key] = scene.stack.book.keys(keys.certificates_of(TAIL))
    return key


def trim_list(scene):
    """The topic lists the tail no more."""
    topic, _node = scene.stack.topics.read(TOPIC)
    message = topic.message_copy()
    kept = [one for one in message.ledgerInfo if one.ledgerId != TAIL]
    del message.ledgerInfo[:]
    message.ledgerInfo.extend(kept)
    path = managed_ledger_path(TOPIC)
    scene.cluster.metadata.put(path, encode_managed_ledger(topic.with_message(message)))


@pytest.fixture
def told(scene):
    """A run's stack whose policies a broker tells: every closed ledger is to be offloaded."""
    stack = scene.process()
    with running_admin_simulator() as admin:
        tell_broker(admin, stack.settings)
        settings = replace(stack.settings, broker=BrokerSettings(admin_url=admin.url, timeout_s=10))
        own = OwnPolicies(default=OwnPolicy(threshold_bytes=0))
        yield replace(stack, settings=settings, own_policies=own)


def asked_for(stack, memory):
    """What a sensor would ask runs for: to go out when the run finds it due, and to go out now."""
    with open_policies(stack) as policies:
        offloads = Offloads(stack, policies, lambda _ledger_id: True, memory)
        found = walk(stack, offloads.look, after=None, seconds=9, room=9).found
    return [
        (one.ledger_id, how)
        for to in found
        for how in ("copy", "publish")
        for one in getattr(to, how)
    ]


def test_a_sensor_asks_for_a_tail_when_its_wait_is_over_or_nobody_has_the_topic(scene, told):
    memory = TickMemory()
    assert asked_for(told, memory) == []
    scene.idle()
    assert asked_for(told, memory) == []  # it was asked a moment ago
    scene.wait(AWAKE_S)
    assert asked_for(told, memory) == [(TAIL, "copy")]
    scene.broker.load(TOPIC)
    scene.wait(DAY)
    assert asked_for(told, memory) == [(TAIL, "publish")]


def test_a_tick_asks_about_a_bounded_number_of_topics(scene, told, monkeypatch):
    monkeypatch.setattr(admission, "IDLE_ASKED_MAX", 0)
    scene.idle()
    assert asked_for(told, TickMemory()) == []


def test_why_names_the_time_at_which_it_goes_out(scene, told):
    closed_at = scene.stack.topics.read(TOPIC)[0].ledger(TAIL).closed_at
    because = explain_ledger(told, TAIL, loads_nothing=True).because
    assert because.reason is BacklogReason.WAITING_TO_DISTURB
    by = closed_at + timedelta(seconds=DAY)
    assert f", by {by:%Y-%m-%d %H:%M:%S}Z, or once no broker" in because.detail
    fleet = {one.view.ledger_id: one.because for one in explain_backlog(told, loads_nothing=True)}
    assert fleet[TAIL] == because
    scene.wait(DAY)
    assert explain_ledger(told, TAIL, loads_nothing=True).because.detail.endswith(", which is due")
