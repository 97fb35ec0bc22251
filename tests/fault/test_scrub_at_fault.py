"""Scrub and heal while stores, brokers and other runs are in the way."""

from __future__ import annotations

import pytest

from tests.support.fault_lab import certificate_of
from tests.support.topic_halves import publish_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger.claims import claim_ledger
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Quarantine, Scrub
from tiering_assets.resources.errors import ObjectStoreError, RefusedError
from tiering_assets.scrub.heal import Healed
from tiering_assets.scrub.scrub import scrub
from tiering_assets.tasks.runner import LocalRunner
from tiering_assets.tasks.worker import Worker

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("scrubbed")


def published(lab, stack, topic):
    [outcome] = offload_batch(stack, [topic.ledger_id])
    assert outcome.state == "published"
    lab.older(stack)
    return certificate_of(outcome)


def attempts(stack, topic):
    return [*stack.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))]


def test_a_store_that_fails_while_it_is_scrubbed_says_nothing_about_the_copy(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        record = published(lab, stack, topic)
        real = stack.objects

        class Away:
            def __getattr__(self, name):
                return getattr(real, name)

            def get_range(self, key, **_where):
                raise ObjectStoreError(f"GET {key}: 503 SlowDown")

        runner = LocalRunner(
            stack.settings, make_worker=lambda: Worker(stack.settings, store=Away())
        )
    with lab.open(runner=runner) as stack:
        run = scrub(stack, [topic.ml_name], deep=True)
        [looked] = run.looked
        assert isinstance(looked.error, ObjectStoreError)
        assert "503 SlowDown" in str(looked.error)
        assert (run.broken, run.healed) == ([], {})
        assert stack.book.read(Quarantine, keys.quarantine(topic.ledger_id, record.uid)) is None
        assert stack.book.keys(f"scrubs/{topic.ledger_id}/") == []


def test_a_broken_ledger_that_another_run_works_on_waits_and_is_healed_later(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as stack, lab.open() as other:
        record = published(lab, stack, topic)
        stack.objects.delete(record.data.key)
        assert claim_ledger(other, topic.ledger_id) is None
        run = scrub(stack, [topic.ml_name], deep=True)
        waits = run.healed[topic.ledger_id]
        assert isinstance(waits, Wait)
        assert waits.reason is Reason.CLAIMED
        assert other.run_id in waits.detail
        failed = stack.book.read(Scrub, keys.scrub(topic.ledger_id, record.uid, "failed"))
        assert failed is not None
        assert failed.record.lost == ()  # the bookies have it

        run = scrub(other, [topic.ml_name])  # not due, but known to be broken
        assert run.looked == []
        assert isinstance(run.healed[topic.ledger_id], Healed)
    lab.readable(topic, reloaded=True)


def test_a_copy_in_the_place_of_a_broken_one_that_the_broker_cannot_read_is_taken_out(lab):
    namespace = lab.namespace("heal-refused")
    topic = lab.topic(namespace)
    with lab.open(lab.with_section("publish", confirm_timeout_s=2.0)) as stack:
        record = published(lab, stack, topic)
        stack.objects.delete(record.data.key)
        wrong = {
            **lab.offload_policies(),
            "s3ManagedLedgerOffloadCredentialId": "nobody",
            "s3ManagedLedgerOffloadCredentialSecret": "no-secret-of-ours",
        }
        lab.admin("POST", f"/namespaces/{namespace}/offloadPolicies", wrong)
        run = scrub(stack, [topic.ml_name], deep=True)
        refused = run.healed[topic.ledger_id]
        assert isinstance(refused, RefusedError)
        assert refused.exit_code == 26
        assert "readers are back on the bookies" in str(refused)
        assert lab.context_uid(stack, topic) is None  # neither the broken one nor the unread one
        lab.readable(topic, reloaded=True)

        lab.admin("DELETE", f"/namespaces/{namespace}/removeOffloadPolicies")
        before = len(attempts(stack, topic))
        [again] = offload_batch(stack, [topic.ledger_id])
        assert again.state == "published"
        assert len(attempts(stack, topic)) == before == 2  # the healthy copy is used
        assert lab.context_uid(stack, topic) != record.uid
    lab.readable(topic, reloaded=True)


def test_a_publisher_whose_attempt_was_quarantined_meanwhile_stops(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as sleeper:
        [outcome] = offload_batch(sleeper, [topic.ledger_id], publish=False)
        record = certificate_of(outcome)
        assert outcome.certificate is not None
        assert outcome.ml_czxid is not None
        sleeper.book.create(
            keys.quarantine(topic.ledger_id, record.uid),
            Quarantine(
                ledger_id=topic.ledger_id,
                uid=record.uid,
                ml_name=topic.ml_name,
                reason="block 1: SHA-256 differs",
                found_at=sleeper.now(),
                writer=sleeper.writer,
                previous=record.previous,
            ),
        )
        result = publish_topic(
            sleeper,
            topic.ml_name,
            {topic.ledger_id: outcome.certificate},
            ml_czxid=outcome.ml_czxid,
        )[topic.ledger_id]
        assert isinstance(result, RefusedError)
        assert "is quarantined since it was certified" in str(result)
        assert lab.context_uid(sleeper, topic) is None
        [again] = offload_batch(sleeper, [topic.ledger_id])  # as the message says
        assert certificate_of(again).uid != record.uid
        assert again.state == "published"
    lab.readable(topic, reloaded=True)
