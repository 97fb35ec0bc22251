"""One reload serves what a topic is due; neither half holds the other up, and none is told what was
not done.
"""

import pytest

from tests.support.at_effect import at_effect
from tests.support.sim_scene import TOPIC, Scene, is_released, reasons_of
from tiering_assets.change import change_topic as module
from tiering_assets.change import confirm, topic_change
from tiering_assets.change.change_topic import change_topic
from tiering_assets.change.publish import Published, ToPublish
from tiering_assets.ground.reasons import Reason
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.records import keys
from tiering_assets.records.models import Hold
from tiering_assets.release.release import ToRelease
from tiering_assets.resources.errors import MetadataError, RefusedError, StaleEvidenceError


@pytest.fixture
def scene():
    scene = Scene()
    yield scene
    assert scene.world.monitor.found == []


@pytest.fixture
def waiting(scene):
    """Ledgers 0 and 1 may be released; copies of ledgers 2 and 3 are proven and wait."""
    ids = [scene.fill(TOPIC) for _ in range(3)]
    scene.publish(0)
    scene.publish(ids[0])
    scene.past_the_lag()
    return {i: scene.certify(i).certificate for i in ids[1:]}


@pytest.fixture
def told(scene):
    """What the broker does from now on."""
    found = []
    scene.broker._told = lambda what, _ml_name: found.append(what)
    return found


def tier(scene, certificates, due=()):
    czxid = scene.stack.topics.read(TOPIC)[1].stat.czxid
    return change_topic(
        scene.process("both"),
        TOPIC,
        publish=ToPublish(certificates=certificates, ml_czxid=czxid) if certificates else None,
        release=ToRelease(ledger_ids=due) if due else None,
    )


def be_blind(scene):
    """No broker can read the bucket for some time."""
    scene.broker.load(TOPIC)
    scene.broker.blind_until = scene.world.clock(3600).timestamp()


def hold(scene, ledger_id):
    record = Hold(ledger_id=ledger_id, reason="audit", author="ops", held_at=scene.stack.now())
    scene.stack.book.create(keys.hold(ledger_id), record)


def doubt(scene, certificate):
    ledger_id, uid = certificate.record.ledger.ledger_id, certificate.record.uid
    quarantine(scene.stack, ledger_id, uid, ml_name=TOPIC, reason="rot", previous="")


def late(monkeypatch, *, times, meanwhile=lambda: None):
    """The first changes find their evidence too old."""
    really, left = topic_change.make_change, [times]

    def change(*args, **how):
        if left[0]:
            left[0] -= 1
            meanwhile()
            raise StaleEvidenceError("too long ago")
        return really(*args, **how)

    monkeypatch.setattr(module, "make_change", change)


# ----- together


def test_both_halves_go_out_with_one_reload(scene, waiting, told):
    scene.broker.load(TOPIC)
    told.clear()
    results = tier(scene, waiting, [0, 1])
    assert all(isinstance(one, Published) for one in results.published.values())
    assert all(is_released(one) for one in results.released.values())
    assert told.count("unloaded") == 1


def test_a_topic_that_nobody_has_loaded_stays_so(scene, waiting, told):
    """Though the gate of the first half has asked for its policies, after which its bundle is
    owned.
    """
    scene.idle()
    results = tier(scene, waiting, [0, 1])
    assert all(isinstance(one, Published) for one in results.published.values())
    assert all(is_released(one) for one in results.released.values())
    assert "unloaded" not in told
    assert TOPIC not in scene.broker.topics


@pytest.mark.parametrize("half", ["none", "published", "released"])
def test_where_one_half_has_nothing_to_do_the_other_is_done(scene, waiting, half):
    certificates = waiting if half == "published" else {}
    results = tier(scene, certificates, [0, 1] if half == "released" else [])
    assert len(results.published) == (2 if half == "published" else 0)
    assert all(isinstance(one, Published) for one in results.published.values())
    assert len(results.released) == (2 if half == "released" else 0)
    assert all(is_released(one) for one in results.released.values())


# ----- what cannot be read


def test_what_the_broker_cannot_read_is_tried_half_by_half(scene, waiting, monkeypatch):
    """Its own half fails; here only what is new cannot be read."""
    really = confirm.rehearse

    def rehearse(stack, ml_name, last_entry_ids):
        if 2 in last_entry_ids:
            raise RefusedError("ledger 2 cannot be read")
        really(stack, ml_name, last_entry_ids)

    scene.broker.load(TOPIC)
    monkeypatch.setattr(topic_change, "rehearse", rehearse)
    results = tier(scene, waiting, [0, 1])
    assert all(isinstance(one, RefusedError) for one in results.published.values())
    assert all(is_released(one) for one in results.released.values())
    assert scene.context(2) is None


def test_a_half_that_cannot_be_read_alone_fails_once(scene, waiting):
    be_blind(scene)
    results = tier(scene, waiting)
    assert all(isinstance(one, RefusedError) for one in results.published.values())


@pytest.mark.parametrize("empty", ["published", "released"])
def test_a_half_of_nothing_is_none_and_the_other_is_not_tried_twice(scene, waiting, told, empty):
    """Each try costs the topic two reloads: the change, and its undoing."""
    hold(scene, 1)
    be_blind(scene)
    told.clear()
    if empty == "published":
        assert isinstance(tier(scene, {}, [0, 1]).released[0], RefusedError)
    else:
        hold(scene, 0)
        assert isinstance(tier(scene, waiting, [0, 1]).published[2], RefusedError)
    assert told.count("unloaded") == 2


def test_a_half_that_fails_leaves_what_was_settled_as_it_is(scene, waiting):
    hold(scene, 0)
    doubt(scene, waiting[2])
    be_blind(scene)
    results = tier(scene, waiting, [0, 1])
    assert "under a release hold" in reasons_of(results.released[0])
    assert "the broker cannot read" in str(results.released[1])
    assert "is quarantined since it was certified" in str(results.published[2])
    assert "the broker cannot read" in str(results.published[3])


def test_a_canary_that_fails_leaves_what_was_settled_as_it_is(scene):
    """The namespace has none yet: the first ledger goes alone, and not even that can be read."""
    ids = [0, scene.fill(TOPIC)]
    certificates = {i: scene.certify(i).certificate for i in ids}
    doubt(scene, certificates[0])
    be_blind(scene)
    results = tier(scene, certificates).published
    assert "is quarantined since it was certified" in str(results[0])
    assert "the broker cannot read" in str(results[1])


@pytest.fixture
def first_copies(scene):
    """Two proven copies of a namespace without a canary; the smaller one goes alone."""
    return {i: scene.certify(i).certificate for i in (0, scene.fill(TOPIC))}


def test_where_the_canary_cannot_be_read_the_others_are_not_tried(scene, first_copies, told):
    be_blind(scene)
    told.clear()
    results = tier(scene, first_copies).published
    assert "the broker cannot read" in str(results[0])
    assert results[1] is results[0]
    assert told.count("unloaded") == 2  # its change, and the undoing


def test_where_the_canarys_topic_waits_for_bookies_the_others_do_not_ask(
    scene, first_copies, monkeypatch
):
    @at_effect("publish.context_set")
    def meanwhile():
        scene.cluster.be_short(True)

    scene.broker.load(TOPIC)
    monkeypatch.setattr(topic_change, "reach", meanwhile)
    results = tier(scene, first_copies).published
    assert results[0].reason is Reason.BOOKIES_SHORT
    assert results[1] is results[0]
    assert scene.context(1) is None


def test_where_the_topic_cannot_be_looked_at_each_ledger_has_the_error(scene, waiting, monkeypatch):
    def fail(*_args):
        raise MetadataError("no answer")

    monkeypatch.setattr(module, "see", fail)
    results = tier(scene, waiting, [0, 1])
    assert set(results.published) == set(waiting)
    assert set(results.released) == {0, 1}
    for one in (*results.published.values(), *results.released.values()):
        assert isinstance(one, MetadataError)
    assert tier(scene, waiting).released == {}


# ----- what was not confirmed


def test_what_no_broker_has_seen_is_neither_deleted_nor_told_as_published(
    scene, waiting, monkeypatch
):
    """Bookies stop between the write and the unload."""

    @at_effect("release.marked")
    def meanwhile():
        scene.cluster.be_short(True)

    scene.broker.load(TOPIC)
    monkeypatch.setattr(topic_change, "reach", meanwhile)
    results = tier(scene, waiting, [0, 1])
    for one in results.published.values():
        assert one.reason is Reason.BOOKIES_SHORT
    for one in results.released.values():
        assert "0 writable bookies" in reasons_of(one)
    assert scene.cluster.has_node(0)
    assert scene.cluster.has_node(1)


# ----- what got too old


def test_what_got_too_old_is_asked_again_and_goes(scene, waiting, monkeypatch):
    late(monkeypatch, times=1)
    results = tier(scene, waiting, [0, 1])
    assert all(isinstance(one, Published) for one in results.published.values())
    assert all(is_released(one) for one in results.released.values())


def test_what_got_too_old_twice_fails(scene, waiting, monkeypatch):
    late(monkeypatch, times=2)
    results = tier(scene, waiting, [0, 1])
    for one in (*results.published.values(), *results.released.values()):
        assert isinstance(one, StaleEvidenceError)
    assert scene.context(2) is None
    assert scene.cluster.has_node(0)


@pytest.mark.parametrize("stopped", [{"released"}, {"published"}, {"released", "published"}])
def test_what_may_not_go_any_more_by_then_is_left_out(scene, waiting, monkeypatch, stopped):
    def meanwhile():
        if "released" in stopped:
            hold(scene, 0)
            hold(scene, 1)
        if "published" in stopped:
            for certificate in waiting.values():
                doubt(scene, certificate)

    late(monkeypatch, times=1, meanwhile=meanwhile)
    results = tier(scene, waiting, [0, 1])
    for ledger_id, one in results.published.items():
        assert isinstance(one, Published) == ("published" not in stopped)
        assert (scene.context(ledger_id) is None) == ("published" in stopped)
    for ledger_id, one in results.released.items():
        assert is_released(one) == ("released" not in stopped)
        assert scene.cluster.has_node(ledger_id) == ("released" in stopped)
    assert set(results.published) == set(waiting)
    assert set(results.released) == {0, 1}
