"""Retention that only a broker applies, and only once it is asked to load the topic."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.support.cli_shell import Shell
from tests.support.live_topic import client_of
from tests.support.tiered_cluster import ml_names, tiered_cluster, wait_until
from tiering_assets.automation.stuck import StuckTopics
from tiering_assets.automation.stuck_rules import StuckKind
from tiering_assets.clean.sweep import sweep
from tiering_assets.ground.reasons import NotNow
from tiering_assets.look.topic.user_topics import Topic
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.policy.policies import open_policies
from tiering_assets.records import keys
from tiering_assets.records.models import Disturbance
from tiering_assets.records.sweep_models import Swept
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.resources.pulsar.admin import TopicLoad
from tiering_assets.retention.expired import execute_expired, plan_expired

pytestmark = pytest.mark.stack

NAMESPACE = "public/aging"
LEDGERS = 3  # closed ones of each topic
CONSUMER, LAGGING = "consumer", "lagging"


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        connected.make_namespace(
            NAMESPACE, retention={"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
        )
        yield connected


@pytest.fixture(scope="module")
def shell(stack, tmp_path_factory):
    return Shell(stack, tmp_path_factory.mktemp("retention"))


def filled(cluster, name, namespace=NAMESPACE):
    spec = TopicSpec(topic=f"{namespace}/{name}", messages=20, payload_bytes=1000)
    with client_of(cluster.endpoints) as client:
        for subscription in (CONSUMER, LAGGING):
            client.subscribe(f"persistent://{spec.topic}", subscription).close()
    cluster.fill(*(replace(spec, seed=seed) for seed in range(LEDGERS)))
    return spec


def unload(cluster, namespace, *specs):
    """And wait for its stats, which a broker computes once a minute, to say so."""
    cluster.admin("PUT", f"/namespaces/{namespace}/unload")
    for spec in specs:
        wait_until(partial(is_idle, cluster, spec), f"{spec.topic} is loaded nowhere")


def is_idle(cluster, spec):
    place = cluster.steps.broker.locate(f"persistent://{spec.topic}")
    return place.load is TopicLoad.NOT_LOADED


def consume(cluster, spec, subscription, messages):
    with client_of(cluster.endpoints) as client:
        consumer = client.subscribe(f"persistent://{spec.topic}", subscription)
        for _ in range(messages):
            consumer.acknowledge(consumer.receive(timeout_millis=60_000))
        consumer.close()


def is_gone(cluster, ledger_id):
    return cluster.steps.ledgers.read(ledger_id) is None


def version(cluster, spec):
    found = cluster.steps.topics.read(*ml_names(spec))
    return found[1].stat.version


def listed(cluster, spec):
    return [one.ledger_id for one in cluster.managed_ledger(spec).ledgers]


@pytest.fixture(scope="module")
def idle(cluster):
    """(overdue, kept) topics, both consumed and unloaded with their bundle; what they listed; and
    the copy of the overdue one's oldest ledger.
    """
    overdue, kept = filled(cluster, "overdue"), filled(cluster, "kept")
    for spec in (overdue, kept):
        consume(cluster, spec, CONSUMER, 20 * LEDGERS)
        consume(cluster, spec, LAGGING, 20 * (LEDGERS - 1))  # not the last closed ledger
    # The oldest ledger is in the bucket alone.
    first = listed(cluster, overdue)[0]
    cluster.offload([first])
    copy = first, cluster.context_uid(overdue, first)
    bodies = cluster.objects(*copy)
    cluster.release(overdue, [first])
    own = json.dumps({"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}).encode()
    path = f"/persistent/{overdue.topic}/retention"
    # Unload first: a broker that has the topic loaded would trim it at once.
    cluster.admin("PUT", f"/namespaces/{NAMESPACE}/unload")
    before = listed(cluster, overdue), listed(cluster, kept)
    cluster.admin("POST", path, own)
    wait_until(lambda: cluster.admin("GET", path), "the topic's policy came through its topic")
    unload(cluster, NAMESPACE, overdue, kept)
    return overdue, kept, before, (copy, bodies)


def test_an_idle_topic_is_loaded_and_trimmed_and_one_that_keeps_is_left(cluster, shell, idle):
    overdue, kept, before, _copy = idle
    topics = [f"persistent://{spec.topic}" for spec in (overdue, kept)]
    versions = version(cluster, overdue), version(cluster, kept)
    assert (listed(cluster, overdue), listed(cluster, kept)) == before
    due = before[0][: LEDGERS - 1]

    dry = shell.document("topic", "load-overdue", overdue.topic, kept.topic, "--plan")
    [one] = dry["topics"]
    assert (one["topic"], one["state"], one["overdue"]) == (topics[0], "would load", due)
    assert (version(cluster, overdue), version(cluster, kept)) == versions

    # Now a broker owns the bundle, for it was asked for policies, and lists neither topic.
    done = shell.document("topic", "load-overdue", overdue.topic, kept.topic, "--execute")
    [one] = done["topics"]
    assert (one["topic"], one["state"], one["trimmed"]) == (topics[0], "trimmed", due)
    after = listed(cluster, overdue)
    assert not set(after) & set(due)
    assert before[0][LEDGERS - 1] in after  # one subscription needs it
    for ledger_id in due:
        wait_until(partial(is_gone, cluster, ledger_id), "BookKeeper deleted it")
    assert version(cluster, kept) == versions[1]  # a broker writes the node of what it loads
    assert listed(cluster, kept) == before[1]
    [record] = [
        stored.record
        for stored in cluster.steps.book.iter_records(Disturbance, "loads/")
        if stored.record.ml_name == ml_names(overdue)[0]
    ]
    assert record.why == f"load: retention of {len(due)} ledgers is overdue"


def test_afterwards_it_is_told_who_keeps_the_rest(shell, idle):
    overdue, kept, _before, _copy = idle
    found = shell.document("topic", "expiry", overdue.topic, kept.topic)
    first, second = sorted(found["topics"], key=lambda one: one["topic"], reverse=True)
    assert first["topic"].endswith("/overdue")
    assert first["overdue"] == []
    assert first["kept_by"] == [LAGGING]
    assert first["retention_minutes"] == {"value": 0, "origin": "topic", "certain": True}
    assert second["retention_minutes"] == {"value": -1, "origin": "namespace", "certain": True}


def test_what_the_broker_could_not_delete_of_a_trimmed_ledger_goes_by_plan(
    cluster, idle, monkeypatch
):
    """The broker deletes the objects of what it trims; here they come back, as if it had failed."""
    _overdue, _kept, _before, (copy, bodies) = idle
    ledger_id, uid = copy
    places = {data_key(uid, ledger_id): bodies.data, index_key(uid, ledger_id): bodies.index}
    store = cluster.steps.objects
    wait_until(lambda: not any(map(store.head, places)), "the broker deleted both objects")
    for key, body in places.items():
        store.put(key, body)
    release = replace(cluster.steps.settings.release, guard_age_s=0.001)
    steps = replace(cluster.steps, settings=replace(cluster.steps.settings, release=release))
    sweep(steps, execute=True)
    assert all(map(store.head, places))  # a release was begun from it
    recorded, _found = plan_expired(steps)
    assert recorded is not None
    [planned] = [one for one in recorded.plan.copies if one.uid == uid]
    assert (planned.fate, planned.only_copy) == ("trimmed", True)
    [early] = [
        one for one in execute_expired(steps, recorded.digest) if one.attempt.record.uid == uid
    ]
    assert isinstance(early.decision, NotNow)
    monkeypatch.setattr("tiering_assets.clean.gone_rules.KEPT", timedelta(seconds=-1))
    [done] = [
        one for one in execute_expired(steps, recorded.digest) if one.attempt.record.uid == uid
    ]
    assert done.done is not None
    assert not any(map(store.head, places))
    assert steps.book.read(Swept, keys.swept(ledger_id, uid)) is not None


def test_an_idle_topic_past_its_retention_is_stuck_unless_a_subscription_keeps_it(cluster):
    namespace = "public/resting"
    cluster.make_namespace(
        namespace, retention={"retentionTimeInMinutes": 60, "retentionSizeInMB": -1}
    )
    consumed, kept = (filled(cluster, name, namespace) for name in ("consumed", "kept"))
    for spec, subscription in ((consumed, CONSUMER), (consumed, LAGGING), (kept, CONSUMER)):
        consume(cluster, spec, subscription, 20 * LEDGERS)
    unload(cluster, namespace, consumed, kept)
    names = [*ml_names(consumed), *ml_names(kept)]
    later = replace(cluster.steps, now=lambda: datetime.now(UTC) + timedelta(hours=2))

    def overdue():
        with open_policies(later) as policies:
            topics = StuckTopics(later, policies)
            read = [(name, later.topics.read(name)) for name in names]
            found = [one for name, node in read for one in topics.look(Topic(name, *node))]
        return [one for one in found if one.kind is StuckKind.RETENTION_OVERDUE]

    [one] = overdue()
    assert one.subject == f"persistent://{consumed.topic}"
    assert f"the oldest {listed(cluster, consumed)[0]}, are consumed" in one.detail
    with client_of(cluster.endpoints) as client:
        client.subscribe(f"persistent://{consumed.topic}", CONSUMER)
        assert overdue() == []  # loaded: its broker trims in its own time
