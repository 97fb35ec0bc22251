import pytest

from tiering_assets.resources.errors import MetadataError, SettingsError
from tiering_assets.resources.metastore.store_uri import ZooKeeperAddress, parse_store_uri
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore


@pytest.mark.parametrize(
    ("uri", "hosts", "chroot"),
    [
        ("zk:127.0.0.1:2181", ("127.0.0.1:2181",), ""),
        ("zk:a:1,b:2/pulsar/one", ("a:1", "b:2"), "/pulsar/one"),
        ("zk:a/", ("a:2181",), ""),
        ("zk://a:1;b", ("a:1", "b:2181"), ""),
        ("zk:[::1]:2181", ("[::1]:2181",), ""),
    ],
)
def test_zookeeper_addresses(uri, hosts, chroot):
    assert parse_store_uri(uri) == ZooKeeperAddress(hosts, chroot)


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("oxia://host:6648/default", "Oxia is not supported"),
        ("etcd:http://a:2379", "etcd is not supported"),
        ("rocksdb:///data", "RocksDB is not supported"),
        ("metadata-store:zk:a:1", "is not supported"),
        ("127.0.0.1:2181", "expected zk:host:port"),
        ("zk", "expected zk:host:port"),
        ("", "expected zk:host:port"),
        ("zk:", "is not host:port"),
        ("zk:a:0", "is not host:port"),
        ("zk:a:70000", "is not host:port"),
        ("zk:a:b", "is not host:port"),
        ("zk:a,,b", "is not host:port"),
        ("zk:a/x//y", "empty name"),
    ],
)
def test_everything_else_is_refused_before_any_connection(uri, says):
    with pytest.raises(SettingsError, match=says):
        ZooKeeperStore(uri)


def test_an_unreachable_server_is_named_with_the_next_step(closed_port):
    uri = f"zk:127.0.0.1:{closed_port}"
    with pytest.raises(MetadataError, match=f"no connection to ZooKeeper {uri} .*refused.*: check"):
        ZooKeeperStore(uri, connect_timeout_s=0.2)
