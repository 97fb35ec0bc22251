"""The read-only tour of docs/your-own-cluster.md on real servers: what it tells."""

import time
from uuid import uuid4

import pytest
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE, make_digest_acl

from tests.support.broker_truncation import (
    FIRST_LOST,
    short_lag_namespace,
    truncated_by_the_broker,
)
from tests.support.cli_shell import Shell
from tests.support.request_count import counted_requests
from tests.support.tiered_cluster import tiered_cluster
from tiering_assets.look.brakes.budget import set_budget
from tiering_assets.look.topic.brokers_seen import known_brokers
from tiering_assets.resources.devstack.bucket import s3_client
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import KIB, TopicSpec
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore
from tiering_assets.tasks.rate_budget import NAMES

pytestmark = pytest.mark.stack
ANY = range(100)  # other tests leave findings on the shared stack; none of them matters here
NO_CLUSTER = {
    "TIERKEEPER_METADATA_STORE": "zk:127.0.0.1:1",
    "TIERKEEPER_METADATA_CONNECT_TIMEOUT_S": "1",
}


@pytest.fixture(scope="module")
def cluster(stack_to_stop):
    with tiered_cluster(stack_to_stop) as connected:
        yield connected


@pytest.fixture(scope="module")
def shell(stack_to_stop, tmp_path_factory):
    return Shell(stack_to_stop, tmp_path_factory.mktemp("tour"))


# ----- the estimate


@pytest.mark.parametrize("budget", ["as it was", "recorded"])
def test_the_estimate_is_what_the_offload_then_does(cluster, shell, budget):
    if budget == "recorded":
        set_budget(cluster.steps, dict.fromkeys(NAMES), author="test")
    namespace = f"public/tour-{uuid4().hex[:6]}"
    cluster.make_namespace(namespace)
    spec = TopicSpec(topic=f"{namespace}/orders", messages=130, payload_bytes=100 * KIB)
    known_brokers(cluster.steps)  # their record is written once an hour
    cluster.fill(spec, TopicSpec(topic=spec.topic, messages=20, payload_bytes=KIB, seed=1))
    ids = cluster.ledger_ids(spec)
    told = shell.document("topic", "offload", spec.topic, "--plan")
    estimate = told["estimate"]
    assert told["chosen"] == ids
    assert (estimate["ledgers"], estimate["exact_ledgers"], estimate["unloads"]) == (2, 2, 2)
    assert {row["reason"] for row in estimate["left_out"]} == {"open"}
    reloads = len(cluster.steps.book.keys("disturbances/"))

    started = time.monotonic()
    with counted_requests() as seen:
        outcomes = cluster.offload(ids)
    # Budgets are read each ten seconds: of those that it took, or of those that were foreseen. A
    # command looks for the newest page of the day book, which this process knows.
    more_readings = max(time.monotonic() - started, estimate["seconds"]) / 10 + 3 + 1
    records = [one.certificate.record for one in outcomes]
    assert estimate["parts"] == sum(len(r.blocks) for r in records if len(r.blocks) > 1) == 3
    assert estimate["payload_bytes"] == sum(r.payload_bytes for r in records)
    assert estimate["object_bytes"] == sum(r.data.size for r in records)
    assert estimate["index_bytes"] == sum(r.index.size for r in records)
    requests = estimate["requests"]
    for name in ("put", "post", "head"):
        assert requests[name] == seen[name.upper()], (name, requests, seen)
    for name in ("get", "list"):
        assert abs(requests[name] - seen[name.upper()]) <= more_readings, (name, requests, seen)
    assert len(cluster.steps.book.keys("disturbances/")) - reloads == estimate["unloads"]

    after = shell.document("topic", "offload", spec.topic, "--plan")["estimate"]
    reasons = {row["reason"]: row["ledgers"] for row in after["left_out"]}
    assert reasons["already published"] == 2


# ----- the scan


def test_an_object_that_a_broker_truncated_is_found_with_the_entries_that_are_lost(cluster, shell):
    namespace = short_lag_namespace(cluster, "tour-lag")
    spec, ledger_id, uid = truncated_by_the_broker(cluster, namespace)
    last = cluster.ledger(ledger_id).last_entry_id
    bucket, key = cluster.endpoints.s3_bucket, f"{uid}-ledger-{ledger_id}"

    def scan(*more, **changes):
        found = shell.document("object", "scan", bucket, "--prefix", key, *more, code=1, **changes)
        [damaged] = found["damaged"]
        assert (damaged["key"], damaged["kind"]) == (key, "truncated")
        assert damaged["written_by"] == "broker"
        spans = [(r["first_entry_id"], r["last_entry_id"]) for r in damaged["unreadable"]]
        assert spans == [(FIRST_LOST, last)]
        return damaged

    alive = scan()
    assert (alive["bookie_copy"], alive["readers"], alive["lost"]) == (
        "lives",
        "read by brokers",
        [],
    )
    assert f"scrub run --topic {spec.topic} --execute" in alive["next_step"]
    assert scan("--shallow")["findings"]
    unknown = scan(**NO_CLUSTER)
    assert (unknown["bookie_copy"], unknown["lost"]) == ("unknown", [])

    [listed] = shell.document("topic", "list", "--namespace", namespace)["topics"]
    counts = listed["counts"]
    assert counts["published_by_broker"]["ledgers"] == 1
    assert counts["published_by_us"]["ledgers"] == 0
    reasons = shell.document("topic", "backlog", spec.topic)["reasons"]
    assert "published (broker)" in {row["reason"] for row in reasons}

    node = cluster.steps.ledgers.read(ledger_id)
    path = cluster.steps.ledgers.path(ledger_id)
    cluster.steps.metadata.delete(path, expected_version=node.stat.version)  # as the broker would
    gone = scan()
    assert gone["bookie_copy"] == "gone"
    assert gone["lost"] == gone["unreadable"]
    assert "in no copy any more" in gone["next_step"]


# ----- metadata that disagrees, or may not be read


def in_bucket(cluster):
    return {(one.key, one.etag, one.last_modified) for one in cluster.steps.objects.list_objects()}


def test_a_node_that_may_not_be_read_is_named_and_is_not_absent(cluster, shell):
    namespace = f"public/tour-{uuid4().hex[:6]}"
    cluster.make_namespace(namespace)
    spec = TopicSpec(topic=f"{namespace}/secret", messages=5, payload_bytes=100)
    cluster.fill(spec)
    [ledger_id] = cluster.ledger_ids(spec)
    cluster.admin("PUT", f"/namespaces/{namespace}/unload")
    path = f"/managed-ledgers/{namespace}/persistent/secret"
    owner = KazooClient(hosts=cluster.endpoints.zookeeper)
    owner.start(timeout=30)
    try:
        before, _stat = owner.get_acls(path)
        owner.add_auth("digest", "owner:word")
        owner.set_acls(path, [make_digest_acl("owner", "word", all=True)])
        found = shell.document("topic", "list", "--namespace", namespace, code=1)
        [topic] = found["topics"]
        assert topic["counts"] is None
        for said in (path, "READ", "not absent"):
            assert said in topic["error"]
        assert path in shell("topic", "backlog", spec.topic, code=18).stderr
        bucket = in_bucket(cluster)
        assert path in shell("ledger", "offload", ledger_id, code=18).stderr
        assert in_bucket(cluster) == bucket
        rows = shell.document("doctor", schema="doctor", code=1)["findings"]
        [rights] = [row for row in rows if row["check"] == "metadata rights"]
        assert (rights["level"], path in rights["text"]) == ("fail", True)
        assert "READ and WRITE" in rights["text"]
        assert f"setAcl {path}" in rights["next_step"]
        owner.set_acls(path, [make_digest_acl("owner", "word", all=True), READ_ACL_UNSAFE[0]])
        said = shell("ledger", "offload", ledger_id, code=18).stderr
        assert f"denies us to write {path}" in said
        assert in_bucket(cluster) == bucket  # not even a claim
    finally:
        owner.set_acls(path, before)
        owner.stop()
        owner.close()


def test_addresses_that_lead_to_different_clusters_are_told_apart(cluster, shell, tmp_path):
    ours = cluster.endpoints.zookeeper

    def doctor(store):
        found = shell.document(
            "doctor", schema="doctor", code=1, TIERKEEPER_METADATA_STORE=f"zk:{store}"
        )
        return {row["check"]: row for row in found["findings"]}

    with DevStack.start(tmp_path, StackOptions(bookies=0, with_broker=False)) as another:
        other = another.endpoints.zookeeper
        foreign = ZooKeeperStore(f"zk:{other}")
        if foreign.get("/ledgers/INSTANCEID") is None:
            foreign.create("/ledgers/INSTANCEID", b"another-instance")
            foreign.create("/ledgers/LAYOUT", b"1\nflat:1")
        found = foreign.get("/ledgers/INSTANCEID")
        assert found is not None
        instance = found.data.decode()
        foreign.close()
        rows = doctor(f"{ours},{other}")
        hosts = rows["metadata hosts"]
        assert hosts["level"] == "fail"
        for said in (ours, other, instance, cluster.steps.instance):
            assert said in hosts["text"]
        assert "TIERKEEPER_METADATA_STORE" in hosts["next_step"]
        assert rows["bucket proofs"]["level"] == "skip"  # nothing is written before it is mended
        bucket = in_bucket(cluster)
        both = {"TIERKEEPER_METADATA_STORE": f"zk:{ours},{other}"}
        refused = shell("ledger", "offload", "--all", code=26, **both).stderr
        for said in (ours, other, instance, "TIERKEEPER_METADATA_STORE"):
            assert said in refused
        assert in_bucket(cluster) == bucket
        rows = doctor(other)
        assert rows["broker metadata"]["level"] == "fail"
        assert instance in rows["broker metadata"]["text"]
        assert rows["bucket proofs"]["level"] == "skip"


def test_a_bucket_with_versions_and_object_lock_is_named(cluster, shell):
    client = s3_client(cluster.endpoints)
    bucket = f"tour-{uuid4().hex[:12]}"
    client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    found = shell.document("doctor", schema="doctor", code=ANY, TIERKEEPER_STORE_BUCKET=bucket)
    rows = {row["check"]: row for row in found["findings"]}
    for check, said in (("versioning", "Enabled"), ("object lock", "enabled")):
        assert rows[check]["level"] == "warn"
        assert said in rows[check]["text"]
        assert rows[check]["next_step"]
    assert not client.list_object_versions(Bucket=bucket).get("Versions")
