"""A shadow topic reads its source's ledgers from bookies only, so its source keeps them."""

import json
import time

import pytest

from tests.support.tiered_cluster import LAG_S, ml_names, tiered_cluster
from tests.support.topic_halves import release_topic
from tiering_assets.ground.reasons import NotNow
from tiering_assets.resources.devstack.traffic import KIB, TopicSpec, consume_all

pytestmark = pytest.mark.stack

SOURCE = TopicSpec(topic="public/default/shadowed", messages=500, payload_bytes=KIB)
SHADOW = "public/default/shadowed-by"


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


def shadow_content(cluster):
    """Messages of the shadow, hashed as the source's are."""
    return consume_all(
        cluster.endpoints,
        TopicSpec(topic=SHADOW, messages=SOURCE.messages, payload_bytes=KIB),
        check=False,
        timeout_s=20,
    )


def test_a_source_with_a_shadow_is_published_but_its_bookie_copy_stays(cluster):
    sent = cluster.fill(SOURCE)
    source = f"persistent://{SOURCE.topic}"
    properties = json.dumps({"PULSAR.SHADOW_SOURCE": source}).encode()
    cluster.admin("PUT", f"/persistent/{SHADOW}", properties)
    shadows = json.dumps([f"persistent://{SHADOW}"]).encode()
    cluster.admin("PUT", f"/persistent/{SOURCE.topic}/shadowTopics", shadows)
    assert shadow_content(cluster) == sent
    [ml_name] = ml_names(SOURCE)
    ledger_ids = cluster.ledger_ids(SOURCE)
    cluster.offload(ledger_ids)
    time.sleep(2 * LAG_S)

    [result] = release_topic(cluster.steps, ml_name, ledger_ids).values()
    assert isinstance(result, NotNow)
    assert "shadow topics" in str(result)
    assert "public/default/persistent/shadowed-by" in str(result)
    assert cluster.steps.ledgers.read(ledger_ids[0]) is not None
    cluster.seal(SOURCE)  # both topics anew, with empty caches
    assert shadow_content(cluster) == sent
    assert cluster.content(SOURCE) == sent
