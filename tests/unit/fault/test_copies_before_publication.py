"""A certified copy is looked at again before anybody is told to read it."""

import pytest

from tests.support.sim_scene import TOPIC
from tests.support.topic_halves import publish_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.change.copies_now import look_at_copies, quarantine_changed
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.clean.orphans import Sweep
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.models import Outcome
from tiering_assets.resources.errors import CopyChangedError, MetadataError


@pytest.fixture
def certified(scene):
    """The namespace's canary stands, and ledger 0 is proven and waits; the topic is idle."""
    scene.broker.create_topic("t/ns/persistent/canary")
    other = scene.fill("t/ns/persistent/canary")
    scene.publish(other)
    outcome = scene.certify()
    scene.idle()
    return outcome.certificate


def vanish(scene, record):
    scene.world.objects.delete(record.data.key)
    scene.world.objects.delete(record.index.key)


def replace_data(scene, record):
    scene.world.objects.overwrite(record.data.key, b"other bytes")


def replace_index(scene, record):
    scene.world.objects.overwrite(record.index.key, b"other bytes")


DISASTERS = pytest.mark.parametrize("disaster", [vanish, replace_data, replace_index])


@DISASTERS
def test_a_copy_that_changed_since_its_certificate_is_not_published(scene, certified, disaster):
    record = certified.record
    disaster(scene, record)
    result = publish_topic(
        scene.stack, TOPIC, {0: certified}, ml_czxid=scene.stack.topics.read(TOPIC)[1].stat.czxid
    )[0]
    assert isinstance(result, CopyChangedError)
    assert f"attempt {record.uid} is not the certified one any more" in str(result)
    assert scene.context() is None
    assert scene.is_quarantined(0, record.uid)
    assert scene.stack.book.read(Outcome, keys.outcome(0, record.uid)) is None


@DISASTERS
def test_the_same_run_copies_it_anew(scene, certified, disaster):
    disaster(scene, certified.record)
    outcome = scene.publish()
    assert outcome.copied
    assert outcome.certificate.record.uid != certified.record.uid
    assert scene.context().uid == outcome.certificate.record.uid
    scene.past_the_lag()
    scene.release()
    assert not scene.cluster.has_node(0)


def test_an_object_in_another_bucket_says_nothing_about_the_copy(scene, certified):
    scene.world.objects._bucket = "another-bucket"
    found = look_at_copies(scene.stack, {0: certified})
    assert "place differs" in str(found.wrong[0])
    quarantine_changed(scene.stack, found.wrong, {0: certified})
    assert not scene.is_quarantined(0, certified.record.uid)


def crash_before_the_record(scene):
    """The context is written, and the run dies before it is confirmed."""

    def die():
        raise MetadataError("killed")

    scene.at_call("broker", "locate", die, nth=2)
    with pytest.raises(MetadataError):
        publish_topic(
            scene.stack,
            TOPIC,
            {0: scene.offload(publish=False).certificate},
            ml_czxid=scene.stack.topics.read(TOPIC)[1].stat.czxid,
        )
    del scene.broker.locate
    assert scene.context() is not None
    assert len(scene.publications()) == 0


@DISASTERS
def test_a_context_of_a_run_that_died_is_taken_out_when_its_copy_changed(
    scene, certified, disaster
):
    scene.broker.load(TOPIC)
    crash_before_the_record(scene)
    disaster(scene, certified.record)
    scene.world.monitor.damaged.add(certified.record.uid)
    result = publish_topic(
        scene.stack, TOPIC, {0: certified}, ml_czxid=scene.stack.topics.read(TOPIC)[1].stat.czxid
    )[0]
    assert isinstance(result, CopyChangedError)
    assert scene.context() is None
    [withdrawal] = scene.withdrawals()
    assert [one.ledger_id for one in withdrawal.withdrawn] == [0]
    assert scene.stack.broker.read_entry("persistent://t/ns/orders", 0, 0) == b"first"


def test_an_attempt_that_won_and_never_stood_is_swept_when_it_is_quarantined(scene, certified):
    uid = certified.record.uid
    scene.broker.load(TOPIC)
    crash_before_the_record(scene)
    scene.world.monitor.damaged.add(uid)
    replace_data(scene, certified.record)
    assert scene.publish().certificate.record.uid != uid
    [kept] = [
        one for one in clean_up(scene.stack, execute=True).attempts if one.attempt.record.uid == uid
    ]
    assert isinstance(kept.decision, NotNow)
    scene.wait(2 * 86400)
    [swept] = [
        one for one in clean_up(scene.stack, execute=True).attempts if one.attempt.record.uid == uid
    ]
    assert isinstance(swept.decision, Sweep)
    assert not [key for key in scene.world.objects.peek_keys() if key.startswith(str(uid))]


def test_what_was_looked_at_too_long_ago_is_looked_at_again(scene, certified):
    """The store is slow between the look and the write; meanwhile the copy vanishes."""

    def meanwhile():
        scene.wait(scene.stack.settings.evidence.age_max_s + 1)
        vanish(scene, certified.record)

    scene.at_call("broker", "activity", meanwhile)
    scene.broker.load(TOPIC)
    outcome = scene.publish()
    assert outcome.certificate.record.uid != certified.record.uid


def test_a_run_that_is_always_too_late_writes_nothing(scene, certified):
    stack = scene.stack
    too_long = stack.settings.evidence.age_max_s + 1
    really = type(stack.book).create_or_read

    def slow(book, key, record):
        if key.startswith("outcomes/"):
            scene.wait(too_long)
        return really(book, key, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(stack.book), "create_or_read", slow)
        head = type(scene.world.objects).head
        patch.setattr(
            type(scene.world.objects),
            "head",
            lambda self, key, **how: (scene.wait(too_long), head(self, key, **how))[1],
        )
        outcome = scene.offload()
    assert "too long ago to publish on it" in str(outcome.error)
    assert scene.context() is None
    assert not scene.is_quarantined(0, certified.record.uid)


def test_a_canary_counts_for_a_week_and_then_another_ledger_stands_first(scene):
    scene.publish()
    day = 86400
    proven_at = scene.canary().proven_at
    scene.wait(6 * day)
    scene.publish(scene.fill(TOPIC))
    assert scene.canary().proven_at == proven_at
    scene.wait(1.1 * day)
    told = []
    scene.broker._told = lambda what, _ml_name: told.append(what)
    outcomes = offload_batch(scene.process(), [scene.fill(TOPIC), scene.fill(TOPIC)])
    assert [one.state for one in outcomes] == ["published", "published"]
    assert told.count("unloaded") == 2  # one for the canary, one for the other
    assert scene.canary().proven_at > proven_at
    assert scene.canary().ledger_id == outcomes[0].ledger_id
