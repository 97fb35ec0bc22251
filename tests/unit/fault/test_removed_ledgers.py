"""Objects that went with their ledger are no loss once it is on record that the ledger is gone; all
others are.
"""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tests.support.two_checkers import kinds, second_opinion
from tiering_assets.audit.audit import audit_store
from tiering_assets.clean import removal, removals
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.clean.removals import Removals, observe_removals
from tiering_assets.look.topic.contexts import read_contexts
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.sweep_models import Removal
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.metastore.ledger_info import encode_managed_ledger
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.scrub.scrub import scrub

PATH = managed_ledger_path(TOPIC)
YOUNGER = 2  # 1 was the open one when its topic was unloaded, and empty
MISSING = {("object_missing", 0)}


@pytest.fixture
def scene():
    """Ledgers 0 and YOUNGER are published, and one is open."""
    scene = Scene()
    scene.publish(0)
    assert scene.fill(TOPIC) == YOUNGER
    scene.publish(YOUNGER)
    scene.wait(60)
    return scene


def audited(scene, *, share_max=0.1):
    """What both checkers find."""
    stack = scene.process()
    release = replace(stack.settings.release, fleet_share_max=share_max)
    settings = replace(stack.settings, release=release)
    report = audit_store(stack.objects, settings)
    second, _forgotten = second_opinion(stack.objects, stack.instance, share_max=share_max)
    assert second == kinds(report.findings)
    return second


def removed(scene):
    return list(scene.stack.book.iter_records(Removal, keys.REMOVALS))


def trim(scene):
    """By its broker, which deletes the objects with the ledger."""
    assert scene.broker.trim(TOPIC) == 0


def delete_topic(scene):
    scene.broker.delete_topic(TOPIC)


def make_topic_anew(scene):
    delete_topic(scene)
    scene.broker.create_topic(TOPIC)
    scene.fill(TOPIC)


OBSERVERS = {
    "scrub run": lambda scene: scrub(scene.process()).removals,
    "orphan sweep --execute": lambda scene: clean_up(scene.process(), execute=True).removals,
}


@pytest.mark.parametrize("observer", OBSERVERS)
def test_what_a_trim_took_is_missed_until_the_removal_is_on_record(scene, observer):
    trim(scene)
    assert audited(scene) == MISSING
    assert [pair[0] for pair in OBSERVERS[observer](scene).recorded] == [0]
    assert audited(scene) == set()
    [stored] = removed(scene)
    assert (stored.record.fate, stored.record.gone, stored.record.fleet) == ("trimmed", 1, 2)
    assert OBSERVERS[observer](scene).recorded == ()  # once and for ever


@pytest.mark.parametrize(
    "look",
    [
        lambda scene: clean_up(scene.process(), execute=False),
        lambda scene: scrub(scene.process(), [TOPIC]),
    ],
    ids=["a dry run", "a scrub of one topic"],
)
def test_what_does_not_look_at_the_whole_fleet_or_only_plans_records_nothing(scene, look):
    trim(scene)
    look(scene)
    assert removed(scene) == []


@pytest.mark.parametrize(
    ("change", "fate"),
    [(delete_topic, "topic deleted"), (make_topic_anew, "topic deleted and made again")],
)
def test_a_deleted_topic_takes_its_objects_along(scene, change, fate):
    change(scene)
    assert audited(scene, share_max=1) == {*MISSING, ("object_missing", YOUNGER)}
    assert len(observe_removals(scene.process()).recorded) == 2
    assert {one.record.fate for one in removed(scene)} == {fate}
    assert audited(scene) == set()


def test_an_object_that_is_lost_while_its_topic_lists_the_ledger_is_missed_whoever_looks(scene):
    scene.world.objects.delete(data_key(scene.context().uid, 0))
    assert observe_removals(scene.process()).recorded == ()
    assert audited(scene) == MISSING


def lose_objects(scene, ledger_id=0):
    uid = scene.context(ledger_id).uid
    scene.world.objects.delete(data_key(uid, ledger_id))
    scene.world.objects.delete(index_key(uid, ledger_id))


def keep_in_list(scene, keep, *, version=99):
    """The topic's list has only those ledgers; its node is the same one, and that version of it."""
    topic, node = scene.stack.topics.read(TOPIC)
    message = topic.message_copy()
    kept = [one for one in message.ledgerInfo if keep(one.ledgerId)]
    del message.ledgerInfo[:]
    message.ledgerInfo.extend(kept)
    data = encode_managed_ledger(topic.with_message(message))
    stat = replace(node.stat, version=version)
    scene.cluster.metadata.nodes[PATH] = replace(node, data=data, stat=stat)


def lose_from_list(scene):
    """The topic's list has lost the ledger, and BookKeeper has not."""
    lose_objects(scene)
    keep_in_list(scene, lambda ledger_id: ledger_id != 0)


def lose_the_younger(scene):
    """No trim takes a ledger before the older ones."""
    lose_objects(scene, YOUNGER)
    lose_objects(scene)
    keep_in_list(scene, lambda ledger_id: ledger_id != YOUNGER)
    scene.cluster.delete_ledger(YOUNGER)


def empty_the_list(scene):
    lose_objects(scene)
    keep_in_list(scene, lambda _ledger_id: False)
    scene.cluster.delete_ledger(0)
    scene.cluster.delete_ledger(YOUNGER)


def go_back_in_time(scene):
    """A backup from before the publications, whose list has lost the ledger."""
    lose_objects(scene)
    keep_in_list(scene, lambda ledger_id: ledger_id != 0, version=1)
    scene.cluster.delete_ledger(0)


def be_shadowed(scene):
    trim(scene)
    scene.make_shadow()


def forget_the_publication(scene):
    trim(scene)
    for key in scene.stack.book.keys(keys.PUBLICATIONS):
        scene.world.objects.delete(scene.stack.book.prefix + key)


@pytest.mark.parametrize(
    "change",
    [
        lose_from_list,
        lose_the_younger,
        empty_the_list,
        go_back_in_time,
        be_shadowed,
        forget_the_publication,
    ],
)
def test_what_may_be_no_trim_is_not_recorded(scene, change):
    change(scene)
    found = observe_removals(scene.process())
    assert (found.recorded, removed(scene)) == ((), [])
    assert ("object_missing", 0) in audited(scene)


def test_a_list_that_has_it_again_at_the_second_look_is_not_believed(scene, monkeypatch):
    before = scene.cluster.metadata.nodes[PATH]
    lose_from_list(scene)
    node = scene.cluster.metadata.nodes.pop(scene.cluster.path(0))
    really, looks = removals._look, []

    def look(stack, suspects):
        looks.append(suspects)
        if len(looks) == 2:
            scene.cluster.metadata.nodes[PATH] = before
            scene.cluster.metadata.nodes[scene.cluster.path(0)] = node
        return really(stack, suspects)

    monkeypatch.setattr(removals, "_look", look)
    assert observe_removals(scene.process()).recorded == ()
    assert len(looks) == 2
    assert audited(scene) == MISSING


def test_a_node_made_anew_between_the_looks_is_not_believed(scene, monkeypatch):
    delete_topic(scene)
    really, looks = removals._look, []

    def look(stack, suspects):
        looks.append(suspects)
        if len(looks) == 2:
            scene.broker.create_topic(TOPIC)
            scene.fill(TOPIC)
        return really(stack, suspects)

    monkeypatch.setattr(removals, "_look", look)
    assert observe_removals(scene.process()).recorded == ()
    assert ("object_missing", 0) in audited(scene)


def test_an_outcome_that_is_gone_by_then_is_recorded_as_nothing(scene, monkeypatch):
    trim(scene)
    really = read_contexts

    def read(stack):
        for key in stack.book.keys("outcomes/"):
            scene.world.objects.delete(stack.book.prefix + key)
        return really(stack)

    monkeypatch.setattr(removals, "read_contexts", read)
    assert observe_removals(scene.process()) == Removals()


def test_a_plan_has_only_its_own_ledgers_recorded(scene):
    uid = scene.context().uid
    delete_topic(scene)
    assert observe_removals(scene.process(), [(0, uid)]).recorded == ((0, uid),)


def test_too_many_at_once_are_no_trim_unless_a_person_says_so(scene, monkeypatch):
    monkeypatch.setattr(removal, "SMALL", 1)
    delete_topic(scene)
    found = observe_removals(scene.process())
    assert found.recorded == ()
    assert "2 of 2 attempts at once, more than the 10% of release.fleet_share_max" in found.refused
    swept = clean_up(scene.process(), execute=True)
    assert swept.errors == [swept.removals.refused]
    stack = scene.process()
    release = replace(stack.settings.release, fleet_share_max=1.0)
    meant = replace(stack, settings=replace(stack.settings, release=release))
    assert len(observe_removals(meant).recorded) == 2


def test_an_audit_judges_the_share_again_by_the_record(scene):
    trim(scene)
    observe_removals(scene.process())
    for gone, found in ((100, set()), (101, MISSING)):
        change_record(scene, gone=gone, fleet=500)
        assert audited(scene) == found
    assert audited(scene, share_max=0.5) == set()


def change_record(scene, **changes):
    [stored] = removed(scene)
    scene.stack.book.replace(stored, replace(stored.record, **changes))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"previous": "0" * 64}, "chain_broken"),
        ({"fate": "topic deleted"}, "facts_differ"),
        ({"node_czxid": None}, "facts_differ"),
        ({"ml_name": "t/ns/persistent/other"}, "facts_differ"),
        ({"seen_again_at": "before"}, "facts_differ"),
    ],
)
def test_a_record_that_does_not_fit_excuses_nothing(scene, changes, kind):
    trim(scene)
    observe_removals(scene.process())
    [stored] = removed(scene)
    if "seen_again_at" in changes:
        changes = {"seen_again_at": stored.record.seen_at.replace(year=2020)}
    change_record(scene, **changes)
    assert audited(scene) == {*MISSING, (kind, 0)}


def test_a_removal_without_the_outcome_before_it_is_a_missing_record(scene):
    trim(scene)
    observe_removals(scene.process())
    [stored] = removed(scene)
    outcome = keys.outcome(0, stored.record.uid)
    scene.world.objects.delete(scene.stack.book.prefix + outcome)
    assert ("record_missing", 0) in audited(scene)


def test_an_object_that_is_still_there_is_judged_as_ever(scene):
    uid = scene.context().uid
    scene.trim()  # its broker could not delete the objects
    observe_removals(scene.process())
    assert audited(scene) == set()
    scene.world.monitor.damaged.add(uid)
    scene.world.objects.overwrite(data_key(uid, 0), b"other")
    assert audited(scene) == {("object_differs", 0)}


def test_metadata_that_cannot_be_read_is_told_and_stops_no_scrub(scene, monkeypatch):
    scene.wait(30 * 86400)
    trim(scene)

    def away(*_args):
        raise MetadataError("no ZooKeeper")

    monkeypatch.setattr(removals, "read_contexts", away)
    run = scrub(scene.process())
    assert run.removals.refused == "ledgers that are gone were not looked for: no ZooKeeper"
    assert scene.stack.book.keys("scrubs/") != []
