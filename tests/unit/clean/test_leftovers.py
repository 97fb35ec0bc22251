"""What a broker left goes while its ledger is closed, listed and named by nobody, and at no other
time.
"""

from dataclasses import replace
from hashlib import sha256
from uuid import UUID

import pytest

from tests.support.at_effect import at_effect
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.clean.leftovers_rules import Collect
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.models import Damage
from tiering_assets.resources.errors import BrokerError
from tiering_assets.resources.metastore.ledger_info import encode_managed_ledger
from tiering_assets.resources.metastore.topic_names import (
    SHADOW_SOURCE_PROPERTY,
    managed_ledger_path,
)
from tiering_assets.resources.pulsar.activity import TopicActivity

PATH = managed_ledger_path(TOPIC)


@pytest.fixture
def scene():
    """Its broker copied ledger 0 whole and died before its context was complete; noted, days
    ago.
    """
    scene = Scene()
    scene.broker.offload(TOPIC, stops_after=1)
    clean_up(scene.process(), execute=True)
    scene.wait(3 * 86400)
    return scene


def open_again(scene):
    scene.cluster._write(0, scene.cluster._metadata(0, closed=False))


def forget_topic(scene):
    del scene.cluster.metadata.nodes[PATH]


def lose(scene):
    scene.cluster.delete_ledger(0)


def clean(scene):
    [leaving] = clean_up(scene.process(), execute=True).leftovers
    assert leaving.objects
    return leaving, [key for key in leaving.objects if scene.world.objects.peek(key) is not None]


def test_it_goes_when_nothing_forbids_it(scene):
    leaving, there = clean(scene)
    assert leaving.done is not None
    assert there == []


def test_a_slow_broker_has_a_guard_age_to_finish():
    scene = Scene()
    scene.broker.offload(TOPIC, stops_after=1)
    clean_up(scene.process(), execute=True)
    scene.wait(scene.stack.settings.release.guard_age_s / 2)
    leaving, there = clean(scene)
    assert isinstance(leaving.decision, NotNow)
    assert len(there) == 2


@pytest.mark.parametrize("change", [open_again, forget_topic, lose])
def test_it_is_left_where_it_may_be_the_only_copy(scene, change):
    change(scene)
    leaving, there = clean(scene)
    assert isinstance(leaving.decision, NotNow)
    assert there == [*leaving.objects]


@pytest.mark.parametrize("change", [open_again, lose, forget_topic])
def test_what_changes_between_intent_and_delete_keeps_it(scene, change, monkeypatch):
    @at_effect("sweep.intended")
    def struck():
        change(scene)

    monkeypatch.setattr("tiering_assets.clean.leftovers.reach", struck)
    leaving, there = clean(scene)
    assert isinstance(leaving.decision, NotNow)
    assert there == [*leaving.objects]


# ----- the reload before the delete


def unloads(scene):
    """A list that grows by each unload of ours from here on."""
    told: list[str] = []
    really = scene.broker.unload_topic

    def unload(topic):
        told.append(topic)
        really(topic)

    scene.broker.unload_topic = unload
    return told


def test_the_topic_that_names_it_is_reloaded_before_it_goes(scene):
    told = unloads(scene)
    leaving, there = clean(scene)
    assert leaving.done is not None
    assert there == []
    assert told == ["persistent://t/ns/orders"]
    assert scene.context() is None


def test_an_idle_topic_is_not_loaded_for_it(scene):
    scene.idle()
    told = unloads(scene)
    assert clean(scene)[0].done is not None
    assert told == []
    assert scene.broker.topics == {}


@pytest.mark.parametrize("stops_after", [2, 1])
def test_what_no_node_names_any_more_goes_without_a_reload(scene, stops_after):
    """Its broker tried again: whole the second time, or at work with it."""
    uid = scene.context().uid
    scene.broker.offload(TOPIC, stops_after=stops_after)
    told = unloads(scene)
    found = {one.pair[1]: one for one in clean_up(scene.process(), execute=True).leftovers}
    assert found[uid].done is not None
    assert told == []
    assert scene.context().uid != uid
    assert scene.world.objects.peek(f"{scene.context().uid}-ledger-0") is not None


def test_a_run_that_died_before_the_reload_is_gone_on_with_by_a_reload(scene, monkeypatch):
    @at_effect("sweep.taken_out")
    def dies():
        raise BrokerError("and this process, too")

    with monkeypatch.context() as patch:
        patch.setattr("tiering_assets.clean.leftovers.reach", dies)
        leaving, there = clean(scene)
    assert (leaving.error, len(there)) == ("and this process, too", 2)
    told = unloads(scene)
    leaving, there = clean(scene)
    assert leaving.done is not None
    assert len(told) == 1


def test_a_busy_topic_keeps_it_and_its_name(scene):
    scene.broker.activity = lambda _topic: TopicActivity(
        consumers=10**9, delayed_messages=0, transactions=0
    )
    leaving, there = clean(scene)
    assert isinstance(leaving.decision, NotNow)
    assert "consumers" in str(leaving.decision)
    assert len(there) == 2
    assert scene.context() is not None


def test_bookies_that_run_short_before_the_reload_keep_it(scene, monkeypatch):
    @at_effect("sweep.taken_out")
    def struck():
        scene.cluster.be_short(True)

    monkeypatch.setattr("tiering_assets.clean.leftovers.reach", struck)
    leaving, there = clean(scene)
    assert isinstance(leaving.decision, NotNow)
    assert len(there) == 2


# ----- right before the delete


def name_again(scene):
    scene.cluster.metadata.nodes[PATH] = scene.named


def trim(scene):
    edit_list(scene, lambda infos: [one for one in infos if one.ledgerId != 0])


def edit_list(scene, change):
    topic, _node = scene.stack.topics.read(TOPIC)
    message = topic.message_copy()
    kept = change([*message.ledgerInfo])
    del message.ledgerInfo[:]
    message.ledgerInfo.extend(kept)
    scene.cluster.metadata.put(PATH, encode_managed_ledger(topic.with_message(message)))


@pytest.mark.parametrize("change", [name_again, trim, forget_topic])
def test_what_the_node_says_after_the_reload_keeps_it(scene, change, monkeypatch):
    scene.named = scene.cluster.metadata.nodes[PATH]

    @at_effect("sweep.reloaded")
    def struck():
        change(scene)

    monkeypatch.setattr("tiering_assets.clean.leftovers.reach", struck)
    leaving, there = clean(scene)
    assert isinstance(leaving.decision, NotNow)
    assert "its topic changed meanwhile" in str(leaving.decision)
    assert len(there) == 2


# ----- what a look finds


def look(scene):
    [leaving] = clean_up(scene.process(), execute=False).leftovers
    return leaving.decision


def list_as_open(scene):
    def opened(infos):
        infos[0].timestamp = 0
        return infos

    edit_list(scene, opened)


def finish(scene):
    """Its broker lived after all, and completes its context."""

    def completed(infos):
        infos[0].offloadContext.complete = True
        return infos

    edit_list(scene, completed)


def be_shadow(scene):
    topic, _node = scene.stack.topics.read(TOPIC)
    message = topic.message_copy()
    message.properties.add(key=SHADOW_SOURCE_PROPERTY, value="persistent://t/ns/source")
    scene.cluster.metadata.put(PATH, encode_managed_ledger(topic.with_message(message)))


def send_a_part(scene):
    """To an upload that was begun long ago."""
    key = f"{scene.context().uid}-ledger-0"
    upload_id = scene.world.objects.create_upload(key, metadata={})
    scene.wait(3 * 86400)
    digest = sha256(b"x").digest()
    scene.world.objects.upload_part(key, upload_id, part_number=1, body=b"x", sha256=digest)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (open_again, "BookKeeper does not have the closed ledger"),
        (finish, "the broker finished it"),
        (list_as_open, "does not list the ledger as closed"),
        (be_shadow, "shadow"),
        (send_a_part, "the broker is at work"),
    ],
)
def test_a_dry_run_says_why_it_stays(scene, change, reason):
    assert isinstance(look(scene), Collect)
    change(scene)
    decision = look(scene)
    assert isinstance(decision, NotNow)
    assert reason in str(decision)


def test_what_stays_for_another_reason_is_not_noted():
    scene = Scene()
    scene.broker.offload(TOPIC, stops_after=1)
    be_shadow(scene)
    [leaving] = clean_up(scene.process(), execute=True).leftovers
    assert isinstance(leaving.decision, NotNow)
    assert scene.stack.book.keys("leftovers/") == []


def test_one_of_unknown_topic_is_told_and_stops_no_other(scene):
    stranger = UUID(int=7)
    stack = scene.process()
    scene.world.objects.put(f"{stranger}-ledger-0", b"x", if_absent=True)
    record = Damage(
        ledger_id=0,
        uid=stranger,
        ml_name=None,
        findings=("broken",),
        found_by="audit verify",
        found_at=stack.now(),
        writer=stack.writer,
    )
    stack.book.create(keys.damage(0, stranger), record)
    told: list[str] = []
    found = clean_up(replace(scene.process(), narrate=told.append), execute=True)
    assert [one.done is not None for one in found.leftovers] == [True]
    assert f"what its broker left of {stranger} stays" in "\n".join(told)
