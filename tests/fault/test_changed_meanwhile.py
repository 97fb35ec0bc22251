"""What was proven, and changed before its release: objects, records, the topic's node."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

import pytest

from tests.support.altered_answers import AlteringProxy, archived, expiring, in_class
from tests.support.fault_lab import certificate_of
from tests.support.rewritten_records import record_bytes, restored, rewrite
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.batch.release_batch import release_batch
from tiering_assets.ground.reasons import NotNow
from tiering_assets.offload_format.keys import index_key
from tiering_assets.records import keys
from tiering_assets.records.models import Quarantine, Release
from tiering_assets.release.work import Released
from tiering_assets.resources.devstack.bucket import s3_client
from tiering_assets.resources.errors import FormatError, MetadataConflictError, RefusedError
from tiering_assets.scrub.give_up_copy import give_up_copy
from tiering_assets.scrub.heal import Healed
from tiering_assets.scrub.scrub import scrub

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("meanwhile")


@pytest.fixture(scope="module")
def published(lab, namespace):
    """A published ledger that is due; tests put back what they change."""
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certificate = certificate_of(outcome)
        lab.older(stack)
        yield stack, topic, certificate


def result_of(stack, topic):
    """NotNow or the error that a run of everything shows for this ledger."""
    [outcome] = release_batch(stack, [topic.ledger_id]).outcomes
    assert not isinstance(outcome.result, Released)
    assert stack.ledgers.read(topic.ledger_id) is not None
    listed = stack.topics.read(topic.ml_name)[0].ledger(topic.ledger_id)
    assert not listed.offload.bookkeeper_deleted
    assert stack.book.read(Release, keys.release(topic.ledger_id, listed.offload.uid)) is None
    return outcome.result


def assert_waits(stack, topic, *reasons):
    result = result_of(stack, topic)
    assert isinstance(result, NotNow), result
    for reason in reasons:
        assert reason in result.reasons


def assert_released(stack, topic):
    result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
    assert isinstance(result, Released), result


@contextmanager
def through(lab, alter):
    with AlteringProxy(lab.endpoints.s3_endpoint, alter) as proxy:
        store = replace(lab.settings.store, endpoint=proxy.url)
        with lab.open(replace(lab.settings, store=store)) as stack:
            # By another way to the same place, which brokers read: the setting stays theirs.
            yield replace(stack, settings=lab.settings)


@pytest.mark.parametrize("part", ["data", "index"])
def test_an_object_that_was_archived_after_verification_waits(lab, published, part):
    _stack, topic, certificate = published
    reason = f"the {part} object is in an archive class that no broker can read"
    with through(lab, archived(getattr(certificate, part).key)) as stack:
        assert_waits(stack, topic, reason)


@pytest.mark.parametrize("part", ["data", "index"])
def test_an_object_in_an_unknown_class_is_asked_by_reading_a_byte(lab, published, part):
    _stack, topic, certificate = published
    key = getattr(certificate, part).key
    with through(lab, archived(key, "COLD-TIER")) as stack:
        assert_waits(
            stack, topic, f"the {part} object is in an archive class that no broker can read"
        )


@pytest.mark.parametrize("storage_class", ["GLACIER_IR", "WARM-TIER"])
def test_a_copy_moved_to_a_class_that_reads_at_once_stays_good(lab, namespace, storage_class):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certificate = certificate_of(outcome)
        lab.older(stack)
    with through(lab, in_class(certificate.data.key, storage_class)) as stack:
        [looked] = scrub(stack, [topic.ml_name], deep=True).looked
        assert (looked.findings, looked.error) == ((), None)
        assert_released(stack, topic)
    lab.readable(topic, reloaded=True)


def test_a_scrub_heals_an_archived_copy_and_reports_nothing_lost_of_a_released_one(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certificate = certificate_of(outcome)
    with through(lab, archived(certificate.index.key)) as stack:
        [looked] = scrub(stack, [topic.ml_name], deep=True, heal=False).looked
        assert looked.findings[0] == "the index object is archived (GLACIER): no broker reads it"
    with lab.open() as stack:
        healed = scrub(stack, [topic.ml_name]).healed[topic.ledger_id]
        assert isinstance(healed, Healed), healed
        lab.older(stack)
        assert_released(stack, topic)
    with through(lab, archived(index_key(healed.uid, topic.ledger_id))) as stack:
        [looked] = scrub(stack, [topic.ml_name], deep=True).looked
        assert "Restore it to a class that answers reads" in str(looked.error)
        assert looked.lost == ()
        assert stack.book.read(Quarantine, keys.quarantine(topic.ledger_id, healed.uid)) is None
    lab.readable(topic, reloaded=True)


def test_an_object_that_a_rule_will_expire_waits(lab, published):
    _stack, topic, certificate = published
    with through(lab, expiring(certificate.data.key)) as stack:
        assert_waits(stack, topic, "the data object has an expiration date")


@pytest.mark.parametrize("part", ["data", "index"])
def test_an_object_that_a_rule_has_deleted_waits(published, part):
    stack, topic, certificate = published
    key = getattr(certificate, part).key
    with restored(stack.objects, key):
        stack.objects.delete(key)
        assert_waits(stack, topic, f"the {part} object is gone")


RECORDS = {
    "attempt": lambda topic, uid: keys.attempt(topic.ledger_id, uid),
    "outcome": lambda topic, uid: keys.outcome(topic.ledger_id, uid),
    "publication": lambda topic, _uid: keys.publication(topic.ml_name, 1),
}
FUTURE = {
    "attempt": "the chain of records behind the certificate is broken",
    "outcome": "the chain of records behind the certificate is broken",
    "publication": "schema 'tierkeeper/publication/2', expected 'tierkeeper/publication/1'",
    "quarantine": "schema 'tierkeeper/quarantine/2', expected 'tierkeeper/quarantine/1'",
    "hold": "under a release hold: a hold record that cannot be read",
    "release-intent": "schema 'tierkeeper/release-intent/2', expected 'tierkeeper/release-intent/1'",
}


@pytest.mark.parametrize("kind", ["attempt", "outcome", "publication"])
def test_a_record_of_a_future_schema_releases_nothing(published, kind):
    stack, topic, certificate = published
    key = stack.book.prefix + RECORDS[kind](topic, certificate.uid)
    with restored(stack.objects, key):
        rewrite(stack.objects, key, schema=f"tierkeeper/{kind}/2")
        assert FUTURE[kind] in str(result_of(stack, topic))


@pytest.mark.parametrize("kind", ["quarantine", "hold", "release-intent"])
def test_a_future_record_that_may_forbid_a_release_forbids_it(lab, published, kind):
    stack, topic, certificate = published
    lab.older(stack)  # the publication was put back just now
    key = (
        stack.book.prefix
        + {
            "quarantine": keys.quarantine(topic.ledger_id, certificate.uid),
            "hold": keys.hold(topic.ledger_id),
            "release-intent": keys.release_intent(topic.ledger_id, certificate.uid),
        }[kind]
    )
    stack.objects.put(key, record_bytes({"schema": f"tierkeeper/{kind}/2", "new": 1}))
    try:
        assert FUTURE[kind] in str(result_of(stack, topic))
        # Its ledger's own trouble: the topic's other ledgers are released all the same.
        results = release_topic(stack, topic.ml_name, [topic.ledger_id])
        assert isinstance(results[topic.ledger_id], NotNow | FormatError)
    finally:
        stack.objects.delete(key)


def test_what_was_put_back_is_released_and_readable(lab, published):
    stack, topic, _certificate = published
    assert_released(stack, topic)
    lab.readable(topic, reloaded=True)


@pytest.fixture
def versioned(lab):
    """Settings and a namespace for a bucket that keeps versions."""
    bucket = f"versioned-{uuid4().hex[:12]}"
    s3 = s3_client(lab.endpoints)
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    namespace = lab.namespace("versioned")
    policies = {**lab.offload_policies(), "s3ManagedLedgerOffloadBucket": bucket}
    lab.admin("POST", f"/namespaces/{namespace}/offloadPolicies", policies)
    return lab.with_section("store", bucket=bucket), namespace, s3


def test_another_version_with_the_same_bytes_waits_as_does_a_delete_marker(lab, versioned):
    settings, namespace, s3 = versioned
    topic = lab.topic(namespace)
    with lab.open(settings) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certified = certificate_of(outcome).data
        lab.older(stack)
        found = stack.objects.get(certified.key)
        assert found.head.version_id == certified.version_id
        written = stack.objects.put(certified.key, found.body, metadata=found.head.metadata)
        assert written.etag == certified.etag  # nothing but the version tells them apart
        assert_waits(stack, topic, "the data object is not the certified version")
        stack.objects.delete(certified.key, version_id=written.version_id)

        place = {"Bucket": settings.store.bucket, "Key": certified.key}
        marker = s3.delete_object(**place)["VersionId"]  # what an expiring rule does
        assert_waits(stack, topic, "the data object is gone")
        s3.delete_object(**place, VersionId=marker)
        assert_released(stack, topic)
    lab.readable(topic, reloaded=True)


class Between:
    """A metadata store that lets somebody act right before the first write of one kind."""

    def __init__(self, store, method, act):
        self._store, self._method, self._act = store, method, act

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if name != self._method or self._act is None:
            return found

        def first(*args, **kwargs):
            act, self._act = self._act, None
            act()
            return found(*args, **kwargs)

        return first


def test_a_node_that_a_broker_rewrites_before_the_context_is_set_keeps_both(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [verified] = offload_batch(stack, [topic.ledger_id], publish=False)
        assert verified.verified
        rolled = []
        broker = Between(
            stack.metadata, "set", lambda: rolled.extend(lab.close_current(topic.spec.topic))
        )
        before = {info.ledger_id for info in stack.topics.read(topic.ml_name)[0].ledgers}
        [outcome] = offload_batch(replace(stack, metadata=broker), [topic.ledger_id])
        assert outcome.state == "published"
        assert rolled
        assert lab.assert_published_once(stack, topic) == certificate_of(outcome).uid
        after = {info.ledger_id for info in stack.topics.read(topic.ml_name)[0].ledgers}
        assert after - before  # what the broker wrote is there, too
    lab.readable(topic, reloaded=True)


def test_a_node_that_a_broker_rewrites_before_the_delete_keeps_the_bookie_copy(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        uid = certificate_of(outcome).uid
        lab.older(stack)
        rolled = []
        broker = Between(
            stack.metadata,
            "check_and_delete",
            lambda: rolled.extend(lab.close_current(topic.spec.topic)),
        )
        with pytest.raises(MetadataConflictError):
            release_topic(replace(stack, metadata=broker), topic.ml_name, [topic.ledger_id])
        assert rolled
        assert stack.ledgers.read(topic.ledger_id) is not None
        assert stack.book.read(Release, keys.release(topic.ledger_id, uid)) is None
        with pytest.raises(RefusedError, match="it is being released"):
            give_up_copy(stack, topic.ledger_id, reason="not now", author="ops")
        lab.readable(topic, reloaded=True)
        assert_released(stack, topic)  # the next run begins with fresh evidence
    lab.readable(topic, reloaded=True)
