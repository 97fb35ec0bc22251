"""Brokers that would not read our objects, or would delete what nobody has proven."""

from __future__ import annotations

import pytest

from tests.support.fault_lab import Lab, certificate_of, error_of
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Canary, Publication
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.errors import RefusedError

pytestmark = [pytest.mark.stack, pytest.mark.fault]

STOCK_LAG_MS = 14_400_000


def assert_unpublished(lab, stack, topic):
    assert lab.context_uid(stack, topic) is None
    published = keys.publications_of(topic.ml_name)
    assert [*stack.book.iter_records(Publication, published)] == []
    assert stack.book.read(Canary, keys.canary(topic.ml_name)) is None
    lab.readable(topic, reloaded=True)


def refusal_of(lab, outcome):
    error = error_of(outcome)
    assert isinstance(error, RefusedError)
    assert error.exit_code == 26
    lab.assert_no_secret(str(error))
    return str(error)


def test_stock_lag_is_refused_with_the_command_that_lifts_it(lab):
    namespace = lab.namespace("stock")
    lab.admin("PUT", f"/namespaces/{namespace}/offloadDeletionLagMs", STOCK_LAG_MS)
    topic = lab.topic(namespace)
    with lab.open(lab.with_section("release", deletion_lag_s=STOCK_LAG_MS / 1000)) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        said = refusal_of(lab, outcome)
        assert "nothing was copied" in said
        assert [*stack.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))] == []
        [proven] = offload_batch(stack, [topic.ledger_id], publish=False)
        [outcome] = offload_batch(stack, [topic.ledger_id])  # a copy is there: asked at publication
        said = refusal_of(lab, outcome)
        assert "nothing was copied" not in said
        assert topic.name in said
        assert "14400 s" in said  # theirs, and ours
        line = f"pulsar-admin namespaces set-offload-deletion-lag {namespace} --lag 144000s"
        assert line in said
        assert_unpublished(lab, stack, topic)

        # What the command asks of the admin API.
        lab.admin("PUT", f"/namespaces/{namespace}/offloadDeletionLagMs", 144_000_000)
        [again] = offload_batch(stack, [topic.ledger_id])
        assert certificate_of(again).uid == certificate_of(proven).uid  # not copied again
        assert again.state == "published"
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


def test_a_broker_that_reads_elsewhere_is_refused_with_both_values(lab):
    """All three at once; each by itself: tests/unit/look/topic/test_publish_gate.py."""
    namespace = lab.namespace("elsewhere")
    theirs = {"Bucket": "somebody-elses", "ServiceEndpoint": "http://127.0.0.1:9", "Region": "eu-1"}
    changed = lab.offload_policies() | {
        f"s3ManagedLedgerOffload{field}": value for field, value in theirs.items()
    }
    lab.admin("POST", f"/namespaces/{namespace}/offloadPolicies", changed)
    topic = lab.topic(namespace)
    ends = lab.endpoints
    ours = {
        "bucket": (theirs["Bucket"], ends.s3_bucket),
        "endpoint": (theirs["ServiceEndpoint"], ends.s3_endpoint),
        "region": (theirs["Region"], ends.s3_region),
    }
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        said = refusal_of(lab, outcome)
        assert topic.name in said
        for name, (their, our) in ours.items():
            assert f"{name} is {their!r}, ours is {our!r}" in said
        assert "correct store.bucket, store.region, store.endpoint if ours is the mistake" in said
        assert f"pulsar-admin namespaces set-offload-policies {namespace}" in said
        assert_unpublished(lab, stack, topic)


def test_a_broker_that_offloads_on_its_own_is_refused(lab):
    namespace = lab.namespace("auto")
    topic = lab.topic(namespace)
    lab.admin("PUT", f"/namespaces/{namespace}/offloadThreshold", 10**12)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        said = refusal_of(lab, outcome)
        assert f"pulsar-admin namespaces set-offload-threshold {namespace} --size -1" in said
        assert_unpublished(lab, stack, topic)


def test_the_canary_catches_a_broker_that_cannot_log_in(lab):
    """Same bucket, same endpoint: only reading through the broker shows it."""
    namespace = lab.namespace("canary")
    wrong = {
        **lab.offload_policies(),
        "s3ManagedLedgerOffloadCredentialId": "nobody",
        "s3ManagedLedgerOffloadCredentialSecret": "no-secret-of-ours",
    }
    lab.admin("POST", f"/namespaces/{namespace}/offloadPolicies", wrong)
    topic = lab.topic(namespace)
    with lab.open(lab.with_section("publish", confirm_timeout_s=3.0)) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        said = refusal_of(lab, outcome)
        assert f"{topic.name}: the broker cannot read entry 0 of ledger {topic.ledger_id}" in said
        assert "the change was taken back" in said
        assert "no-secret-of-ours" not in said
        assert_unpublished(lab, stack, topic)


@pytest.fixture(scope="module")
def stock_lab(tmp_path_factory):
    """A broker as it comes: no offload driver, and a lag of four hours."""
    options = StackOptions(
        bookies=1,
        broker_deletion_lag_ms=STOCK_LAG_MS,
        broker_conf={"managedLedgerOffloadDriver": None},
    )
    with DevStack.start(tmp_path_factory.mktemp("stock"), options) as running:
        yield Lab(running)


@pytest.mark.slow
@pytest.mark.prove(
    instead="tests/unit/look/topic/test_brokers.py::"
    "test_a_broker_without_a_driver_reads_no_objects_of_ours"
)
def test_a_broker_without_offloader_is_refused(stock_lab):
    topic = stock_lab.topic(stock_lab.namespace("none"))
    four_hours = stock_lab.with_section("release", deletion_lag_s=STOCK_LAG_MS / 1000)
    with stock_lab.open(four_hours) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        said = refusal_of(stock_lab, outcome)
        assert "driver is None, ours is 'aws-s3'" in said
        assert "configure the brokers' offloader" in said
        assert "set-offload-deletion-lag" in said  # all reasons at once
        assert_unpublished(stock_lab, stack, topic)
