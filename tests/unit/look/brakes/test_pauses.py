"""Pauses in the bucket, over simulated servers: who obeys them, and what is left of them."""

from dataclasses import replace

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.explain.backlog import explain_ledger
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy, TieringMode
from tiering_assets.ground.reasons import Reason
from tiering_assets.look.brakes import pauses
from tiering_assets.look.brakes.brake import PAUSE, list_brakes, read_brakes
from tiering_assets.look.brakes.scopes import (
    EVERYTHING,
    Scope,
    ledger_scope,
    namespace_scope,
    require_topics,
    topic_scope,
    topics_covered,
)
from tiering_assets.policy.policies import check_policies
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.records.pause_models import Pause, PauseLift
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import FormatError, ObjectStoreError, RefusedError
from tiering_assets.resources.settings import BrokerSettings
from tiering_assets.verify.verify import verify_attempts

TOPIC = "t/ns/persistent/orders"
PART = "t/ns/persistent/parts-partition-3"
WHO = {"reason": "migration", "author": "ops"}
PAUSED, DISABLED = TieringMode.PAUSED, TieringMode.DISABLED
OF_TOPIC = Scope("topic", TOPIC)
KEY = PAUSE.key(OF_TOPIC)


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def site(world):
    """Ledger 0 is closed, 1 is open; a partition has ledger 2 closed."""
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    for topic in (TOPIC, PART):
        site.broker.create_topic(topic)
        site.broker.produce(topic, [b"first", b"last"])
        site.broker.roll_over(topic)
    site.cluster.metadata.put("/admin/policies/t/ns", b"{}")
    return site


@pytest.fixture
def stack(world, site):
    with running_admin_simulator() as gone:
        address = BrokerSettings(admin_url=gone.url, timeout_s=2)
    found = Process(world, "pauses", site).stack()
    return replace(found, settings=replace(found.settings, broker=address))


def offload(stack, ledger_id=0, **how):
    [outcome] = offload_batch(stack, [ledger_id], **how)
    assert outcome.error is None, outcome.error
    return outcome


def offload_of(stack, ledger_id=0, ml_name=TOPIC):
    [listed] = [i for i in stack.topics.read(ml_name)[0].ledgers if i.ledger_id == ledger_id]
    return listed.offload


def lifts(stack):
    return [stored.record for stored in stack.book.iter_records(PauseLift, "pause-lifts/")]


@pytest.mark.parametrize("scope", [OF_TOPIC, namespace_scope("t/ns"), EVERYTHING], ids=str)
@pytest.mark.parametrize("mode", [PAUSED, DISABLED])
def test_what_is_paused_gets_no_copy_until_it_is_resumed(stack, scope, mode):
    assert pauses.pause(stack, scope, mode, **WHO)
    wait = offload(stack).wait
    assert wait.reason is Reason(mode.value)
    assert wait.detail == f"by the pause of {scope}: migration (ops)"
    assert [*stack.book.iter_records(Attempt, keys.attempts_of(0))] == []
    why = explain_ledger(stack, 0).because
    assert str(why) == f"{mode.value}: {wait.detail}"
    assert pauses.resume(stack, scope, reason="over", author="she")
    assert offload(stack).state == "published"


def test_a_pause_of_one_topic_is_no_other_topics(stack):
    pauses.pause(stack, OF_TOPIC, PAUSED, **WHO)
    pauses.pause(stack, namespace_scope("t/other"), PAUSED, **WHO)
    assert offload(stack, 2).state == "published"


def test_a_partitioned_topic_is_paused_with_its_partitions(stack):
    scope = topic_scope("t/ns/parts")
    assert topics_covered(stack, scope) == [PART]
    require_topics(stack, [scope])
    pauses.pause(stack, scope, PAUSED, **WHO)
    assert offload(stack, 2).wait.reason is Reason.PAUSED
    assert offload(stack, 0).state == "published"


def test_what_is_tiered_goes_on_being_released_and_is_no_work(stack, world):
    offload(stack)
    pauses.pause(stack, EVERYTHING, DISABLED, **WHO)
    assert offload(stack).noop
    world.scheduler.now += 10 * 24 * 3600
    [released] = release_topic(stack, TOPIC, [0]).values()
    assert isinstance(released, Released)


def test_a_pause_set_while_a_batch_is_copied_stops_its_publication(stack, monkeypatch):
    """The copy is finished and proven, and waits for the resume."""
    verify = verify_attempts

    def paused_meanwhile(*args):
        pauses.pause(stack, OF_TOPIC, PAUSED, **WHO)
        return verify(*args)

    monkeypatch.setattr("tiering_assets.batch.pipeline.verify_attempts", paused_meanwhile)
    outcome = offload(stack)
    assert outcome.certificate is not None
    assert outcome.wait.reason is Reason.PAUSED
    assert offload_of(stack) is None
    assert offload(stack).wait.reason is Reason.PAUSED  # and so it stays
    pauses.resume(stack, OF_TOPIC, reason="over", author="she")
    assert offload(stack).state == "published"
    assert len([*stack.book.iter_records(Attempt, keys.attempts_of(0))]) == 1


def test_a_publication_that_only_lacks_its_record_is_recorded_all_the_same(stack):
    """Readers see it already, and without the record no lag begins."""
    offload(stack)
    [key] = stack.book.keys(keys.publications_of(TOPIC))
    stack.objects.delete(stack.book.prefix + key)
    pauses.pause(stack, OF_TOPIC, PAUSED, **WHO)
    assert offload(stack).state == "published"
    assert stack.book.keys(keys.publications_of(TOPIC)) == [key]


@pytest.mark.parametrize("body", [b"", b"{}", b"not json", b'{"schema":"tierkeeper/pause/9"}'])
def test_a_pause_that_cannot_be_read_pauses_all_the_same(stack, body):
    stack.objects.put(stack.book.prefix + KEY, body)
    wait = offload(stack).wait
    assert wait.reason is Reason.PAUSED
    assert "its record cannot be read" in wait.detail
    assert [*list_brakes(stack, PAUSE)] == [KEY]
    with pytest.raises(FormatError, match="It pauses all the same; resume topic"):
        pauses.pause(stack, OF_TOPIC, DISABLED, **WHO)
    assert pauses.resume(stack, OF_TOPIC, reason="over", author="she")
    assert lifts(stack)[0].was.startswith("unreadable: ")
    assert offload(stack).state == "published"


def test_pauses_that_cannot_be_listed_permit_nothing(stack, monkeypatch):
    def away(_prefix):
        raise ObjectStoreError("the store is away")

    monkeypatch.setattr(type(stack.book), "keys", lambda _self, prefix: away(prefix))
    [outcome] = offload_batch(stack, [0])
    assert str(outcome.error) == "the store is away"
    assert offload_of(stack) is None
    with pytest.raises(ObjectStoreError, match="away"):
        list(check_policies(stack, [TOPIC]))


def test_again_changes_nothing_and_another_mode_is_a_change_with_a_history(stack):
    assert pauses.pause(stack, OF_TOPIC, PAUSED, reason="first", author="ops")
    assert not pauses.pause(stack, OF_TOPIC, PAUSED, reason="second", author="me")
    assert lifts(stack) == []
    assert pauses.pause(stack, OF_TOPIC, DISABLED, reason="third", author="she")
    [found] = list_brakes(stack, PAUSE)
    assert not isinstance(found, str)
    assert (found.mode, found.reason) == ("disabled", "third")
    assert pauses.resume(stack, OF_TOPIC, reason="over", author="he")
    assert not pauses.resume(stack, OF_TOPIC, reason="over", author="he")
    assert [*list_brakes(stack, PAUSE)] == []
    told = sorted((lift.author, lift.was.partition(" since ")[0]) for lift in lifts(stack))
    assert told == [("he", "disabled"), ("she", "paused")]
    assert {lift.pause_key for lift in lifts(stack)} == {KEY}
    assert any(lift.was.endswith("by ops: first") for lift in lifts(stack))


def test_neither_the_file_nor_a_pause_lifts_the_other(stack):
    file = replace(stack, own_policies=OwnPolicies(default=OwnPolicy(mode=TieringMode.ENABLED)))
    pauses.pause(stack, EVERYTHING, PAUSED, **WHO)
    assert offload(file).wait.reason is Reason.PAUSED
    file = replace(stack, own_policies=OwnPolicies(default=OwnPolicy(mode=DISABLED)))
    wait = offload(file).wait
    assert wait.reason is Reason.DISABLED
    assert wait.detail == (
        "by the default level of tiering.toml; by the pause of everything: migration (ops)"
    )
    pauses.resume(stack, EVERYTHING, reason="over", author="she")
    assert pauses.still_off(file, OF_TOPIC) == {
        "persistent://t/ns/orders": "disabled: by the default level of tiering.toml"
    }


def test_policies_name_the_pause_as_their_origin(stack):
    pauses.pause(stack, namespace_scope("t/ns"), DISABLED, **WHO)
    pauses.pause(stack, OF_TOPIC, PAUSED, **WHO)
    [found] = check_policies(stack, [TOPIC])
    assert found.policy is not None
    assert found.switched_off is not None
    assert (found.policy.mode.value, found.policy.mode.origin) == ("disabled", "pause of namespace")
    assert found.switched_off == found.policy.switched_off
    assert found.switched_off.detail == (
        "by the pause of namespace t/ns: migration (ops); "
        "by the pause of topic persistent://t/ns/orders: migration (ops)"
    )


def test_a_topic_that_nobody_knows_and_names_that_are_none_are_refused(stack):
    with pytest.raises(RefusedError, match="no such topic"):
        require_topics(stack, [topic_scope("t/ns/ordres")])
    for name in ("", "t", "t/", "/ns", "t/ns/topic"):
        with pytest.raises(FormatError, match="expected tenant/namespace"):
            namespace_scope(name)
    with pytest.raises(FormatError):
        topic_scope("orders")


def test_a_mode_that_is_no_pause_is_refused_before_anything_is_written(stack):
    with pytest.raises(ValueError, match="paused or disabled"):
        pauses.pause(stack, OF_TOPIC, TieringMode.ENABLED, **WHO)
    assert stack.book.read(Pause, KEY) is None


def test_one_ledger_is_not_paused_alone(stack):
    with pytest.raises(ValueError, match="of a topic, of a namespace or of everything"):
        pauses.pause(stack, ledger_scope(0), PAUSED, **WHO)
    assert stack.book.keys("pauses/") == stack.book.keys("holds/") == []


def test_a_pause_that_goes_after_it_was_listed_pauses_nothing(stack):
    pauses.pause(stack, OF_TOPIC, PAUSED, **WHO)
    listed = read_brakes(stack, PAUSE)
    pauses.resume(stack, OF_TOPIC, reason="over", author="she")
    assert pauses.pauses_on(listed, TOPIC) == ()
    assert pauses.why_off(stack, TOPIC, listed) is None


def test_a_pause_that_somebody_else_takes_away_meanwhile_is_told_without_its_words(
    stack, site, world, monkeypatch
):
    pauses.pause(stack, OF_TOPIC, PAUSED, **WHO)
    key, really = stack.book.prefix + KEY, world.objects.get
    seen: list[object] = []

    def get(wanted, **how):
        found = really(wanted, **how)
        if wanted == key and not seen:
            seen.append(found)
            world.objects.delete(key)
        return found

    monkeypatch.setattr(world.objects, "get", get)
    another = Process(world, "another", site).stack()
    pauses.resume(another, OF_TOPIC, reason="over", author="she")
    assert [lift.was for lift in lifts(stack)] == [""]
