"""SIGKILL between any two steps: the next run finishes, and every message is readable throughout."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from resources.devstack.endpoints import environment_of
from tests.support.fault_lab import YOUNGEST_S, certificate_of, error_of
from tiering_assets.records import keys
from tiering_assets.records.models import Quarantine, Release, ReleaseIntent
from tiering_assets.steps.pipeline import offload_batch
from tiering_assets.steps.publications import recorded_publications
from tiering_assets.steps.release import Released, release_topic
from tiering_assets.steps.scrub import scrub

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("killed")


@pytest.fixture
def killed_at(lab, crash_driver):
    """Run a step in a process that dies at a crash point."""

    def run(point, step, *, confirm_timeout_s=15.0, **arguments):
        settings = replace(
            lab.settings,
            offload=replace(lab.settings.offload, claim_ttl_s=YOUNGEST_S),
            publish=replace(lab.settings.publish, confirm_timeout_s=confirm_timeout_s),
        )
        ended = crash_driver.run(step, environment_of(settings), crash_at=point, **arguments)
        assert ended == -signal.SIGKILL, f"{step} ended with {ended}, never reached {point}"

    return run


# Point, and what the dead process leaves for clean-up after the next run has finished the work.
OFFLOAD_POINTS = [
    ("offload.claimed", 0),
    ("offload.attempt_recorded", 0),  # a record alone: nothing to collect
    ("offload.upload_created", 0),  # the next run goes on with the upload
    ("offload.parts_sent", 0),  # and with its parts
    ("offload.completed", 0),  # data without index: the next run writes the index
    ("offload.index_put", 0),  # both objects: verified anew against the bookies, and used
    ("verify.read_back", 0),
    ("verify.certified", 0),
    ("publish.outcome_won", 0),
    ("publish.context_set", 0),
    ("publish.unloaded", 0),
    ("publish.confirmed", 0),
    ("publish.recorded", 0),
]


@pytest.mark.parametrize(("point", "left"), OFFLOAD_POINTS, ids=[p for p, _ in OFFLOAD_POINTS])
def test_offload_killed_and_run_again_publishes_one_attempt(lab, namespace, killed_at, point, left):
    topic = lab.multi_block_topic(namespace)
    killed_at(point, "offload", ledger_ids=[topic.ledger_id])
    lab.readable(topic)

    with lab.open() as stack:
        lab.older(stack)  # the dead process's claim has run out
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.error is None
        assert outcome.state == "published"
        lab.readable(topic)
        published = lab.assert_published_once(stack, topic)

        lab.older(stack)
        swept = lab.swept(stack, topic.ledger_id)
        assert len(swept) == left
        for record in swept:
            assert record.uid != published
            assert stack.objects.head(record.data_key) is None
            assert not [*stack.objects.list_uploads(record.data_key)]

        [again] = offload_batch(stack, [topic.ledger_id])
        assert again.noop
        assert lab.assert_published_once(stack, topic) == published
    lab.readable(topic, reloaded=True)


RELEASE_POINTS = [
    "release.intended",
    "release.marked",
    "release.unloaded",
    "release.rehearsed",
    "release.deleted",
    "release.recorded",
]


@pytest.mark.parametrize("point", RELEASE_POINTS)
def test_release_killed_and_run_again_deletes_once(lab, namespace, killed_at, point):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.state == "published"
        uid = lab.context_uid(stack, topic)
        lab.older(stack)  # a lag of no seconds has passed

        killed_at(point, "release", ml_name=topic.ml_name, ledger_ids=[topic.ledger_id])
        gone = stack.ledgers.read(topic.ledger_id) is None
        assert gone == (point in ("release.deleted", "release.recorded"))
        lab.readable(topic)
        assert stack.book.read(ReleaseIntent, keys.release_intent(topic.ledger_id, uid))

        result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, Released)
        assert result.noop == gone
        assert stack.ledgers.read(topic.ledger_id) is None
        assert stack.book.read(Release, keys.release(topic.ledger_id, uid))

        listed = stack.topics.read(topic.ml_name)[0].ledger(topic.ledger_id)
        assert listed.offload.bookkeeper_deleted
        lab.older(stack)
        assert lab.swept(stack, topic.ledger_id) == []  # what was released is the only copy
    lab.readable(topic, reloaded=True)


@pytest.mark.parametrize("point", ["sweep.abandoned", "sweep.aborted", "sweep.deleted"])
def test_sweep_killed_and_run_again_leaves_nothing(lab, namespace, killed_at, point):
    topic = lab.topic(namespace)
    killed_at("offload.index_put", "offload", ledger_ids=[topic.ledger_id])
    with lab.open() as stack:
        lab.older(stack)
        [left] = lab.leavings(stack, topic.ledger_id)
        assert len(left.objects) == 2
        killed_at(point, "sweep")
        lab.swept(stack, topic.ledger_id)
        assert lab.leavings(stack, topic.ledger_id) == []
        for key in left.objects:
            assert stack.objects.head(key) is None
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert certificate_of(outcome).uid != left.attempt.record.uid
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


SCRUB_POINTS = [
    "scrub.quarantined",
    "scrub.recorded",
    "offload.index_put",
    "verify.certified",
    "publish.outcome_won",
    "publish.context_set",
    "publish.confirmed",
    "publish.recorded",
]


@pytest.mark.parametrize("point", SCRUB_POINTS)
def test_a_scrub_killed_and_run_again_heals_the_ledger(lab, namespace, killed_at, point):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        broken = certificate_of(outcome)
        lab.older(stack)
        stack.objects.delete(broken.data.key)
        killed_at(point, "scrub", ml_name=topic.ml_name)
        assert stack.ledgers.read(topic.ledger_id) is not None

        lab.older(stack)  # the dead process's claim has run out
        scrub(stack, [topic.ml_name], deep=True)
        uid = lab.context_uid(stack, topic)
        assert uid != broken.uid
        assert stack.book.read(Quarantine, keys.quarantine(topic.ledger_id, broken.uid))
        assert (topic.ledger_id, uid) in recorded_publications(stack, topic.ml_name)
        lab.readable(topic, reloaded=True)

        lab.older(stack)
        again = scrub(stack, [topic.ml_name], deep=True)
        assert (again.broken, again.healed) == ([], {})
        assert lab.context_uid(stack, topic) == uid
    lab.readable(topic)


def cannot_log_in(lab, namespace):
    """From now on the namespace's broker has S3 credentials that open nothing."""
    wrong = {
        **lab.offload_policies(),
        "s3ManagedLedgerOffloadCredentialId": "nobody",
        "s3ManagedLedgerOffloadCredentialSecret": "no-secret-of-ours",
    }
    lab.admin("POST", f"/namespaces/{namespace}/offloadPolicies", wrong)


@pytest.mark.parametrize("point", ["publish.unloaded", "publish.withdrawn"])
def test_a_canary_killed_before_or_after_it_is_taken_out_ends_taken_out(lab, killed_at, point):
    namespace = lab.namespace("canary-killed")
    cannot_log_in(lab, namespace)
    topic = lab.topic(namespace)
    killed_at(point, "offload", confirm_timeout_s=2.0, ledger_ids=[topic.ledger_id])
    with lab.open(lab.with_section("publish", confirm_timeout_s=2.0)) as stack:
        lab.older(stack)
        if point == "publish.withdrawn":
            assert lab.context_uid(stack, topic) is None
            lab.readable(topic)
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert error_of(outcome).exit_code == 26
        assert lab.context_uid(stack, topic) is None
        assert stack.ledgers.read(topic.ledger_id) is not None
    lab.readable(topic, reloaded=True)


def test_a_release_killed_after_its_marks_were_taken_back_keeps_the_ledger(lab, killed_at):
    namespace = lab.namespace("unmark-killed")
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certificate_of(outcome)
        lab.older(stack)
        cannot_log_in(lab, namespace)
        one = {"ml_name": topic.ml_name, "ledger_ids": [topic.ledger_id]}
        killed_at("release.unmarked", "release", confirm_timeout_s=2.0, **one)
        assert stack.ledgers.read(topic.ledger_id) is not None
        listed = stack.topics.read(topic.ml_name)[0].ledger(topic.ledger_id)
        assert not listed.offload.bookkeeper_deleted
        lab.admin("DELETE", f"/namespaces/{namespace}/removeOffloadPolicies")
        lab.readable(topic, reloaded=True)
        result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, Released)
    lab.readable(topic, reloaded=True)
