"""Where each ledger is: what the survey of all says and what a look at one says are the same, and
true.
"""

from dataclasses import fields, replace

import pytest

from tests.support.left_behind import PATH, leave_unproven
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import ledger_scope
from tiering_assets.look.ledger.claims import claim_ledger
from tiering_assets.look.ledger.one_ledger import look_at_one
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.look.ledger.states import LedgerState, StateEvidence
from tiering_assets.look.ledger.survey import ml_names_of, survey_topics
from tiering_assets.offload_format.keys import index_key
from tiering_assets.records import keys
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topics import TopicDirectory
from tiering_assets.verify.damage import Broken, record_damage

S = LedgerState
NONE = {one.name: False for one in fields(StateEvidence)} | {"listed": True, "in_bookkeeper": True}


def untouched(_scene):
    """Closed, and nobody has looked at it."""


def copied(scene):
    leave_unproven(scene)


def half_copied(scene):
    record = leave_unproven(scene).record
    scene.world.objects.delete(record.index_key)


def copied_by_a_run_that_works(scene):
    copied(scene)
    claim(scene)


def claim(scene):
    assert claim_ledger(scene.process("another"), 0) is None


def certified(scene):
    scene.certify()


def doubted(scene):
    uid = scene.certify().certificate.record.uid
    doubt(scene, uid)


def doubt(scene, uid):
    quarantine(scene.stack, 0, uid, ml_name=TOPIC, reason="rot", previous="")


def published(scene):
    scene.publish()


def published_and_claimed(scene):
    """By nobody who copies it: it is settled."""
    scene.publish()
    claim(scene)


def published_doubted_and_claimed(scene):
    """By a run that heals it."""
    uid = scene.publish().certificate.record.uid
    doubt(scene, uid)
    claim(scene)


def unconfirmed(scene):
    scene.publish()
    for key in scene.stack.book.keys(keys.PUBLICATIONS):
        scene.world.objects.delete(scene.stack.book.prefix + key)


def due(scene):
    scene.publish()
    scene.past_the_lag()


def held(scene):
    due(scene)
    hold(scene.stack, ledger_scope(0), reason="audit", author="kim")


def marked(scene):
    due(scene)
    edit(scene, lambda context: setattr(context, "bookkeeperDeleted", True))


def released(scene):
    due(scene)
    scene.release()


def edit(scene, change):
    nodes = scene.cluster.metadata.nodes
    found = decode_managed_ledger(nodes[PATH].data)
    message = found.message_copy()
    change(message.ledgerInfo[0].offloadContext)
    data = encode_managed_ledger(found.with_message(message))
    nodes[PATH] = replace(nodes[PATH], data=data)
    scene.broker.restart()


def brokers(scene):
    assert scene.broker.offload(TOPIC)


def brokers_damaged(scene):
    brokers(scene)
    uid = scene.context().uid
    record_damage(
        scene.stack,
        Broken(ledger_id=0, uid=uid, ml_name=TOPIC, findings=("x",), found_by="object verify"),
    )


def brokers_unfinished(scene):
    """It is being copied, or its broker died."""
    scene.broker.offload(TOPIC, stops_after=1)


def lost(scene):
    scene.cluster.delete_ledger(0)


COPIED = {"has_index_object": True}
CERTIFIED = {"certified": True}
PUBLISHED = {"context_complete": True, "certified": True, "published": True}
DUE = {**PUBLISHED, "lag_elapsed": True}
BROKERS = {"context_complete": True}
# How it comes about, its state, what that was decided from, and what else is said of it.
STATES = [
    (untouched, S.SEALED, {}, {"attempts": 0}),
    (copied, S.COPIED, COPIED, {"ours": True}),
    (half_copied, S.SEALED, {}, {"ours": True}),
    (copied_by_a_run_that_works, S.COPYING, {**COPIED, "claimed": True}, {"ours": True}),
    (claim, S.COPYING, {"claimed": True}, {"attempts": 0}),
    (certified, S.VERIFIED, CERTIFIED, {"ours": True}),
    (doubted, S.QUARANTINED, {**CERTIFIED, "quarantined": True}, {"ours": True}),
    (published, S.PUBLISHED, PUBLISHED, {"ours": True, "by": "tierkeeper"}),
    (
        published_doubted_and_claimed,
        S.PUBLISHED,
        {**PUBLISHED, "quarantined": True, "claimed": True},
        {"ours": True, "by": "tierkeeper", "damaged": True},
    ),
    (
        unconfirmed,
        S.PUBLISHED,
        {**PUBLISHED, "published": False},
        {"ours": True, "by": "tierkeeper"},
    ),
    (due, S.RELEASE_DUE, DUE, {"ours": True, "by": "tierkeeper"}),
    (held, S.HELD, {**DUE, "held": True}, {"ours": True, "by": "tierkeeper"}),
    (marked, S.RELEASING, {**DUE, "marked_deleted": True}, {"ours": True, "by": "tierkeeper"}),
    (
        released,
        S.RELEASED,
        {**DUE, "marked_deleted": True, "in_bookkeeper": False},
        {"ours": True, "by": "tierkeeper"},
    ),
    (brokers, S.PUBLISHED, BROKERS, {"attempts": 0, "by": "broker"}),
    (brokers_damaged, S.PUBLISHED, BROKERS, {"attempts": 0, "by": "broker", "damaged": True}),
    (brokers_unfinished, S.COPYING, {"context_other": True}, {"attempts": 0, "by": "broker"}),
    (lost, S.UNSAFE, {"in_bookkeeper": False}, {"attempts": 0}),
]


def surveyed(scene, ledger_id=0):
    [topic] = survey_topics(scene.process(), [TOPIC])
    return next(one for one in topic.ledgers if one.view.ledger_id == ledger_id)


@pytest.fixture(params=STATES, ids=lambda one: one[0].__name__)
def state(request):
    make, *expected = request.param
    scene = Scene()
    make(scene)
    return scene, expected


def test_a_survey_says_of_each_ledger_what_is_so(state):
    scene, (expected, evidence, more) = state
    found = surveyed(scene)
    assert found.view.state is expected
    assert found.evidence == StateEvidence(**{**NONE, **evidence})
    assert found.attempts == more.get("attempts", 1)
    assert (found.ours, found.damaged) == (more.get("ours", False), more.get("damaged", False))
    assert found.view.offloaded_by == more.get("by")
    assert (found.published_at is not None) is bool(evidence.get("published"))
    assert (found.due_at is not None) is bool(evidence.get("published"))


def test_a_look_at_one_says_what_the_survey_says(state):
    scene, _expected = state
    found, one = surveyed(scene), look_at_one(scene.process(), 0)
    assert one.surveyed is not None
    assert one.surveyed.evidence == found.evidence
    assert one.surveyed.view == found.view
    for name in ("attempts", "attempted_at", "hold", "published_at", "due_at", "ours", "damaged"):
        assert getattr(one.surveyed, name) == getattr(found, name), name
    assert (one.claim is not None) is found.evidence.claimed


def test_nobody_is_said_to_work_on_what_is_settled():
    """A claim that was not dropped is of a run that found it so."""
    scene = Scene()
    published_and_claimed(scene)
    one = look_at_one(scene.process(), 0)
    assert one.claim is None
    assert one.surveyed is not None
    assert one.surveyed.view.state is S.PUBLISHED


def test_of_several_attempts_the_newest_is_told():
    scene = Scene()
    older = leave_unproven(scene).record.uid
    scene.wait(60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tiering_assets.batch.pipeline.find_resumable", lambda *_a: None)
        patch.setattr("tiering_assets.copy.offload.find_unfinished", lambda *_a: None)
        assert scene.certify().copied
    newer = attempts_of(scene.stack, 0)[-1].record.uid
    found = surveyed(scene)
    assert (found.view.uid, found.attempts) == (newer, 2)
    assert found.view.uid != older
    one = look_at_one(scene.process(), 0).surveyed
    assert one is not None
    assert one.view == found.view
    assert scene.world.objects.peek(index_key(older, 0)) is not None


def test_an_open_ledger_is_open_and_has_no_attempt():
    scene = Scene()
    last = scene.broker.load(TOPIC).open_id
    found = surveyed(scene, last)
    assert found.evidence == StateEvidence(**{**NONE, "open": True})
    assert (found.view.uid, found.attempted_at, found.view.closed_at) == (None, None, None)


# ----- where no topic lists it, or none can be read


def test_a_ledger_that_its_topic_lost_is_known_by_its_attempts():
    scene = Scene()
    scene.fill(TOPIC)
    scene.certify()
    scene.broker.load(TOPIC)
    assert scene.broker.trim(TOPIC) == 0
    one = look_at_one(scene.process(), 0)
    assert one.surveyed is None
    assert (one.sight.ml_name, len(one.attempts)) == (TOPIC, 1)


def test_a_ledger_that_nothing_names_is_looked_for_in_every_topic(monkeypatch):
    scene = Scene()
    scene.cluster.delete_ledger(0)
    really = TopicDirectory.read_all
    gone = [("t/ns/persistent/gone", None)]
    monkeypatch.setattr(TopicDirectory, "read_all", lambda topics: [*gone, *really(topics)])
    one = look_at_one(scene.process(), 0)
    assert one.sight.ml_name == TOPIC
    assert one.surveyed is not None
    assert one.surveyed.view.state is S.UNSAFE
    nobodys = look_at_one(scene.process(), 99)
    assert (nobodys.sight.ml_name, nobodys.surveyed, nobodys.unread) == (None, None, ())


def test_a_ledger_whose_topic_is_known_is_looked_for_nowhere_else(monkeypatch):
    scene = Scene()
    monkeypatch.setattr(TopicDirectory, "read_all", lambda _topics: pytest.fail("asked"))
    assert look_at_one(scene.process(), 0).surveyed is not None


def test_owners_are_told_of_those_ledgers_alone_that_have_one():
    scene = Scene()
    assert ml_names_of(scene.process(), [0, 99]) == {0: TOPIC}
    scene.certify()
    scene.cluster.delete_ledger(0)
    assert ml_names_of(scene.process(), [0, 99]) == {0: TOPIC}
