"""A topic's change counts once it was read; what cannot be read is undone, and what is not ours
stays.
"""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tests.support.topic_halves import publication_work, publish_topic
from tiering_assets.change import topic_change
from tiering_assets.change.publish import Published
from tiering_assets.change.topic_change import (
    Confirmed,
    make_change,
    undo,
    withdraw_standing,
)
from tiering_assets.change.topic_edit import Copy, TopicChange
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.models import Disturbance
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.offload_context import mark_bookkeeper_deleted
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

PATH = managed_ledger_path(TOPIC)
CANARY = "t/ns/persistent/canary"


@pytest.fixture
def scene():
    scene = Scene()
    yield scene
    assert scene.world.monitor.found == []


@pytest.fixture
def proven(scene):
    """The namespace's canary stands, and a copy of ledger 0 is proven and waits."""
    scene.broker.create_topic(CANARY)
    scene.publish(scene.fill(CANARY))
    return scene.certify().certificate


@pytest.fixture
def told(scene):
    """What the broker does from now on."""
    found = []
    scene.broker._told = lambda what, _ml_name: found.append(what)
    return found


def czxid(scene):
    return scene.stack.topics.read(TOPIC)[1].stat.czxid


def version(scene):
    return scene.cluster.metadata.nodes[PATH].stat.version


def publish(scene, certificate):
    stack = scene.process("publisher")
    return publish_topic(stack, TOPIC, {0: certificate}, ml_czxid=czxid(scene))[0]


def copy_of(certificate):
    return Copy(certificate.record.uid, certificate.record.ledger.last_entry_id)


def be_blind(scene):
    """No broker can read the bucket for some time."""
    scene.broker.blind_until = scene.world.clock(3600).timestamp()


# ----- what is read before it counts


def test_what_a_loaded_topics_broker_cannot_read_is_taken_out_again(scene, proven):
    """Though the namespace's canary stands: this broker's offloader may have lost its
    credentials.
    """
    be_blind(scene)
    with pytest.raises(
        RefusedError, match=r"nothing was deleted, and readers are back on the book"
    ):
        publish(scene, proven)
    assert scene.context() is None


def test_what_an_idle_topics_broker_cannot_read_is_taken_out_where_no_canary_stands(scene):
    certificate = scene.certify().certificate
    scene.idle()
    be_blind(scene)
    result = publish(scene, certificate)
    assert isinstance(result, RefusedError)
    assert "taken back (1 ledgers published)" in str(result)
    assert scene.context() is None


def test_a_change_that_the_read_forbids_altogether_reloads_nothing(scene, proven, told):
    """Its only ledger is published by its broker between the gate and the write."""
    stack = scene.process("publisher")
    work = publication_work(stack, TOPIC, {0: proven}, ml_czxid=czxid(scene))
    assert scene.broker.offload(TOPIC)
    told.clear()
    confirmed = make_change(
        stack,
        TOPIC,
        TopicChange(contexts={0: copy_of(proven)}),
        czxid=work.czxid,
        seen=work.seen,
        evidence=work.evidence,
    )
    assert isinstance(confirmed, Confirmed)
    assert confirmed.waiting[0].reason is Reason.PUBLISHED
    assert told == []


def test_bookies_that_stop_after_the_gate_are_missed_before_a_loaded_topics_node_is_written(
    scene, proven
):
    stack = scene.process("publisher")
    work = publication_work(stack, TOPIC, {0: proven}, ml_czxid=czxid(scene))
    before = version(scene)
    scene.cluster.be_short(True)
    confirmed = make_change(
        stack,
        TOPIC,
        TopicChange(contexts={0: copy_of(proven)}),
        czxid=work.czxid,
        seen=work.seen,
        evidence=work.evidence,
    )
    assert isinstance(confirmed, Wait)
    assert confirmed.reason is Reason.BOOKIES_SHORT
    assert version(scene) == before


def test_a_reload_is_recorded_with_what_it_is_for(scene, proven):
    publish(scene, proven)
    found = scene.stack.book.iter_records(Disturbance, keys.DISTURBANCES)
    assert [one.record.why for one in found if one.record.ml_name == TOPIC] == [
        "1 ledgers published"
    ]


def test_people_hear_of_each_topic_once_when_it_is_published_and_when_it_is_released(scene, proven):
    said: list[str] = []
    stack = replace(scene.process("publisher"), narrate=lambda line: said.append(str(line)))
    topic, before = topic_of(TOPIC), version(scene)
    publish_topic(stack, TOPIC, {0: proven}, ml_czxid=czxid(scene))
    assert [line for line in said if line.startswith(topic)] == [
        f"{topic}: 1 ledgers published in node version {before + 1}"
    ]
    said.clear()
    scene.past_the_lag()
    before = version(scene)
    scene.release(stack=replace(scene.process(), narrate=stack.narrate))
    assert [line for line in said if line.startswith(topic)] == [
        f"{topic}: 1 ledgers marked for release in node version {before + 1}",
        f"{topic}: 1 ledgers released",
    ]


# ----- where a crash would be told from


@pytest.mark.parametrize("loaded", [False, True])
def test_each_step_of_a_change_is_named_for_what_it_is(scene, proven, loaded, monkeypatch):
    reached: list[str] = []
    monkeypatch.setattr(
        topic_change, "reach", lambda point, *_ledger_ids, **_about: reached.append(point)
    )
    if not loaded:
        scene.idle()
    assert isinstance(publish(scene, proven), Published)
    unloaded = ["unloaded"] if loaded else []
    assert reached == [f"publish.{what}" for what in ("context_set", *unloaded, "confirmed")]
    reached.clear()
    scene.past_the_lag()
    if not loaded:
        scene.idle()
    scene.release()
    assert reached == [f"release.{what}" for what in ("marked", *unloaded, "rehearsed")]


# ----- undoing


@pytest.fixture
def marked(scene):
    """Ledgers 0 and 1 are published and marked; the change that marked them."""
    ids = (0, scene.fill(TOPIC))
    copies = {i: copy_of(scene.publish(i).certificate) for i in ids}
    stored = scene.cluster.metadata.nodes[PATH]
    uids = {i: copy.uid for i, copy in copies.items()}
    edited = mark_bookkeeper_deleted(decode_managed_ledger(stored.data), uids)
    scene.cluster.metadata.put(PATH, encode_managed_ledger(edited))
    scene.broker.restart()
    return TopicChange(marks=copies)


def test_what_another_run_has_deleted_meanwhile_stays_marked(scene, marked):
    """Readers have nothing but the object then, and a mark taken back would hide it from them."""
    scene.cluster.delete_ledger(0)
    assert undo(scene.process(), TOPIC, marked, czxid=czxid(scene), why="a test") is None
    assert scene.context(0).bookkeeper_deleted
    assert not scene.context(1).bookkeeper_deleted


# ----- contexts of runs that died


def withdraw(scene, copies):
    withdraw_standing(scene.process(), TOPIC, copies, czxid=czxid(scene), why="a test")


def test_a_context_that_stands_is_withdrawn(scene, proven):
    publish(scene, proven)
    withdraw(scene, {0: copy_of(proven), 7: copy_of(proven)})
    assert scene.context() is None


@pytest.mark.parametrize("stands", ["none", "another's"])
def test_where_no_such_context_stands_nothing_is_written_or_unloaded(scene, proven, told, stands):
    if stands == "another's":
        assert scene.broker.offload(TOPIC)
    scene.broker.load(TOPIC)
    told.clear()
    before = version(scene), scene.context()
    withdraw(scene, {0: copy_of(proven)})
    assert told == []
    assert (version(scene), scene.context()) == before
    assert scene.withdrawals() == []


def test_of_a_topic_that_is_gone_nothing_is_withdrawn(scene, proven):
    was = czxid(scene)
    scene.broker.delete_topic(TOPIC)
    withdraw_standing(scene.process(), TOPIC, {0: copy_of(proven)}, czxid=was, why="a test")
    assert scene.withdrawals() == []
