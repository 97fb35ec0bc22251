"""A topic is loaded only where nobody has it and nothing forbids it, and what became of it is
told.
"""

from dataclasses import replace

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.idle_topics import ORDERS, PLAIN, IdleTopics
from tiering_assets.records import keys
from tiering_assets.records.models import Claim, Disturbance
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace
from tiering_assets.resources.pulsar.retention import Inactivity
from tiering_assets.retention import load_overdue as loading
from tiering_assets.retention.load_overdue import load_overdue
from tiering_assets.retention.retention_load import LoadState

TOPIC = "persistent://t/ns/orders"
BROKER = "127.0.0.1:8080"
NOWHERE = TopicPlace(TopicLoad.NOT_LOADED)
THERE = TopicPlace(TopicLoad.LOADED, BROKER)
OWNED = TopicPlace(TopicLoad.UNKNOWN, BROKER)
DOUBT = TopicPlace(TopicLoad.UNKNOWN)


@pytest.fixture
def cluster():
    with running_admin_simulator() as admin:
        cluster = IdleTopics(admin)
        # orders are overdue by a limit of an hour; plain keeps everything by its own policy
        forever = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
        admin.get("/persistent/t/ns/plain/retention", forever)
        yield cluster


def load(cluster, *, execute=True, topics_max=10, timeout_s=5.0):
    """Outcome by topic, and how long it took."""
    began = cluster.world.scheduler.now
    found = load_overdue(cluster.stack, execute=execute, topics_max=topics_max, timeout_s=timeout_s)
    cluster.took_s = cluster.world.scheduler.now - began
    return {one.topic: one for one in found}


def place(monkeypatch, cluster, *answers):
    """What locate says of orders, first to last; of plain that nobody has it."""
    said = iter(answers)

    def locate(topic, **_how):
        return next(said) if topic == TOPIC else NOWHERE

    monkeypatch.setattr(cluster.trimmer, "locate", locate, raising=False)


def test_it_is_loaded_and_looked_at_until_all_that_is_overdue_is_gone(cluster):
    [one] = load(cluster).values()
    assert (one.state, one.overdue_bytes) == (LoadState.TRIMMED, 18)
    assert cluster.took_s < 1


def test_a_topic_that_cannot_be_read_is_told_and_its_policy_is_not_asked(cluster):
    """Asking would make a broker own its bundle."""
    cluster.site.cluster.metadata.put(managed_ledger_path(PLAIN), b"\xff\xff")
    found = load(cluster)["persistent://t/ns/plain"]
    assert (found.state, found.overdue, found.overdue_bytes) == (LoadState.LEFT_ALONE, (), 0)
    assert "ManagedLedgerInfo" in found.detail
    assert not [line for line, _auth in cluster.admin.requests if "/plain/" in line]


def test_one_whose_policy_cannot_be_read_any_more_is_told(cluster):
    """What was known of it a moment ago is no leave to load it."""
    really, seen = cluster.world.objects.list_objects, []

    def list_objects(prefix="", **how):
        seen.extend([prefix] if prefix.endswith("pauses/") else [])
        if len(seen) > 1:
            raise ObjectStoreError("the store is away")
        return really(prefix, **how)

    cluster.world.objects.list_objects = list_objects
    one = load(cluster)[TOPIC]
    assert (one.state, one.detail) == (LoadState.LEFT_ALONE, "the store is away")
    assert cluster.trimmer.asked == []


def test_what_its_own_policy_keeps_is_not_told(cluster):
    forever = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    cluster.admin.get("/persistent/t/ns/orders/retention", forever)
    assert load(cluster) == {}


@pytest.mark.parametrize("answers", [(THERE,), (DOUBT,)])
def test_of_one_that_may_be_loaded_no_policy_of_its_own_is_asked(cluster, monkeypatch, answers):
    place(monkeypatch, cluster, *answers)
    [one] = load(cluster).values()
    assert one.state is LoadState.LEFT_ALONE
    assert not [line for line, _auth in cluster.admin.requests if "/orders/" in line]
    assert cluster.took_s < 1  # another look would say nothing else


@pytest.mark.parametrize("second", [NOWHERE, OWNED])
def test_one_that_no_broker_lists_is_looked_at_again(cluster, monkeypatch, second):
    place(monkeypatch, cluster, OWNED, second)
    [one] = load(cluster).values()
    assert one.state is LoadState.TRIMMED
    assert cluster.took_s > 60


@pytest.mark.parametrize("second", [NOWHERE, OWNED])
def test_one_that_changed_meanwhile_was_loaded_meanwhile(cluster, monkeypatch, second):
    place(monkeypatch, cluster, OWNED, second)

    def meanwhile(_seconds):
        cluster.broker.load(ORDERS)

    cluster.stack = replace(cluster.stack, sleep=meanwhile)
    [one] = load(cluster).values()
    assert one.state is LoadState.LEFT_ALONE
    assert "not known" in one.detail
    assert cluster.trimmer.asked == []


def test_two_loads_of_a_run_count_as_two(cluster):
    cluster.admin.answers.pop("GET /admin/v2/persistent/t/ns/plain/retention")
    limits = replace(cluster.stack.settings.disturb, loads_hour_max=2)
    cluster.stack = replace(cluster.stack, settings=replace(cluster.stack.settings, disturb=limits))
    assert {one.state for one in load(cluster).values()} == {LoadState.TRIMMED}


def test_the_topic_with_most_bytes_is_loaded_first(cluster):
    cluster.admin.answers.pop("GET /admin/v2/persistent/t/ns/plain/retention")
    cluster.broker.produce(PLAIN, [b"many bytes" * 9])
    cluster.broker.roll_over(PLAIN)
    cluster.broker.restart()
    cluster.world.scheduler.now += 86_400
    load(cluster, topics_max=1)
    assert cluster.trimmer.asked == [PLAIN]


# ----- what forbids it


@pytest.mark.parametrize(
    ("found", "state"), [(OWNED, LoadState.TRIMMED), (NOWHERE, LoadState.LEFT_ALONE)]
)
def test_bookies_that_are_short_for_its_namespace_forbid_it_unless_its_broker_knows_better(
    cluster, monkeypatch, found, state
):
    """Without an owner nobody can be asked for the topic's own ensemble and load nothing."""
    place(monkeypatch, cluster, found, found)
    monkeypatch.setattr(cluster.broker, "namespace_ensemble", lambda _namespace: 2)
    monkeypatch.setattr(cluster.broker, "topic_ensemble", lambda _topic: 1)
    [one] = load(cluster).values()
    assert one.state is state


def subscriptions(cluster):
    cluster.subscribe(ORDERS, "slow", (cluster.ids(ORDERS)[1], 1))
    cluster.trimmer.idle = Inactivity(
        deletes_topic=False, without_subscriptions=True, subscription_minutes=5
    )


def test_subscriptions_that_the_broker_would_delete_forbid_it(cluster):
    subscriptions(cluster)
    [one] = load(cluster).values()
    assert one.state is LoadState.LEFT_ALONE
    assert "may delete subscriptions idle for 5 minutes" in one.detail


def test_cursors_of_replication_are_no_subscriptions(cluster):
    subscriptions(cluster)
    path = f"{managed_ledger_path(ORDERS)}/slow"
    nodes = cluster.site.cluster.metadata.nodes
    nodes[f"{managed_ledger_path(ORDERS)}/pulsar.repl.b"] = nodes.pop(path)
    [one] = load(cluster).values()
    assert one.state is LoadState.TRIMMED


def claim(cluster, hours):
    now = cluster.stack.objects.server_time()
    ledger_id = cluster.ids(ORDERS)[0]
    record = Claim(
        ledger_id=ledger_id,
        run_id="other",
        attempt=None,
        expires_at=now + hours * loading._AN_HOUR,
    )
    cluster.stack.book.create(keys.claim(ledger_id), record)


@pytest.mark.parametrize(
    ("hours", "state"), [(1, LoadState.LEFT_ALONE), (0, LoadState.TRIMMED), (-1, LoadState.TRIMMED)]
)
def test_a_claim_forbids_it_while_it_lives(cluster, hours, state):
    claim(cluster, hours)
    [one] = load(cluster).values()
    assert one.state is state


def test_a_claim_that_goes_while_it_is_looked_at_forbids_nothing(cluster, monkeypatch):
    claim(cluster, 1)
    monkeypatch.setattr(loading, "read_claim", lambda *_a: None)
    [one] = load(cluster).values()
    assert one.state is LoadState.TRIMMED


# ----- what became of it


def delete(cluster):
    del cluster.site.cluster.metadata.nodes[managed_ledger_path(ORDERS)]


def test_a_topic_that_goes_before_its_load_is_left_alone(cluster, monkeypatch):
    idle = cluster.trimmer.idle
    monkeypatch.setattr(cluster.trimmer, "inactivity", lambda _topic: (delete(cluster), idle)[1])
    [one] = load(cluster).values()
    assert one.state is LoadState.LEFT_ALONE
    assert "somebody changed the topic" in one.detail
    assert cluster.trimmer.asked == []


def test_a_topic_that_goes_after_its_load_is_a_finding(cluster, monkeypatch):
    monkeypatch.setattr(cluster.trimmer, "trim_topic", lambda _topic: delete(cluster))
    [one] = load(cluster).values()
    assert (one.state, one.trimmed) == (LoadState.FAILED, ())
    assert one.detail == "loaded, and then somebody deleted the topic"


def test_a_load_is_recorded_with_the_broker_that_owns_its_bundle(cluster, monkeypatch):
    place(monkeypatch, cluster, OWNED, OWNED)
    load(cluster)
    [record] = [one.record for one in cluster.stack.book.iter_records(Disturbance, "loads/")]
    assert record.broker == BROKER


@pytest.mark.parametrize("stay", [5, 6])
def test_a_few_ledgers_that_stay_are_named_and_the_rest_counted(cluster, stay):
    cluster.trimmer.deaf = True
    for _ in range(stay - 3):
        cluster.broker.produce(ORDERS, [b"x"])
        cluster.broker.roll_over(ORDERS)
    cluster.broker.restart()
    cluster.world.scheduler.now += 86_400
    [one] = load(cluster).values()
    assert len(one.overdue) == stay
    named = ", ".join(map(str, one.overdue[:5]))
    assert (
        f"ledgers {named}{'' if stay == 5 else ' and 1 more'} are still in its list" in one.detail
    )
