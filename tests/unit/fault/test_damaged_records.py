"""One damaged record, stray key or undecodable node stops nothing but what it is about.

Two topics: `orders`, where one thing is wrong, and `other`, where everything goes on. Every folder
of records is damaged once; a folder that nothing here damages fails the test.
"""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene, is_released
from tiering_assets.automation.choices import due_by_topic, sealed_ledgers
from tiering_assets.automation.rounds import walk
from tiering_assets.automation.stuck import dead_claims
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.batch.release_batch import release_batch
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.clean.orphans import Sweep
from tiering_assets.explain.backlog import explain_backlog
from tiering_assets.fleet.backlog import take_backlog
from tiering_assets.ground.own_policy import TieringMode
from tiering_assets.look.brakes import pauses
from tiering_assets.look.brakes.brake import PAUSE
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import ledger_scope, topic_scope
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.ledger.resume import attempts_of, is_proven
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import survey
from tiering_assets.records import keys
from tiering_assets.records.key_kinds import FOLDERS
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.retention.expired import find_expired
from tiering_assets.retention.forget import find_gone
from tiering_assets.scrub.scrub import scrub
from tiering_assets.verify.damage import Broken, record_damage

OTHER = "t/ns/persistent/other"
WHO = {"reason": "x", "author": "ops"}
DAY_S = 86400.0


class Two(Scene):
    """Of each topic a ledger is published and one is sealed; `mine` and `others` are published."""

    wrong = ""

    def __init__(self):
        super().__init__()
        self.broker.create_topic(OTHER)
        self.mine, self.others = 0, self.fill(OTHER)
        self.sealed = self.fill(TOPIC), self.fill(OTHER)
        self.publish(self.mine)
        self.publish(self.others)
        self.uid = self.context().uid

    def damage(self, key, body=b"{broken"):
        full = self.stack.book.prefix + key
        assert self.world.objects.peek(full) is not None, key
        self.world.objects.overwrite(full, body)


def _hold(scene):
    hold(scene.stack, ledger_scope(scene.mine), **WHO)
    return keys.hold(scene.mine)


def _pause(scene):
    scope = topic_scope("t/ns/orders")
    pauses.pause(scene.stack, scope, TieringMode.PAUSED, **WHO)
    return PAUSE.key(scope)


def _quarantine(scene):
    quarantine(scene.stack, 0, scene.uid, ml_name=TOPIC, reason="x", previous="0" * 64)
    return keys.quarantine(0, scene.uid)


def _damage(scene):
    uid = scene.uid
    scene.world.objects.delete(scene.stack.book.prefix + keys.attempt(0, uid))
    broken = Broken(ledger_id=0, uid=uid, ml_name=TOPIC, findings=["x"], found_by="scrub")
    record_damage(scene.stack, broken)
    return keys.damage(0, uid)


def _scrub(scene):
    scrub(scene.process(), [TOPIC], deep=True)
    return keys.scrub(0, scene.uid, "deep")


def _made(key):
    """A record that nothing of this scene wrote: its key is enough."""

    def make(scene):
        scene.world.objects.put(scene.stack.book.prefix + key(scene), b"{}")
        return key(scene)

    return make


DAMAGED = {
    "attempts": lambda scene: keys.attempt(0, scene.uid),
    "broker-copies": _made(lambda scene: keys.broker_copy(0, scene.uid)),
    "canaries": lambda _scene: keys.canary(TOPIC),
    "certificates": lambda scene: keys.certificate(0, scene.uid),
    "claims": lambda _scene: keys.claim(0),
    "damage": _damage,
    "disturbances": lambda scene: scene.stack.book.keys(keys.DISTURBANCES)[0],
    "failures": _made(lambda _scene: keys.failure(0)),
    "day-book": lambda scene: min(scene.stack.book.keys(keys.DAY_BOOK)),  # the newest page
    "holds": _hold,
    "leftovers": _made(lambda scene: keys.leftover(0, scene.uid)),
    "loads": _made(lambda scene: keys.load(scene.stack.objects.server_time(), TOPIC, scene.uid)),
    "outcomes": lambda scene: keys.outcome(0, scene.uid),
    "pauses": _pause,
    "publications": lambda _scene: keys.publication(TOPIC, 1),
    "quarantines": _quarantine,
    "begun-releases": _made(
        lambda scene: keys.begun_release(scene.stack.objects.server_time(), 0, scene.uid)
    ),
    "releases": _made(lambda scene: keys.release_intent(0, scene.uid)),
    "schemas": _made(lambda _scene: keys.topic_schema(TOPIC, 7, 0)),
    "streams": _made(lambda _scene: keys.stream_link(TOPIC, keys.stream_name(7, 1), 1)),
    "removals": _made(lambda scene: keys.removal(0, scene.uid)),
    "scrubs": _scrub,
    "sweep-intents": _made(lambda scene: keys.sweep_intent(0, scene.uid)),
    "sweeps": _made(lambda scene: keys.swept(0, scene.uid)),
    "undos": _made(lambda scene: keys.undo(TOPIC, scene.uid)),
}
# Of the whole cluster or a plan that a person names: unreadable, it stops what asks for it.
OF_ALL = {
    "brokers",
    "bucket-proofs",
    "brokers-gone",
    "budgets",
    "expired-plans",
    "forget-plans",
    "plans",
    "run-batches",
}
ONLY_WRITTEN = {"hold-lifts", "pause-lifts"}


def test_every_folder_is_damaged_or_excused():
    assert set(DAMAGED) | OF_ALL | ONLY_WRITTEN == set(FOLDERS)
    assert not set(DAMAGED) & (OF_ALL | ONLY_WRITTEN)


def node(scene):
    """The topic's node is there, and nothing that can be read."""
    path = managed_ledger_path(TOPIC)
    scene.broker.topics.pop(TOPIC)
    scene.cluster.metadata.put(path, b"\xff\xff\xff")
    return path


def strays(scene):
    for folder in FOLDERS:
        for name in (f"{folder}/", f"{folder}/0/", f"{folder}/somebody's file"):
            scene.world.objects.put(scene.stack.book.prefix + name, b"")
    return "strays"


def undecodable_ledger(scene):
    scene.cluster.metadata.put(scene.cluster.path(0), b"BookieMetadataFormatVersion\t9\n")
    return "node"


WRONG = {**DAMAGED, "a topic's node": node, "a ledger's node": undecodable_ledger, "strays": strays}


@pytest.fixture(params=WRONG)
def scene(request):
    scene = Two()
    found = WRONG[request.param](scene)
    if request.param in DAMAGED:
        scene.damage(found)
    scene.wrong = request.param
    return scene


def certified(scene, ledger_id):
    certificate = scene.certify(ledger_id).certificate
    assert certificate is not None
    return certificate.record.uid


def views(scene):
    return {view.ledger_id: view.state for view in survey(scene.process())}


def test_what_only_looks_goes_on(scene):
    stack = scene.process()
    assert views(scene)[scene.others] is LedgerState.PUBLISHED
    assert scene.others in {one.view.ledger_id for one in explain_backlog(stack)}
    assert take_backlog(stack).figures.total.ledgers > 1
    assert scene.sealed[1] in sealed_ledgers(stack)
    dead_claims(stack, after=None, seconds=9)
    found = walk(stack, lambda topic: [topic.ml_name], after=None, seconds=9, room=99)
    assert OTHER in found.found
    scene.past_the_lag()
    assert scene.others in due_by_topic(stack, None)[OTHER]


def test_the_other_topic_is_copied_published_and_released(scene):
    wanted = [scene.mine, scene.others, *scene.sealed]
    outcomes = {one.ledger_id: one for one in offload_batch(scene.process(), wanted)}
    assert outcomes[scene.sealed[1]].state == "published", outcomes[scene.sealed[1]]
    scene.past_the_lag()
    done = {
        one.ledger_id: one.result
        for one in release_batch(scene.process(), [scene.mine, scene.others]).outcomes
    }
    assert isinstance(done[scene.others], Released), done


def test_both_are_scrubbed_as_far_as_they_can_be(scene):
    looked = {one.candidate.ledger_id: one for one in scrub(scene.process(), deep=True).looked}
    assert looked[scene.others].error is None
    assert not looked[scene.others].findings


def test_clean_up_takes_what_is_dead_of_the_other_topic_and_nothing_that_it_cannot_judge(scene):
    gone = scene.fill(OTHER)
    dead = certified(scene, gone)
    quarantine(scene.stack, gone, dead, ml_name=OTHER, reason="x", previous="0" * 64)
    scene.publish(gone)  # by another attempt
    scene.wait(3 * DAY_S)
    before = {k for k in scene.world.objects.peek_keys() if "-ledger-0" in k}
    found = clean_up(scene.process(), execute=True)
    swept = {one.attempt.record.uid for one in found.attempts if one.done is not None}
    assert dead in swept
    assert {k for k in scene.world.objects.peek_keys() if "-ledger-0" in k} == before
    if scene.wrong != "a topic's node":  # it may name any ledger
        find_expired(scene.process())
        find_gone(scene.process())


# ----- what damage means for the one that has it


def test_a_damaged_claim_lives_as_long_as_any_may_and_is_then_taken_over():
    scene = Two()
    ledger_id = scene.sealed[0]
    scene.certify(ledger_id)
    scene.damage(keys.claim(ledger_id))
    assert scene.offload(ledger_id).state == "another run works on it"
    assert views(scene)[ledger_id] is LedgerState.COPYING
    scene.wait(3600 + 2 * scene.stack.settings.offload.claim_ttl_s + 1)
    assert scene.offload(ledger_id).state == "published"


@pytest.mark.parametrize("folder", ["quarantines", "outcomes", "certificates", "publications"])
def test_nothing_is_released_on_a_damaged_record(folder):
    scene = Two()
    scene.damage(DAMAGED[folder](scene))
    scene.past_the_lag()
    [done] = release_batch(scene.process(), [0]).outcomes
    assert not isinstance(done.result, Released)
    assert folder in str(done.result) or "certificate" in str(done.result)
    assert scene.cluster.has_node(0)


@pytest.mark.parametrize("folder", ["quarantines", "outcomes", "certificates", "publications"])
def test_nothing_is_swept_on_a_damaged_record(folder):
    scene = Two()
    ledger_id = scene.sealed[0]
    uid = certified(scene, ledger_id)
    if folder == "quarantines":
        quarantine(scene.stack, ledger_id, uid, ml_name=TOPIC, reason="x", previous="0" * 64)
        key = keys.quarantine(ledger_id, uid)
    elif folder == "outcomes":
        key = _made(lambda _scene: keys.outcome(ledger_id, uid))(scene)
    elif folder == "certificates":
        key = keys.certificate(ledger_id, uid)
    else:
        key = keys.publication(TOPIC, 1)
    scene.damage(key)
    scene.wait(3 * DAY_S)
    left = clean_up(scene.process(), execute=True).attempts
    assert [one.done for one in left if one.attempt.record.uid == uid] == [None]
    assert not [one for one in left if isinstance(one.decision, Sweep)]


def test_an_undecodable_node_is_told_with_its_path():
    scene = Two()
    path = node(scene)
    said: list[str] = []
    list(survey(replace(scene.process(), narrate=said.append)))
    assert [line for line in said if path in line]
    error = scene.offload(scene.sealed[0]).error
    assert path in str(error)


def test_a_node_that_may_hide_a_shadow_stops_releases_and_one_that_cannot_does_not():
    for data, stops in (
        (b"\x47\x78\xff", True),
        (b"\xffPULSAR.SHADOW_SOURCE", True),
        (b"\xff", False),
    ):
        scene = Two()
        scene.past_the_lag()
        scene.cluster.metadata.put(managed_ledger_path("t/ns/persistent/third"), data)
        if stops:
            with pytest.raises(FormatError, match="t/ns/persistent/third"):
                scene.release()
        else:
            assert is_released(scene.release())


@pytest.mark.parametrize("folder", ["attempts", "publications"])
def test_nothing_of_a_gone_ledger_goes_where_one_of_its_records_cannot_be_read(folder):
    scene = Scene()
    scene.release_and_collect()
    scene.trim()
    scene.wait(90 * DAY_S)
    assert [one.ledger_id for one in find_gone(scene.process())] == [0]
    assert [one.pair[0] for one in find_expired(scene.process())] == [0]
    [key, *_] = scene.stack.book.keys(f"{folder}/")
    scene.world.objects.overwrite(scene.stack.book.prefix + key, b"{")
    said: list[str] = []
    stack = replace(scene.process(), narrate=said.append)
    assert find_gone(stack) == []
    assert find_expired(stack) == []
    assert [line for line in said if key in line]


def test_a_certificate_of_another_attempt_proves_nothing():
    scene = Scene()
    uid = certified(scene, 0)
    [attempt] = attempts_of(scene.stack, 0)
    assert is_proven(scene.stack, attempt)
    assert not is_proven(scene.stack, replace(attempt, sha256="0" * 64))
    quarantine(scene.stack, 0, uid, ml_name=TOPIC, reason="x", previous=attempt.sha256)
    assert not is_proven(scene.stack, attempt)
