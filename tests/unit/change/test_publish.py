"""Each fact that forbids a publication keeps its context out, alone; what may go is not held up by
others.
"""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.at_effect import at_effect
from tests.support.sim_scene import TOPIC, Scene
from tests.support.topic_halves import publish_topic
from tiering_assets.change import change_topic, topic_change
from tiering_assets.change.publish import Published
from tiering_assets.change.topic_edit import TopicChange
from tiering_assets.ground.own_policy import TieringMode
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.brakes.pauses import pause
from tiering_assets.look.brakes.scopes import EVERYTHING
from tiering_assets.look.ledger.quarantine import quarantine, win_outcome
from tiering_assets.records import keys
from tiering_assets.records.models import Outcome
from tiering_assets.resources.errors import MetadataConflictError, MetadataError, RefusedError
from tiering_assets.scrub import heal
from tiering_assets.scrub.heal import heal_topic


@pytest.fixture
def scene():
    scene = Scene()
    yield scene
    assert scene.world.monitor.found == []


@pytest.fixture
def proven(scene):
    """The namespace's canary stands; copies of ledgers 0 and 1 of the topic are proven and wait."""
    name = "t/ns/persistent/canary"
    scene.broker.create_topic(name)
    scene.publish(scene.fill(name))
    ids = (0, scene.fill(TOPIC))
    return {i: scene.certify(i).certificate for i in ids}


@pytest.fixture
def told(scene):
    """What the broker does from now on."""
    found = []
    scene.broker._told = lambda what, _ml_name: found.append(what)
    return found


def czxid(scene):
    return scene.stack.topics.read(TOPIC)[1].stat.czxid


def publish(scene, certificates, **how):
    if "ml_czxid" not in how:
        how["ml_czxid"] = czxid(scene)
    return publish_topic(scene.process("publisher"), TOPIC, certificates, **how)


def outcome_of(scene, certificate):
    ledger_id, uid = certificate.record.ledger.ledger_id, certificate.record.uid
    return scene.stack.book.read(Outcome, keys.outcome(ledger_id, uid))


def set_publish(scene, **changes):
    settings = scene.world.settings
    scene.world.settings = replace(settings, publish=replace(settings.publish, **changes))


# ----- the topic


def test_a_topic_that_is_gone_is_told_as_deleted(scene, proven):
    was = czxid(scene)
    scene.broker.delete_topic(TOPIC)
    with pytest.raises(RefusedError, match="the topic was deleted, its metadata node is gone"):
        publish(scene, proven, ml_czxid=was)
    assert outcome_of(scene, proven[0]) is None


def test_a_topic_made_again_wins_no_outcome_for_the_copies_of_the_old_one(scene, proven):
    with pytest.raises(MetadataConflictError, match="its metadata node is a new one"):
        publish(scene, proven, ml_czxid=czxid(scene) - 1)
    assert outcome_of(scene, proven[0]) is None
    assert scene.context() is None


# ----- the gate


LIFTED = {
    "its broker releases": lambda scene: set_lag(scene, 60.0),
    "its broker offloads": lambda scene: scene.set_policy(threshold_bytes=0),
    "brokers skip": lambda scene: scene.set_config(autoSkipNonRecoverableData="true"),
    "paused": lambda scene: pause(
        scene.process(), EVERYTHING, TieringMode.PAUSED, reason="a move", author="a test"
    ),
}


def set_lag(scene, seconds):
    scene.broker.lag_s = seconds


@pytest.mark.parametrize("what", LIFTED)
def test_what_forbids_a_publication_does_not_forbid_to_replace_a_broken_copy(
    scene, proven, what, monkeypatch
):
    """The broken context stands already, so that a sound copy in its place is the one thing that
    helps.
    """
    broken = publish(scene, {0: proven[0]})
    assert isinstance(broken[0], Published)
    uid = proven[0].record.uid
    scene.world.monitor.damaged.add(uid)
    scene.world.rot(proven[0].record.data.key)
    quarantine(scene.stack, 0, uid, ml_name=TOPIC, reason="rot", previous="")
    sound: dict[int, Any] = {}

    def stop(_stack, _ml_name, certificates, *_rest):
        sound.update(certificates)
        return {}

    monkeypatch.setattr(heal, "_publish", stop)
    heal_topic(scene.process(), TOPIC, {0: uid})
    set_publish(scene, broker_may_release=False, coexist=False)
    LIFTED[what](scene)
    if what == "paused":
        assert publish(scene, {1: proven[1]})[1].reason is Reason.PAUSED
    else:
        with pytest.raises(RefusedError, match="To lift it"):
            publish(scene, {1: proven[1]})
    assert scene.context(1) is None
    assert isinstance(publish(scene, sound, replacing={0: uid})[0], Published)
    assert scene.context(0).uid == sound[0].record.uid


def test_a_topic_that_its_broker_does_not_list_is_not_published(scene, proven):
    scene.broker.list_topics = lambda _namespace: ["persistent://t/ns/canary"]
    with pytest.raises(RefusedError, match="the broker lists no such topic"):
        publish(scene, proven)
    assert scene.context() is None


# ----- the copies


def test_a_context_of_a_run_that_died_stays_where_its_copy_was_not_found_changed(scene, proven):
    """Its objects cannot be looked at, as the store's name is another one: that says nothing of
    them.
    """

    def die():
        raise MetadataError("killed")

    scene.at_call("broker", "read_entry", die)
    with pytest.raises(MetadataError):
        publish(scene, {0: proven[0]})
    scene.world.objects._bucket = "another-bucket"
    assert "place differs" in str(publish(scene, {0: proven[0]})[0])
    assert scene.context().uid == proven[0].record.uid
    assert scene.withdrawals() == []


def test_an_abandoned_copy_is_not_published(scene, proven):
    assert win_outcome(scene.stack, proven[0], "abandon", reason="a sweep") is not None
    results = publish(scene, proven)
    assert "was abandoned by another run; offload the ledger again" in str(results[0])
    assert scene.context(0) is None
    assert isinstance(results[1], Published)
    assert scene.context(1) is not None


def test_where_no_copy_is_sound_the_broker_is_not_asked_what_its_topic_is_busy_with(scene, proven):
    """Asking loads a topic; so does an unload for an earlier undo."""
    scene.broker.restart()
    scene.broker.load(
        "t/ns/persistent/canary"
    )  # bundles are owned: whether ours is loaded is unknown
    for ledger_id, stored in proven.items():
        uid = stored.record.uid
        quarantine(scene.stack, ledger_id, uid, ml_name=TOPIC, reason="rot", previous="")
    for result in publish(scene, proven).values():
        assert "is quarantined since it was certified" in str(result)
    assert TOPIC not in scene.broker.topics


# ----- the canary


def test_with_a_canary_all_go_out_with_one_reload(scene, proven, told):
    assert all(isinstance(one, Published) for one in publish(scene, proven).values())
    assert told.count("unloaded") == 1


def test_without_a_canary_one_that_waits_holds_up_no_other(scene, told):
    """While the first is about to be published its broker offloads it; the second stands for
    all.
    """
    second = scene.fill(TOPIC, b"a longer entry", b"than those of the first")
    certificates = {i: scene.certify(i).certificate for i in (0, second)}

    def offload():
        assert scene.broker.offload(TOPIC)

    scene.at_call("broker", "activity", offload)
    results = publish(scene, certificates)
    assert isinstance(results[0], Wait), results[0]
    assert results[0].reason is Reason.PUBLISHED
    assert isinstance(results[second], Published)
    assert scene.canary().ledger_id == second


def test_a_canary_that_stands_stays_as_it_is(scene, proven):
    before = scene.canary()
    scene.wait(3600)
    publish(scene, proven)
    assert scene.canary() == before


def test_a_canary_that_runs_out_meanwhile_is_not_renewed_by_what_nobody_read(
    scene, proven, monkeypatch
):
    """It stood when the work began, so that an idle topic was not loaded to read from it."""
    scene.idle()
    before = scene.canary()
    scene.wait(scene.stack.settings.evidence.canary_age_max_s - 300)

    @at_effect("publish.context_set")
    def written():
        scene.wait(600)

    monkeypatch.setattr(topic_change, "reach", written)
    assert all(isinstance(one, Published) for one in publish(scene, proven).values())
    assert TOPIC not in scene.broker.topics
    assert scene.canary() == before


def test_what_is_published_stays_so_whatever_forbids_it_right_after(scene):
    """A look at what is left to publish, where nothing is, must not hide what was done."""
    certificate = scene.certify().certificate

    def meanwhile():
        scene.wait(scene.stack.settings.evidence.surroundings_age_max_s)
        scene.set_policy(bucket="elsewhere")

    scene.at_call("broker", "read_entry", meanwhile)
    assert isinstance(publish(scene, {0: certificate})[0], Published)


# ----- where nothing is left to publish


@pytest.fixture
def changes(monkeypatch):
    """The changes of topics that are asked for."""
    asked: list[TopicChange] = []

    def change(stack, ml_name, change, **how):
        asked.append(change)
        return topic_change.make_change(stack, ml_name, change, **how)

    monkeypatch.setattr(change_topic, "make_change", change)
    return asked


def test_what_stands_already_asks_for_no_change(scene, proven, changes):
    publish(scene, proven)
    assert len(changes) == 1
    assert all(one.noop for one in publish(scene, proven).values())
    assert len(changes) == 1


def test_what_vanished_while_its_evidence_got_too_old_is_not_tried_again(scene, proven, changes):
    def meanwhile():
        scene.wait(scene.stack.settings.evidence.age_max_s + 1)
        for certificate in proven.values():
            scene.world.objects.delete(certificate.record.data.key)

    scene.at_call("broker", "activity", meanwhile)
    for result in publish(scene, proven).values():
        assert "is not the certified one any more" in str(result)
    assert len(changes) == 1


# ----- evidence that got too old


@pytest.mark.parametrize("changes", [False, True])
def test_a_policy_that_was_asked_for_too_long_ago_is_asked_for_again(scene, proven, changes):
    def meanwhile():
        scene.wait(scene.stack.settings.evidence.surroundings_age_max_s + 1)
        if changes:
            scene.set_policy(bucket="elsewhere")

    scene.at_call("broker", "activity", meanwhile)
    if changes:
        with pytest.raises(RefusedError, match="its broker would not read our bucket"):
            publish(scene, proven)
        assert scene.context() is None
    else:
        assert all(isinstance(one, Published) for one in publish(scene, proven).values())
