"""The whole path with Spark's workers on real bookies: both topics' bytes, from bookie to
broker.
"""

from dataclasses import replace

import pytest

from tests.support.tiered_cluster import object_entries, tiered_cluster
from tiering_assets.resources.devstack.traffic import KIB, TopicSpec

pytestmark = [pytest.mark.stack, pytest.mark.spark]

# Entries of 100 KiB make three blocks; batches make entries that hold many messages.
BLOCKS = TopicSpec(topic="public/default/spark-blocks", messages=150, payload_bytes=100 * KIB)
BATCHED = TopicSpec(
    topic="public/default/spark-batched",
    messages=20_000,
    payload_bytes=200,
    batched=True,
    compression="LZ4",
)


@pytest.fixture(scope="module")
def cluster(stack, spark_runner):
    with tiered_cluster(stack) as connected:
        yield replace(connected, steps=replace(connected.steps, runner=spark_runner))


def test_spark_copies_from_bookies_what_the_broker_then_reads(cluster):
    sent = {spec: cluster.fill(spec, replace(spec, seed=1)) for spec in (BLOCKS, BATCHED)}
    ids = {spec: cluster.ledger_ids(spec) for spec in sent}
    outcomes = cluster.offload([i for ledger_ids in ids.values() for i in ledger_ids])
    assert {len(o.certificate.record.blocks) for o in outcomes} == {1, 3}
    for outcome in outcomes:
        certificate = outcome.certificate.record
        objects = cluster.objects(outcome.ledger_id, certificate.uid)
        found = object_entries(objects, certificate.ledger.last_entry_id)
        assert [(i, bytes(payload)) for i, payload in found] == [
            *cluster.bookie_entries(outcome.ledger_id)
        ]
    for spec, content in sent.items():
        assert cluster.content(spec) == content
        cluster.release(spec, ids[spec])
        cluster.seal(spec)  # a topic loaded anew, with an empty cache
        assert cluster.content(spec) == content
