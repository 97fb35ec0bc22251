"""Watches on the real ZooKeeper: a change of a followed node is noticed, and a lost session is
one.
"""

import time
import uuid

import pytest

from tests.support.zookeeper_proxy import ZooKeeperProxy
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore
from tiering_assets.resources.metastore.zookeeper_watches import ZooKeeperWatches

pytestmark = [pytest.mark.stack, pytest.mark.slow]


@pytest.fixture
def store(endpoints):
    found = ZooKeeperStore(f"zk:{endpoints.zookeeper}")
    yield found
    found.close()


@pytest.fixture
def paths(store):
    root = f"/watched-{uuid.uuid4().hex}"
    made = [f"{root}/{number}" for number in range(2500)]  # more than are asked at once
    for path in made:
        store.create(path, b"")
    return made


def changed(watches, before):
    deadline = time.monotonic() + 60
    while watches.changes == before:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_followed_node_is_noticed_once_until_it_is_followed_again(store, endpoints, paths):
    watches = ZooKeeperWatches(f"zk:{endpoints.zookeeper}")
    try:
        gone = f"{paths[0]}-not-yet"
        watches.follow([*paths, gone])
        quiet = watches.changes
        numbers = {path: watches.watch_of(path) for path in (*paths, gone)}
        assert len(set(numbers.values()) - {None}) == len(numbers)
        store.create(f"{paths[7]}/cursor", b"")  # a child, as a cursor is
        store.set(f"{paths[7]}/cursor", b"1", expected_version=0)
        time.sleep(0.5)
        assert watches.changes == quiet

        stat = store.set(paths[2400], b"x", expected_version=0)
        assert changed(watches, quiet)
        after = watches.changes
        assert watches.watch_of(paths[2400]) is None
        assert watches.watch_of(paths[7]) == numbers[paths[7]]
        store.set(paths[2400], b"y", expected_version=stat.version)
        time.sleep(0.5)
        assert watches.changes == after  # one shot
        watches.follow(paths)
        assert watches.watch_of(paths[2400]) not in (None, numbers[paths[2400]])
        store.delete(paths[2400], expected_version=2)
        assert changed(watches, after)

        before = watches.changes
        store.create(gone, b"")
        assert changed(watches, before)
    finally:
        watches.close()


def test_a_connection_that_is_lost_counts_as_a_change(store, endpoints, paths):
    with ZooKeeperProxy(endpoints.zookeeper) as proxy:
        watches = ZooKeeperWatches(f"zk:{proxy.connect_string}")
        try:
            watches.follow(paths[:3])
            quiet = watches.changes
            proxy.go_away()
            assert changed(watches, quiet)
            assert [watches.watch_of(path) for path in paths[:3]] == [None] * 3
        finally:
            watches.close()


def test_nobody_to_connect_to_is_an_error_of_ours():
    with pytest.raises(MetadataError, match=r"zk:127.0.0.1:1 within 1 s .*Connection refused"):
        ZooKeeperWatches("zk:127.0.0.1:1", connect_timeout_s=1)
