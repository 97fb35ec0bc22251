"""The tail of an idle topic on real servers: published by one reload, which closes no further
ledger.
"""

import time
from dataclasses import replace

import pytest

from tests.support.tiered_cluster import ml_names, tiered_cluster, wait_until
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.records import keys
from tiering_assets.resources.devstack.traffic import (
    KIB,
    TopicSpec,
    content_of,
    iter_messages,
    produce,
)

pytestmark = pytest.mark.stack

SPEC = TopicSpec(topic="public/default/idle-tail", messages=50, payload_bytes=KIB)
LATE = replace(SPEC, seed=1)
IDLE_TAIL_S = 2.0


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


def closed(cluster):
    return [one.ledger_id for one in cluster.managed_ledger(SPEC).ledgers if one.closed_at]


def reloads(cluster):
    [ml_name] = ml_names(SPEC)
    found = cluster.steps.book.keys(keys.DISTURBANCES)
    return sum(keys.topic_hash_of(key) == keys.topic_hash(ml_name) for key in found)


def test_a_tail_is_published_by_one_reload_and_ten_cycles_close_no_new_ledger(cluster):
    cluster.fill(SPEC)
    [first] = cluster.ledger_ids(SPEC)
    produce(cluster.endpoints, LATE)  # into the ledger that our own unload closes
    cluster.offload([first])
    wait_until(lambda: len(closed(cluster)) == 2, "the reload lists the tail as closed")
    settings = cluster.steps.settings
    publish = replace(settings.publish, pending_age_s=1e6, idle_tail_s=IDLE_TAIL_S)
    patient = replace(cluster.steps, settings=replace(settings, publish=publish))
    [_, tail] = closed(cluster)
    deadline = time.monotonic() + 60
    while (outcome := offload_batch(patient, [tail], when_due=True)[0]).state != "published":
        assert outcome.state == "waiting to disturb", outcome
        assert time.monotonic() < deadline
        time.sleep(0.5)
    for _cycle in range(10):
        time.sleep(IDLE_TAIL_S)
        outcomes = offload_batch(patient, closed(cluster), when_due=True)
        assert [(one.ledger_id, one.noop) for one in outcomes] == [(first, True), (tail, True)]
        cluster.seal(SPEC)  # whoever unloads it: the empty ledger is dropped by the load
    assert closed(cluster) == [first, tail]
    assert reloads(cluster) == 2
    sent = content_of([*iter_messages(SPEC), *iter_messages(LATE)])
    assert cluster.content(SPEC) == sent
