"""A topic is not taken from its readers while there are too few bookies to load it again."""

from dataclasses import replace

import pytest

from tests.support.at_effect import at_effect
from tests.support.sim_clients import Process
from tests.support.sim_cluster import BOOKIE
from tests.support.sim_world import World
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.change import confirm
from tiering_assets.change.confirm import list_unconfirmed, reload_topic
from tiering_assets.clean.deleting import Going, delete_leavings
from tiering_assets.ground.evidence import Effect, Kind
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import RunMemory, asking
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.release.guarded_delete import delete_ledgers
from tiering_assets.release.preview import plan_release
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

TOPIC = "t/ns/persistent/orders"
CANARY = "t/ns/persistent/canary"
NODE = f"/ledgers/available/{BOOKIE}"
MINUTES = 120.0
LAG = 700.0


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def told():
    return []


@pytest.fixture
def site(world, told):
    """Ledger 0 is closed; its topic is loaded, long enough for broker-stats to tell."""
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.cluster.metadata.put(f"/ledgers/cookies/{BOOKIE}", b"")
    site.broker.create_topic(TOPIC)
    site.broker.produce(TOPIC, [b"first", b"last"])
    site.broker.roll_over(TOPIC)
    world.scheduler.now += MINUTES
    site.broker._told = lambda what, ml_name: told.append(what)
    return site


@pytest.fixture
def process(world, site):
    return Process(world, "bookies", site)


@pytest.fixture
def stack(process):
    return process.stack()


def stop_bookies(site):
    del site.cluster.metadata.nodes[NODE]


def start_bookies(site):
    site.cluster.metadata.put(NODE, b"")


def version_of(site):
    return site.cluster.metadata.nodes[managed_ledger_path(TOPIC)].stat.version


def offload(stack):
    [outcome] = offload_batch(stack, [0])
    return outcome


def test_a_run_that_slept_before_its_unload_looks_at_the_bookies_again(
    world, site, stack, told, monkeypatch
):
    """Its record of the unload took an hour to write; bookies stopped meanwhile."""
    assert offload(stack).state == "published"
    told.clear()

    @at_effect("reload.recorded")
    def slept():
        world.scheduler.now += 3600.0
        stop_bookies(site)

    monkeypatch.setattr(confirm, "reach", slept)
    waited = reload_topic(stack, TOPIC, why="a test")
    monkeypatch.undo()
    assert isinstance(waited, Wait)
    assert waited.reason is Reason.BOOKIES_SHORT
    assert told == []
    start_bookies(site)
    assert reload_topic(stack, TOPIC, why="a test") == "unload acknowledged"


def test_a_loaded_topic_stays_as_it_is_until_the_bookies_are_back(stack, site, told):
    before = version_of(site)
    stop_bookies(site)
    outcome = offload(stack)
    assert told == []  # the reload that would take it from its readers
    assert outcome.wait.reason is Reason.BOOKIES_SHORT, outcome
    assert "0 writable bookies" in outcome.wait.detail
    assert "ensemble of 1" in outcome.wait.detail
    assert f"not there: {BOOKIE}" in outcome.wait.detail
    assert version_of(site) == before
    start_bookies(site)
    assert offload(stack).state == "published"
    assert told == ["unloaded", "written"]


def test_read_only_bookies_take_no_new_ledgers(stack, site, told):
    stop_bookies(site)
    site.cluster.metadata.put(f"/ledgers/available/readonly/{BOOKIE}", b"")
    wait = offload(stack).wait
    assert wait.reason is Reason.BOOKIES_SHORT
    assert f"read-only: {BOOKIE}" in wait.detail
    assert told == []


def test_bookies_that_stop_after_the_gate_are_missed_before_the_write(stack, site, told, process):
    before = version_of(site)
    process.fates.append(After("activity", lambda: stop_bookies(site)))
    wait = offload(stack).wait
    assert wait.reason is Reason.BOOKIES_SHORT
    assert not process.fates
    assert told == []
    assert version_of(site) == before


def test_bookies_that_stop_after_the_write_are_missed_before_the_unload(stack, site, told, process):
    """What is written stands, unconfirmed; the next run unloads and records it."""
    process.fates.append(After("set", lambda: stop_bookies(site)))
    wait = offload(stack).wait
    assert wait.reason is Reason.BOOKIES_SHORT
    assert not process.fates
    assert told == []
    assert stack.book.keys("publications/") == []
    start_bookies(site)
    assert offload(stack).state == "published"
    assert "unloaded" in told


def test_a_release_waits_and_marks_nothing(stack, world, site, told):
    assert offload(stack).state == "published"
    world.scheduler.now += LAG
    told.clear()
    before = version_of(site)
    stop_bookies(site)
    [planned] = plan_release(stack, TOPIC, [0])
    [result] = release_topic(stack, TOPIC, [0]).values()
    for said in (planned.decision, result):
        assert "bookies short: 0 writable bookies" in str(said)
    assert told == []
    assert version_of(site) == before
    start_bookies(site)
    [result] = release_topic(stack, TOPIC, [0]).values()
    assert isinstance(result, Released)


def test_a_topic_that_nobody_has_loaded_is_published_without_loading_it(stack, world, site, told):
    site.broker.create_topic(CANARY)
    site.broker.produce(CANARY, [b"one"])
    site.broker.roll_over(CANARY)
    [canary] = [i for i, owner in site.cluster.owner.items() if owner == CANARY][:1]
    [proof] = offload_batch(stack, [canary])
    assert proof.state == "published"
    site.broker.restart()
    world.scheduler.now += MINUTES
    stop_bookies(site)
    told.clear()
    outcome = offload(stack)
    assert outcome.state == "published", outcome
    assert told == []
    assert not site.broker.topics


def test_a_topic_that_nobody_has_loaded_is_not_loaded_for_its_canary(stack, world, site, told):
    site.broker.restart()
    world.scheduler.now += MINUTES
    stop_bookies(site)
    before = version_of(site)
    assert offload(stack).wait.reason is Reason.BOOKIES_SHORT
    assert told == []
    assert not site.broker.topics
    assert version_of(site) == before


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"bookkeeperClientRegionawarePolicyEnabled": "true"}, "RegionawarePolicyEnabled=true"),
        ({"managedLedgerDefaultEnsembleSize": "x"}, "does not tell its managedLedgerDefault"),
    ],
)
def test_a_placement_that_cannot_be_computed_waits_by_name(stack, site, told, config, said):
    told_config = site.broker.runtime_config()
    site.broker.runtime_config = lambda: told_config | config
    wait = offload(stack).wait
    assert wait.reason is Reason.BOOKIES_SHORT
    assert said in wait.detail
    assert "disturb.bookies_enough" in wait.detail
    assert told == []
    enough = replace(stack.settings.disturb, bookies_enough=1)
    trusting = replace(stack, settings=replace(stack.settings, disturb=enough))
    assert offload(replace(trusting, memory=RunMemory())).state == "published"


def test_a_bookie_affinity_group_waits_by_name(stack, site, told):
    group = b'{"bookieAffinityGroup": {"bookkeeperAffinityGroupPrimary": "left"}}'
    site.cluster.metadata.put("/admin/local-policies/t/ns", group)
    wait = offload(stack).wait
    assert "namespace t/ns has bookieAffinityGroup" in wait.detail
    assert "left" in wait.detail
    assert told == []


@pytest.mark.parametrize("method", ["namespace_ensemble", "topic_ensemble"])
def test_a_persistence_policy_counts(stack, site, told, method):
    setattr(site.broker, method, lambda _name: 2)
    if method == "namespace_ensemble":
        site.broker.topic_ensemble = lambda _name: 2  # the policy in force is the namespace's
    wait = offload(stack).wait
    assert "data ledgers have an ensemble of 2, cursor ledgers of 1" in wait.detail
    site.cluster.metadata.put("/ledgers/available/10.0.0.2:3181", b"")
    assert offload(stack).state == "published"


def test_an_owner_that_is_registered_and_does_not_answer_waits(stack, site, told):
    site.broker.answers = lambda _broker: False
    wait = offload(stack).wait
    assert wait.reason is Reason.LEFT_ALONE
    assert "registered, and not answering" in wait.detail
    assert told == []


def test_an_unload_that_would_not_reach_the_broker_that_has_the_topic_is_not_asked_for(
    stack, site, told
):
    """Its session expired: another would load the topic, and it would serve what it remembers."""
    before = version_of(site)
    site.broker.list_brokers = lambda: ["10.0.0.9:8080"]
    wait = offload(stack).wait
    assert wait.reason is Reason.LEFT_ALONE
    assert "is not registered, so unloads do not reach it" in wait.detail
    assert told == []
    assert version_of(site) == before


def test_an_undo_writes_and_its_unload_waits_for_the_bookies(stack, world, site, told, process):
    """Nothing of the topic is deleted until the unload was acknowledged; then all goes on."""
    site.broker.blind_until = float("inf")  # the broker cannot read what is published
    process.fates.append(After("read_entry", lambda: stop_bookies(site)))
    outcome = offload(stack)
    assert isinstance(outcome.error, RefusedError)
    assert "undo unconfirmed" in str(outcome.error)
    assert contexts(stack) == []  # written all the same
    [undo] = list_unconfirmed(stack)
    assert undo.record.ml_name == TOPIC
    assert undo.record.ledger_ids == (0,)
    site.broker.blind_until = -1.0
    assert offload(stack).wait.reason is Reason.UNDO_UNCONFIRMED
    for refused in (delete_the_copy, delete_the_ledger):
        with pytest.raises(RefusedError, match="undo unconfirmed"):
            refused(stack)
    assert stack.objects.head(stack.book.require(Attempt, attempt_key(stack)).record.data_key)
    assert stack.ledgers.read(0) is not None
    start_bookies(site)
    told.clear()
    assert offload(stack).state == "published"
    assert "unloaded" in told
    assert [*list_unconfirmed(stack)] == []


def test_a_sweep_confirms_an_undo_that_nobody_else_comes_back_to(stack, world, site, told, process):
    site.broker.blind_until = float("inf")
    process.fates.append(After("read_entry", lambda: stop_bookies(site)))
    offload(stack)
    with pytest.raises(RefusedError, match="undo unconfirmed"):
        delete_the_copy(stack)
    start_bookies(site)
    told.clear()
    delete_the_copy(stack)
    assert "unloaded" in told
    assert [*list_unconfirmed(stack)] == []


def test_an_undo_of_a_topic_that_is_gone_holds_nothing_up(stack, world, site, process):
    site.broker.blind_until = float("inf")
    process.fates.append(After("read_entry", lambda: stop_bookies(site)))
    offload(stack)
    assert len([*list_unconfirmed(stack)]) == 1
    site.broker.delete_topic(TOPIC)
    assert [*list_unconfirmed(stack)] == []


def test_bookies_that_stop_before_a_canary_of_an_idle_topic_is_read_are_missed(
    stack, world, site, told, process
):
    site.broker.restart()
    world.scheduler.now += MINUTES
    process.fates.append(After("set", lambda: stop_bookies(site)))
    assert offload(stack).wait.reason is Reason.BOOKIES_SHORT
    assert told == []
    assert not site.broker.topics
    start_bookies(site)
    assert offload(stack).state == "published"


def attempt_key(stack):
    [key] = stack.book.keys(keys.attempts_of(0))
    return key


def delete_the_copy(stack):
    stored = stack.book.require(Attempt, attempt_key(stack))
    record = stored.record
    objects = (record.data_key, record.index_key)
    delete_leavings(
        stack,
        Going(
            ledger_id=0,
            uid=record.uid,
            ml_name=TOPIC,
            objects=objects,
            uploads=(),
            intent=stored.sha256,
            effect=Effect.SWEEP,
            evidence=asking(stack, *Kind),
        ),
    )


def delete_the_ledger(stack):
    record = stack.book.require(Attempt, attempt_key(stack)).record
    certified = {0: (record.uid, record.ledger)}
    evidence = asking(stack, *Kind)
    delete_ledgers(stack, TOPIC, certified, czxid=record.ml_czxid, evidence=evidence)


class After:
    """Not a fault: something happens when this method is called for the first time."""

    fault, wait_s = None, 0.0

    def __init__(self, method, act):
        self.method, self.act = method, act

    def __call__(self, _room, method, _args):
        if method == self.method:
            self.act()
            return True
        return False


def contexts(stack):
    return [one.offload for one in stack.topics.read(TOPIC)[0].ledgers if one.offload]
