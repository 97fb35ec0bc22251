"""Two unlike brokers: the next one to serve a topic counts as much as the one that does now.

As started both skip what they cannot read, and the second has no offload driver of its own.
"""

import time
from dataclasses import replace

import pytest

from tests.support.tiered_cluster import tiered_cluster
from tests.support.untame import (
    UNTAME,
    filled,
    move,
    namespace,
    owner_of,
    read_anew,
    set_offload_policies,
    set_skipping,
    why_not_released,
)
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.doctor.cluster import check_broker
from tiering_assets.resources.devstack.stack import DevStack

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def as_started(tmp_path_factory):
    options = replace(UNTAME, bookies=3)
    with (
        DevStack.start(tmp_path_factory.mktemp("two-brokers"), options) as running,
        tiered_cluster(running) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def cluster(as_started):
    """The same after what the refusals ask for: no broker skips any more."""
    set_skipping(as_started, False)
    return as_started


def contexts(cluster, spec):
    return [one.ledger_id for one in cluster.managed_ledger(spec).ledgers if one.offload]


def test_a_broker_that_skips_or_cannot_read_is_named_and_nothing_is_published(as_started):
    cluster = as_started
    spec, sent, ledger_ids = filled(
        cluster, f"{namespace(cluster, 'refused', readable_everywhere=False)}/topic"
    )
    first, second = cluster.endpoints.broker_web["broker"], cluster.endpoints.broker_web["broker2"]
    for server in ("broker", "broker2"):  # whichever of them serves the topic
        move(cluster, spec.topic, server)
        for outcome in offload_batch(cluster.steps, ledger_ids):
            said = str(outcome.error)
            assert "offload driver" in said or "driver is None" in said, outcome
            named = ", ".join(sorted((first, second)))
            assert f"autoSkipNonRecoverableData is not false at {named}" in said
    for outcome in offload_batch(cluster.steps, ledger_ids, publish=False):
        assert outcome.verified, outcome
    for outcome in offload_batch(cluster.steps, ledger_ids):  # asked again at publication
        assert "autoSkipNonRecoverableData is not false" in str(outcome.error)
    assert contexts(cluster, spec) == []
    assert cluster.ledger_ids(spec, "verified") == ledger_ids
    assert read_anew(cluster, spec) == sent
    found = {f.check: f for f in check_broker(cluster.steps.settings, cluster.steps.broker)}
    assert found["autoSkipNonRecoverableData"].level == "fail"
    assert found["offload driver"].level == "warn"
    assert second in found["offload driver"].text
    assert first not in found["offload driver"].text


def test_nothing_is_released_once_a_broker_skips_or_cannot_read(cluster):
    spec, sent, ledger_ids = filled(cluster, f"{namespace(cluster, 'waits')}/topic")
    cluster.offload(ledger_ids)
    full = spec.topic.rpartition("/")[0]
    time.sleep(1.1)  # the lag
    set_skipping(cluster, True)
    try:
        for said in why_not_released(cluster, spec, ledger_ids):
            assert "autoSkipNonRecoverableData=true" in said
    finally:
        set_skipping(cluster, False)
    cluster.admin("DELETE", f"/namespaces/{full}/removeOffloadPolicies")
    second = cluster.endpoints.broker_web["broker2"]
    for said in why_not_released(cluster, spec, ledger_ids):
        assert f"cannot read our objects, their offload driver is not ours: {second}" in said
    set_offload_policies(cluster, full)
    assert read_anew(cluster, spec) == sent
    cluster.release(spec, ledger_ids)
    assert read_anew(cluster, spec) == sent


def test_a_released_topic_is_read_whichever_broker_serves_it_bookkeeper_first(cluster):
    spec, sent, ledger_ids = filled(cluster, f"{namespace(cluster, 'moves')}/topic")
    policy = cluster.steps.broker.effective_offload_policies(f"persistent://{spec.topic}")
    assert (policy.read_priority or "").lower().replace("_", "-") == "bookkeeper-first"
    move(cluster, spec.topic, "broker2")
    cluster.offload(ledger_ids)
    for server in ("broker", "broker2"):
        move(cluster, spec.topic, server)
        assert cluster.content(spec) == sent
    cluster.release(spec, ledger_ids)
    cluster.require_gone_from_bookies(ledger_ids)
    for server in ("broker", "broker2"):
        move(cluster, spec.topic, server)
        assert owner_of(cluster, spec.topic) == cluster.endpoints.broker_web[server]
        assert cluster.content(spec) == sent
