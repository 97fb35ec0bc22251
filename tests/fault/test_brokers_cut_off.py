"""A broker that the metadata store has lost, and that serves its topics all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.spark_cluster import free_port
from tests.support.tiered_cluster import TieredCluster, ml_names, tiered_cluster, wait_until
from tests.support.untame import UNTAME, move, namespace
from tests.support.zookeeper_proxy import ZooKeeperProxy
from tiering_assets.change.disturb import must_wait, see
from tiering_assets.doctor.brokers import check_away
from tiering_assets.ground.reasons import Reason
from tiering_assets.ground.stack import open_stack
from tiering_assets.look.topic.broker_list import declare_gone
from tiering_assets.look.topic.brokers_seen import locate
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec, produce
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace
from tiering_assets.resources.settings import Settings

pytestmark = [
    pytest.mark.stack,
    pytest.mark.fault,
    pytest.mark.timeout(900),
    pytest.mark.prove(
        instead="tests/unit/look/topic/test_broker_memory.py::"
        "test_one_that_answered_since_is_asked_for_as_long_as_the_memory_reaches"
    ),
]


@pytest.fixture(scope="module")
def proxy_and_cluster(tmp_path_factory):
    """The second broker reaches ZooKeeper by way of a proxy, and tries again when it is cut off."""
    port = free_port()
    with ZooKeeperProxy(f"127.0.0.1:{port}") as proxy:
        options = replace(
            UNTAME,
            bookies=3,
            ports={"zookeeper": port},
            broker_conf={
                "zookeeperSessionExpiredPolicy": "reconnect",
                "metadataStoreSessionTimeoutMillis": "6000",
                "statsUpdateFrequencyInSecs": "5",
                "loadBalancerEnabled": "true",
            },
            one_broker_conf={
                "broker2": {
                    "metadataStoreUrl": f"zk:{proxy.connect_string}",
                    "configurationMetadataStoreUrl": f"zk:{proxy.connect_string}",
                }
            },
        )
        with (
            DevStack.start(tmp_path_factory.mktemp("cut-off"), options) as running,
            tiered_cluster(running) as connected,
        ):
            yield proxy, connected


def place_of(settings: Settings, ml_name: str) -> TopicPlace:
    """What a run finds that begins now."""
    with open_stack(settings) as stack:
        return locate(stack, ml_name, stack.topics.read(ml_name))


def test_a_broker_cut_from_zookeeper_that_goes_on_serving_has_its_topics(proxy_and_cluster):
    proxy, cluster = proxy_and_cluster
    zombie, settings = cluster.endpoints.broker_web["broker2"], cluster.steps.settings
    spec = TopicSpec(topic=f"{namespace(cluster, 'cut-off')}/topic", messages=20, payload_bytes=100)
    produce(cluster.endpoints, spec)
    move(cluster, spec.topic, "broker2")
    [ml_name] = ml_names(spec)
    full = f"persistent://{spec.topic}"
    cluster.steps.broker.internal_stats(full)
    loaded = TopicPlace(TopicLoad.LOADED, zombie)
    wait_until(lambda: place_of(settings, ml_name) == loaded, "its stats tell")

    proxy.go_away()
    wait_until(lambda: zombie not in cluster.steps.broker.list_brokers(), "its session expired")
    _assert_only_memory_tells(cluster, settings, ml_name, full, zombie)

    cluster.running.stop_server("broker2", kill=True)
    with open_stack(settings) as stack:
        place = locate(stack, ml_name, stack.topics.read(ml_name))
        assert (place.load, place.silent) == (TopicLoad.UNKNOWN, (zombie,))
        [found] = check_away(stack)
        assert (found.check, found.level) == (f"broker {zombie}", "fail")
        declare_gone(stack, zombie, reason="killed", author="test")
    assert place_of(settings, ml_name).load is TopicLoad.NOT_LOADED


def _assert_only_memory_tells(
    cluster: TieredCluster, settings: Settings, ml_name: str, full: str, zombie: str
) -> None:
    """By what is registered nobody has the topic; the broker that is not has it in memory."""
    wait_until(
        lambda: cluster.steps.broker.locate(full).load is TopicLoad.NOT_LOADED, "no lock of it"
    )
    assert place_of(settings, ml_name) == TopicPlace(TopicLoad.LOADED, zombie)
    with open_stack(settings) as stack:
        seen = see(stack, ml_name)
        assert seen.idle_version is None
        wait = must_wait(stack, ml_name, seen)
        assert wait is not None
        assert wait.reason is Reason.LEFT_ALONE
        [found] = check_away(stack)
        assert (found.check, found.level) == (f"broker {zombie}", "warn")
