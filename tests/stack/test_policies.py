"""Policies as a real broker takes them by REST, and its own automatic offload against our
selection.

The last test takes the broker away; what it leaves is in ZooKeeper alone.
"""

import json
import time
from dataclasses import replace

import pytest

from tests.support.cli_shell import Shell
from tests.support.selected import select_from_topic, selected_ids
from tests.support.tiered_cluster import ml_names, tiered_cluster, wait_until
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.policy.policies import check_policies, open_policies
from tiering_assets.policy.selection import ListedLedger, Threshold, Thresholds, select_ledgers
from tiering_assets.resources.devstack.traffic import TopicSpec, produce
from tiering_assets.resources.errors import BrokerError
from tiering_assets.resources.metastore.topic_names import parse_topic_name

pytestmark = pytest.mark.stack

KIB = 1024
SETTLE_S = 2.0
OLD_S = 15  # longer than a busy machine takes from a ledger's end to the broker's choice
ROLLOVER = 2000  # entries; the stack's ledger_entries_max


@pytest.fixture(scope="module")
def cluster(stack_to_stop):
    with tiered_cluster(stack_to_stop) as connected:
        yield connected


@pytest.fixture(scope="module")
def shell(stack_to_stop, tmp_path_factory):
    return Shell(stack_to_stop, tmp_path_factory.mktemp("policies"))


def put(cluster, path, body, method="PUT"):
    cluster.admin(method, path, json.dumps(body).encode())


def fields(shell, topic, **changes):
    document = shell.document("policy", "show", topic, **changes)
    [only] = document["topics"]
    return only, {row["name"]: (row["value"], row["origin"]) for row in only["fields"]}


@pytest.fixture(scope="module")
def described(cluster):
    """A namespace with policies, and a topic in it with some of its own."""
    namespace = "public/described"
    cluster.make_namespace(
        namespace, retention={"retentionTimeInMinutes": 60, "retentionSizeInMB": -1}
    )
    put(cluster, f"/namespaces/{namespace}/offloadThreshold", 10**9)
    put(cluster, f"/namespaces/{namespace}/offloadThresholdInSeconds", 1800)
    put(cluster, f"/namespaces/{namespace}/offloadDeletionLagMs", 7_200_000)
    put(cluster, f"/namespaces/{namespace}/messageTTL", 900, "POST")
    spec = TopicSpec(topic=f"{namespace}/orders", messages=10, payload_bytes=KIB)
    plain = replace(spec, topic=f"{namespace}/plain")
    cluster.fill(spec, plain)
    path = f"/persistent/{spec.topic}"
    own = {"retentionTimeInMinutes": 20, "retentionSizeInMB": 500}
    put(cluster, f"{path}/retention", own, "POST")
    cluster.admin("POST", f"{path}/messageTTL?messageTTL=30")
    store = cluster.steps.settings.store
    offload = {
        "managedLedgerOffloadDriver": "aws-s3",
        "s3ManagedLedgerOffloadBucket": store.bucket,
        "s3ManagedLedgerOffloadServiceEndpoint": store.endpoint,
        "s3ManagedLedgerOffloadRegion": store.region,
        "managedLedgerOffloadThresholdInBytes": 10**6,
    }
    put(cluster, f"{path}/offloadPolicies", offload, "POST")
    wait_until(
        lambda: (
            cluster.admin("GET", f"{path}/offloadPolicies")
            and cluster.admin("GET", f"{path}/messageTTL") == 30
            and cluster.admin("GET", f"{path}/retention")
        ),
        "the topic's policies have come through their topic",
    )
    return spec, plain


def test_each_field_shows_the_level_that_set_it(cluster, described, shell):
    spec, plain = described
    bucket = cluster.steps.settings.store.bucket
    _answer, found = fields(shell, spec.topic)
    assert found["managedLedgerOffloadThresholdInBytes"] == (10**6, "topic")
    assert found["managedLedgerOffloadThresholdInSeconds"] == (1800, "namespace")
    assert found["managedLedgerOffloadDeletionLagInMillis"] == (7_200_000, "namespace")
    assert found["retentionTimeInMinutes"] == (20, "topic")
    assert found["retentionSizeInMB"] == (500, "topic")
    assert found["messageTTLInSeconds"] == (30, "topic")
    assert found["managedLedgerOffloadDriver"] == ("aws-s3", "topic")
    assert found["managedLedgerOffloadBucket"][1] == "topic"
    _answer, found = fields(shell, plain.topic)
    assert found["managedLedgerOffloadThresholdInBytes"] == (10**9, "namespace")
    assert found["retentionTimeInMinutes"] == (60, "namespace")
    assert found["messageTTLInSeconds"] == (900, "namespace")
    assert found["managedLedgerOffloadDriver"] == ("aws-s3", "broker")
    assert found["managedLedgerOffloadBucket"] == (bucket, "broker")


@pytest.fixture(scope="module")
def undescribed(cluster):
    spec = TopicSpec(topic="public/default/no-policies", messages=10, payload_bytes=KIB)
    cluster.fill(spec)
    return spec


def test_a_topic_without_policies_shows_the_brokers_defaults_and_then_ours(
    undescribed, shell, tmp_path
):
    spec = undescribed
    _answer, found = fields(shell, spec.topic)
    assert found["managedLedgerOffloadThresholdInBytes"] == (-1, "broker")
    assert found["retentionTimeInMinutes"] == (-1, "broker")
    assert found["managedLedgerOffloadDeletionLagInMillis"] == (30 * 24 * 3600 * 1000, "broker")
    assert found["messageTTLInSeconds"] == (0, "broker")
    own = tmp_path / "tiering.toml"
    own.write_text(f'[topics."{spec.topic}"]\noffloadTimeInMinutes = 5\ntiering = "paused"\n')
    _answer, found = fields(shell, spec.topic, TIERKEEPER_POLICY_FILE=str(own))
    assert found["managedLedgerOffloadThresholdInSeconds"] == (300, "tiering.toml topic")
    assert found["managedLedgerOffloadThresholdInBytes"] == (-1, "broker")
    assert found["tiering"] == ("paused", "tiering.toml topic")


def test_what_cannot_be_is_found_among_all_topics(described, shell):
    """The namespace offloads after 30 minutes what its topic keeps for 20."""
    spec, plain = described
    document = shell.document("policy", "check", code=1)
    refused = {one["topic"]: one for one in document["policies"] if one["refused"]}
    assert f"persistent://{plain.topic}" not in refused
    rules = [f for f in refused[f"persistent://{spec.topic}"]["findings"] if f["refused"]]
    assert [finding["rule"] for finding in rules] == ["offload_time"]
    assert "1800 s (namespace)" in rules[0]["text"]
    assert "20 min (topic)" in rules[0]["text"]


# ----- our selection and the broker's


def offloaded(cluster, spec):
    """Ledgers with a context, complete or not: what the broker took or has begun to take."""
    listed = cluster.managed_ledger(spec).ledgers
    return sorted(i.ledger_id for i in listed if i.offload is not None)


def complete(cluster, spec):
    listed = cluster.managed_ledger(spec).ledgers
    return sorted(i.ledger_id for i in listed if i.offload is not None and i.offload.complete)


def selected(cluster, spec, by):
    """What we select now, by the policy that the broker goes by."""
    [ml_name] = ml_names(spec)
    with open_policies(cluster.steps) as policies:
        policy = policies.of_topic(str(parse_topic_name(f"persistent://{spec.topic}")))
    verdicts = select_from_topic(
        cluster.steps, ml_name, policy, now_ms=round(time.time() * 1000), loaded=True
    )
    assert {name for verdict in verdicts for name in verdict.by} <= {by}
    return selected_ids(verdicts)


def closed(cluster, spec):
    return {i.ledger_id: i.size for i in cluster.managed_ledger(spec).ledgers if not i.is_open}


def roll_over(cluster, spec):
    """Send what fills one ledger and begins another: the broker looks for work when it closes
    one.
    """
    produce(cluster.endpoints, replace(spec, messages=ROLLOVER + 50, payload_bytes=100))


def settled(cluster, spec, expected):
    wait_until(lambda: complete(cluster, spec) == expected, f"the broker offloads {expected}")
    time.sleep(SETTLE_S)
    assert offloaded(cluster, spec) == expected


def ours(cluster, spec, threshold, *, before=()):
    """What we select of the ledgers as they are, as if only `before` were offloaded."""
    listed = [
        ListedLedger(
            ledger_id=info.ledger_id,
            bytes=info.size or 0,
            closed_at_ms=info.closed_at_ms,
            offloaded=info.ledger_id in before,
        )
        for info in cluster.managed_ledger(spec).ledgers
    ]
    thresholds = Thresholds(bytes=threshold)
    return selected_ids(select_ledgers(listed, thresholds, now_ms=0, loaded=True))


def test_by_size_the_broker_takes_what_we_selected_offloaded_ledgers_counted(cluster):
    """The ledger that rolls over holds about as many bytes as one of the others (some 300 kB)."""
    namespace = "public/by-size"
    cluster.make_namespace(namespace)
    spec = TopicSpec(topic=f"{namespace}/t", messages=100, payload_bytes=3 * KIB)
    cluster.fill(*(replace(spec, seed=seed) for seed in range(4)))
    first, second, third, fourth = sorted(closed(cluster, spec))
    one = closed(cluster, spec)[first]

    def threshold(value):
        """The policy, then a topic that was loaded with it."""
        put(cluster, f"/namespaces/{namespace}/offloadThreshold", value)
        cluster.seal(spec)
        return value

    kept = threshold(one * 33 // 10)
    assert selected(cluster, spec, Threshold.BYTES) == [first]
    roll_over(cluster, spec)
    wait_until(lambda: len(closed(cluster, spec)) == 5, "one more ledger is closed")
    assert ours(cluster, spec, kept) == [first, second]
    settled(cluster, spec, [first, second])
    assert selected(cluster, spec, Threshold.BYTES) == []

    kept = threshold(one * 26 // 10)
    assert selected(cluster, spec, Threshold.BYTES) == [third]
    before = set(closed(cluster, spec))
    roll_over(cluster, spec)
    wait_until(lambda: set(closed(cluster, spec)) > before, "one more ledger is closed")
    assert ours(cluster, spec, kept, before=(first, second)) == [third, fourth]
    settled(cluster, spec, [first, second, third, fourth])


def test_by_time_the_broker_takes_what_we_selected(cluster):
    namespace = "public/by-time"
    cluster.make_namespace(namespace)
    spec = TopicSpec(topic=f"{namespace}/t", messages=50, payload_bytes=KIB)
    cluster.fill(spec, replace(spec, seed=1))
    old = sorted(closed(cluster, spec))
    time.sleep(OLD_S + 2)
    put(cluster, f"/namespaces/{namespace}/offloadThresholdInSeconds", OLD_S)
    cluster.fill(replace(spec, seed=2))  # closed now, and loaded with the policy
    assert len(closed(cluster, spec)) == 3
    assert selected(cluster, spec, Threshold.SECONDS) == old
    roll_over(cluster, spec)
    settled(cluster, spec, old)


# ----- no broker


def test_without_a_broker_the_namespace_comes_from_zookeeper_and_nothing_goes_out(
    cluster, described, undescribed, shell
):
    spec, plain = described
    [ml_name] = ml_names(undescribed)
    [ledger_id] = cluster.ledger_ids(undescribed)
    with_broker = fields(shell, plain.topic)[1]
    version = cluster.steps.topics.read(ml_name)[1].stat.version
    cluster.running.stop_server("broker")
    try:
        answer, found = fields(shell, plain.topic)
        of_namespace = {n: v for n, v in with_broker.items() if v[1] == "namespace"}
        assert len(of_namespace) >= 6
        assert {name: found[name] for name in of_namespace} == of_namespace
        assert answer["read_from"] == "metadata store"
        assert [line.partition(":")[0] for line in answer["unknown"]] == [
            "broker level",
            "topic level",
        ]
        assert found["managedLedgerOffloadBucket"] == (None, "unknown")
        _answer, found = fields(shell, spec.topic)
        assert found["retentionTimeInMinutes"] == (60, "namespace")  # its own 20 cannot be seen
        assert not any(
            row["certain"]
            for row in answer["fields"]
            if row["name"] not in ("tiering", "release.deletion_lag_s")
        )
        [checked] = check_policies(cluster.steps, [ml_name])
        assert checked.policy is not None
        assert not checked.policy.complete
        assert not checked.refused

        [outcome] = offload_batch(cluster.steps, [ledger_id])
        assert isinstance(outcome.error, BrokerError)
        with pytest.raises(BrokerError):
            release_topic(cluster.steps, ml_name, [ledger_id])
        assert cluster.steps.topics.read(ml_name)[1].stat.version == version
        assert cluster.steps.ledgers.read(ledger_id) is not None
    finally:
        cluster.running.start_server("broker")
