"""Every pinned Pulsar release, both ways: it reads what we wrote, and we read what it wrote."""

from dataclasses import replace

import pytest

from tests.support.compare import first_byte_difference, first_entry_difference
from tests.support.tiered_cluster import object_entries, tiered_cluster
from tests.support.untame import versions_of
from tiering_assets.offload_format.decoder import decode_index
from tiering_assets.offload_format.keys import check_format_version, data_key, index_key
from tiering_assets.resources.devstack.artifacts import DISTRIBUTIONS
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import KIB, TopicSpec

pytestmark = [pytest.mark.matrix, pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(1800)]

BATCHED = TopicSpec(
    topic="public/default/batched",
    messages=4000,
    payload_bytes=200,
    batched=True,
    compression="LZ4",
    properties=True,
)
BLOCKS = TopicSpec(topic="public/default/blocks", messages=150, payload_bytes=100 * KIB, keys=9)
SPECS = [BATCHED, BLOCKS]


@pytest.fixture(scope="module", params=sorted(DISTRIBUTIONS), ids=lambda version: version)
def cluster(request, tmp_path_factory):
    options = StackOptions(pulsar_version=request.param, bookies=2)
    with (
        DevStack.start(tmp_path_factory.mktemp("matrix"), options) as running,
        tiered_cluster(running) as connected,
    ):
        yield connected


@pytest.fixture(autouse=True)
def _servers_are_told(cluster, record_property):
    found = versions_of(cluster.running)
    assert found["pulsar"] == cluster.running.options.pulsar_version
    record_property("servers", found)


def test_the_broker_reads_what_we_released(cluster):
    for kind in SPECS:
        spec = replace(kind, topic=f"{kind.topic}-ours")
        sent = cluster.fill(spec, replace(spec, seed=1))
        ledger_ids = cluster.ledger_ids(spec)
        assert len(ledger_ids) == 2
        cluster.offload(ledger_ids)
        assert cluster.content(spec) == sent
        cluster.release(spec, ledger_ids)
        cluster.require_gone_from_bookies(ledger_ids)
        cluster.seal(spec)  # loaded anew, with an empty cache
        assert cluster.content(spec) == sent


def test_we_read_what_the_broker_offloaded_and_write_the_same_bytes(cluster):
    for kind in SPECS:
        spec = replace(kind, topic=f"{kind.topic}-theirs")
        sent = cluster.fill(spec, replace(spec, seed=1))
        ledger_ids = cluster.ledger_ids(spec)
        ours = {
            outcome.ledger_id: cluster.objects(outcome.ledger_id, outcome.certificate.record.uid)
            for outcome in cluster.offload(ledger_ids, publish=False)
        }
        assert cluster.broker_offloads(spec)["status"] == "SUCCESS"
        for ledger_id in ledger_ids:
            uid = cluster.context_uid(spec, ledger_id)
            theirs = cluster.objects(ledger_id, uid)
            for key in (data_key(uid, ledger_id), index_key(uid, ledger_id)):
                check_format_version(cluster.steps.objects.head(key).metadata)
            last_entry_id = cluster.ledger(ledger_id).last_entry_id
            difference = first_entry_difference(
                cluster.bookie_entries(ledger_id), object_entries(theirs, last_entry_id)
            )
            assert difference is None
            assert first_byte_difference(theirs.data, ours[ledger_id].data) is None
            assert first_byte_difference(theirs.index, ours[ledger_id].index) is None
            assert len(decode_index(theirs.index).entries) == (3 if kind is BLOCKS else 1)
        assert cluster.content(spec) == sent
        by = {v.ledger_id: v.offloaded_by for v in cluster.views(spec)}
        assert {by[i] for i in ledger_ids} == {"broker"}
