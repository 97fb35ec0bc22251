"""Reading levels from a broker that answers, half answers, or is away."""

import json
from urllib.parse import quote

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.metastore_sim import Cluster
from tiering_assets.resources.errors import (
    BrokerError,
    BrokerNotFoundError,
    FormatError,
    MetadataError,
)
from tiering_assets.resources.pulsar.policies import PolicyReader
from tiering_assets.resources.pulsar.policy_levels import PolicyLevel, RetentionLimits
from tiering_assets.resources.settings import BrokerSettings

TOPIC = "persistent://public/default/orders"
NODE = "/admin/policies/public/default"
NS = "/namespaces/public/default"
OWN = "/persistent/public/default/orders"
BYTES = "managedLedgerOffloadThresholdInBytes"
BUCKET = "s3ManagedLedgerOffloadBucket"
CONFIG = {
    "clusterName": "c1",
    "managedLedgerOffloadDriver": "aws-s3",
    "managedLedgerOffloadAutoTriggerSizeThresholdBytes": "-1",
    "ttlDurationDefaultInSeconds": 0,
    "nothing": None,
}
TOKEN = "the-token"


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def broker():
    with running_admin_simulator() as simulator:
        simulator.get("/brokers/configuration/runtime", CONFIG)
        simulator.get("/brokers/c1", [simulator.address])
        simulator.get(NS, {"message_ttl_in_seconds": 9, "offload_policies": {BYTES: 5}})
        for path in ("offloadPolicies", "retention", "messageTTL"):
            simulator.get(f"{OWN}/{path}")
        simulator.get(f"{OWN}/offloadPolicies?applied=true", {BUCKET: "b"})
        yield simulator


def reader_of(url, cluster, token=TOKEN):
    return PolicyReader(BrokerSettings(admin_url=url, token=token, timeout_s=5), cluster.client())


@pytest.fixture
def reader(broker, cluster):
    made = reader_of(broker.url, cluster)
    yield made
    made.close()


@pytest.fixture
def away(cluster):
    """A reader whose broker refuses connections."""
    with running_admin_simulator() as gone:
        url = gone.url
    made = reader_of(url, cluster)
    yield made
    made.close()


def test_each_level_is_read_on_its_own(broker, reader):
    broker.get(f"{OWN}/retention", {"retentionTimeInMinutes": 1, "retentionSizeInMB": -1})
    broker.get(f"{OWN}/messageTTL", 30)
    broker.get(f"{OWN}/offloadPolicies", {BYTES: 0})
    found = reader.read(TOPIC)
    assert found.topic == PolicyLevel(
        offload={BYTES: 0}, retention=RetentionLimits(minutes=1, megabytes=-1), ttl_s=30
    )
    assert (found.namespace.threshold_bytes, found.namespace.ttl_s) == (5, 9)
    assert found.broker is not None
    assert (found.broker.threshold_bytes, found.broker.ttl_s) == (-1, 0)
    assert found.applied == {BUCKET: "b"}
    assert found.complete
    assert found.read_from == "broker"


def test_a_partition_is_asked_as_the_whole_topic(reader):
    assert reader.read(f"{TOPIC}-partition-3").complete


@pytest.mark.parametrize("status", [404, 405])
def test_no_such_topic_or_switched_off_topic_policies_are_none(broker, reader, status):
    for path in ("offloadPolicies", "offloadPolicies?applied=true", "retention", "messageTTL"):
        broker.get(f"{OWN}/{path}", {"reason": "no"}, status=status)
    found = reader.read(TOPIC)
    assert found.topic == PolicyLevel()
    assert found.complete


def test_a_topic_level_that_fails_is_unknown_and_not_empty(broker, reader):
    broker.get(f"{OWN}/retention", {"reason": "no cache"}, status=500)
    found = reader.read(TOPIC)
    assert found.topic is None
    assert not found.complete
    assert found.broker is not None
    assert "no cache" in found.unknown["topic"]


def test_brokers_and_namespaces_are_asked_once_per_reader(broker, reader):
    reader.read(TOPIC)
    before = [line for line, _token in broker.requests]
    reader.read(f"{TOPIC}-partition-1")
    after = [line for line, _token in broker.requests][len(before) :]
    assert len(after) == 4
    assert all(OWN in line for line in after)


def test_the_namespace_node_stands_in_for_a_broker_that_is_away(cluster, away):
    policies = {"offload_policies": {BYTES: 5}, "message_ttl_in_seconds": None, "bundles": {}}
    cluster.put(NODE, json.dumps(policies).encode())
    found = away.read(TOPIC)
    assert found.namespace == PolicyLevel(offload={BYTES: 5})
    assert (found.topic, found.broker) == (None, None)
    assert found.read_from == "metadata store"
    assert not found.complete
    assert "cannot reach the broker" in found.unknown["topic"]
    assert TOKEN not in str(found)


@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_broker_that_refuses_its_settings_is_as_good_as_away(broker, cluster, reader, status):
    broker.get("/brokers/configuration/runtime", {"reason": "no"}, status=status)
    cluster.put(NODE, b"{}")
    assert not reader.read(TOPIC).complete


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"offload_policies": {"%s": "1"}}' % BYTES.encode()]
)
def test_a_node_that_is_no_policy_is_a_format_error_that_names_it(cluster, away, data):
    cluster.put(NODE, data)
    with pytest.raises(FormatError, match=NODE):
        away.read(TOPIC)


def test_no_broker_and_no_node_is_an_error(away):
    with pytest.raises(BrokerNotFoundError, match=rf"has no {NODE}"):
        away.read(TOPIC)


def test_no_broker_and_no_metadata_store_is_an_error(cluster):
    store = cluster.client()
    with running_admin_simulator() as gone:
        url = gone.url
    store.fail_reads(1)
    reader = PolicyReader(BrokerSettings(admin_url=url), store)
    with pytest.raises(MetadataError):
        reader.read(TOPIC)
    reader.close()


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"7"])
def test_an_answer_that_is_no_policy_is_a_format_error(broker, reader, body):
    broker.get(NS, body)
    with pytest.raises(FormatError, match=r"namespace|not JSON"):
        reader.read(TOPIC)


def test_a_merge_that_the_broker_contradicts_is_told_when_it_is_read(broker, reader):
    broker.get(f"{OWN}/offloadPolicies", {BUCKET: "elsewhere"})
    with pytest.raises(BrokerError, match=r"bucket is 'elsewhere'.*applies 'b'"):
        reader.read(TOPIC)


def test_a_legacy_name_has_no_policies_that_we_can_read(reader):
    with pytest.raises(FormatError, match="persistent://p/c/n/t"):
        reader.read("persistent://p/c/n/t")


def test_who_must_load_nothing_asks_a_topic_only_where_a_broker_owns_its_bundle(broker, cluster):
    owned = f"/brokers/c1/{quote(broker.address, safe='')}/ownedNamespaces"

    def levels():
        made = PolicyReader(
            BrokerSettings(admin_url=broker.url, timeout_s=5), cluster.client(), loads_nothing=True
        )
        broker.requests.clear()
        found = made.read(TOPIC)
        made.read(TOPIC)
        made.close()
        return found, [line for line, _token in broker.requests if OWN in line]

    broker.get(owned, {"public/default/0x00000000_0xffffffff": {}})
    found, asked = levels()
    assert found.complete
    assert len(asked) == 8
    nobody: tuple[dict[str, object], ...] = (
        {},
        {"public/other/0x00000000_0xffffffff": {}},
        {"no bundle": {}},
    )
    for answer in nobody:
        broker.get(owned, answer)
        found, asked = levels()
        assert asked == []
        assert (found.topic, found.complete) == (None, False)
        assert "no broker owns" in found.unknown["topic"]
    broker.get(owned, {"reason": "not allowed"}, status=403)
    assert levels()[1] == []


BUNDLES = {"public/default/0x00000000_0xffffffff": {"is_active": True}}


@pytest.mark.parametrize("told", [BUNDLES, {}, [], None, "text", [{"is_active": True}]])
def test_a_topic_is_owned_where_a_broker_names_its_bundle(broker, reader, told):
    path = f"/brokers/c1/{quote(broker.address, safe='')}/ownedNamespaces"
    broker.get(path, told)
    assert reader.owned(TOPIC) is (told is BUNDLES)


def test_where_no_broker_answers_nobody_is_known_to_own_it(away):
    assert not away.owned(TOPIC)
