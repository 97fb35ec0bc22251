"""The thin path on real servers: sealed to released, read by the broker at every station."""

from dataclasses import replace

import pytest

from tests.support.live_topic import live_topic, read_payloads
from tests.support.tiered_cluster import ml_names, tiered_cluster
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import Reason
from tiering_assets.records import keys
from tiering_assets.records.models import Canary, Certificate, Publication, Release
from tiering_assets.release.work import Released
from tiering_assets.resources.devstack.traffic import KIB, TopicSpec

pytestmark = pytest.mark.stack

BATCHED = TopicSpec(
    topic="public/default/path-batched",
    messages=20_000,
    payload_bytes=200,
    batched=True,
    compression="LZ4",
    properties=True,
)
BLOCKS = TopicSpec(topic="public/default/path-blocks", messages=150, payload_bytes=100 * KIB)
PARTED = TopicSpec(
    topic="public/default/path-parted", messages=900, payload_bytes=2 * KIB, partitions=3, keys=20
)


PATIENT = TopicSpec(topic="public/default/path-patient", messages=50, payload_bytes=KIB)


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


@pytest.mark.parametrize("spec", [BATCHED, BLOCKS, PARTED], ids=lambda spec: spec.topic)
def test_sealed_ledgers_are_read_from_the_bucket_after_their_release(cluster, spec):
    sent = cluster.fill(spec, replace(spec, seed=1))
    ledger_ids = cluster.ledger_ids(spec)
    assert len(ledger_ids) == 2 * len(spec.physical_topics())
    blocks = [len(o.certificate.record.blocks) for o in cluster.offload(ledger_ids)]
    assert blocks == ([3] if spec is BLOCKS else [1]) * len(ledger_ids)
    assert cluster.content(spec) == sent
    _has_records(cluster, spec, ledger_ids, released=False)
    assert all(o.noop for o in cluster.offload(ledger_ids))

    cluster.release(spec, ledger_ids)
    assert cluster.ledger_ids(spec, "released") == ledger_ids
    _has_records(cluster, spec, ledger_ids, released=True)
    cluster.require_gone_from_bookies(ledger_ids)
    cluster.seal(spec)  # a topic loaded anew, with an empty cache
    assert cluster.content(spec) == sent
    _a_second_run_does_nothing(cluster, spec, ledger_ids)


def _has_records(cluster, spec, ledger_ids, *, released):
    """Certificate, publication and canary for each ledger; a release record only once released."""
    book = cluster.steps.book
    for ml_name in ml_names(spec):
        topic, _node = cluster.steps.topics.read(ml_name)
        canary = book.read(Canary, keys.canary(ml_name))
        assert canary is not None
        assert canary.record.namespace == "public/default"
        published = {
            (ledger.ledger_id, ledger.uid)
            for stored in book.iter_records(Publication, keys.publications_of(ml_name))
            for ledger in stored.record.ledgers
        }
        for listed in topic.ledgers:
            if listed.ledger_id not in ledger_ids:
                continue
            pair = listed.ledger_id, listed.offload.uid
            assert pair in published
            certificate = book.read(Certificate, keys.certificate(*pair))
            assert (certificate.record.entries, certificate.record.payload_bytes) == (
                listed.entries,
                listed.size,
            )
            assert listed.offload.bookkeeper_deleted is released
            assert (book.read(Release, keys.release(*pair)) is not None) is released


def _a_second_run_does_nothing(cluster, spec, ledger_ids):
    before = [cluster.steps.topics.read(name)[0] for name in ml_names(spec)]
    assert all(outcome.noop for outcome in offload_batch(cluster.steps, ledger_ids))
    for ml_name, topic in zip(ml_names(spec), before, strict=True):
        owned = [one.ledger_id for one in topic.ledgers if one.ledger_id in ledger_ids]
        again = release_topic(cluster.steps, ml_name, owned)
        assert all(isinstance(r, Released) and r.noop for r in again.values()), again
        assert cluster.steps.topics.read(ml_name)[0] == topic


def test_a_producer_and_a_consumer_stay_connected_through_publish_and_release(cluster):
    # Without deduplication a producer sends again what an unload, any unload, left unanswered. With
    # it the topic holds each message once, unless one is stored and forgotten.
    cluster.make_namespace("public/live", deduplication=True)
    spec = TopicSpec(topic="public/live/path", messages=0, payload_bytes=0)
    topic = f"persistent://{spec.topic}"
    with live_topic(cluster.endpoints, topic) as live:
        for sent in (500, 1000):
            live.wait_for(sent)
            cluster.steps.broker.unload_topic(topic)
        live.wait_for(live.sent + 300)  # the broker has loaded it and listed the closed ledgers
        ledger_ids = cluster.ledger_ids(spec)
        assert len(ledger_ids) >= 2
        cluster.offload(ledger_ids)
        at_publication = live.sent
        cluster.release(spec, ledger_ids)
        cluster.require_gone_from_bookies(ledger_ids)
        live.wait_for(live.sent + 300)
    assert live.refused == []
    assert live.sent > at_publication > 1000
    numbers = [int.from_bytes(p[:8], "big") for p in read_payloads(cluster.endpoints, topic)]
    assert numbers == list(range(live.sent))  # stored once each, in the order they were sent
    assert sorted(live.got) == list(range(live.sent))
    assert {number: ids for number, ids in live.got.items() if len(ids) > 1} == {}


def test_a_topic_is_not_disturbed_before_enough_waits(cluster):
    sent = cluster.fill(PATIENT)
    [ledger_id] = cluster.ledger_ids(PATIENT)
    [waits] = offload_batch(cluster.steps, [ledger_id], when_due=True)
    assert waits.wait is not None
    assert waits.wait.reason is Reason.WAITING_TO_DISTURB
    assert cluster.ledger_ids(PATIENT, "verified") == [ledger_id]

    settings = cluster.steps.settings
    eager = replace(settings, publish=replace(settings.publish, pending_bytes=1))
    [done] = offload_batch(replace(cluster.steps, settings=eager), [ledger_id], when_due=True)
    assert done.published is not None
    assert cluster.ledger_ids(PATIENT, "published", "release_due") == [ledger_id]
    assert cluster.content(PATIENT) == sent
