"""obstore beside boto3: the same answers to reads and listings, on real S3 servers."""

import dataclasses
import pickle

import certifi
import pytest

from benchmarks.versity import PROGRAM, Gateway
from tests.stack.s3_fixture import S3Server, free_ports, s3_server  # noqa: F401 - the fixture
from tests.stack.test_object_store import (
    Counting,
    assert_names_the_place_and_no_key,
    settings_of,
)
from tests.support.object_store_contract import ObjectStoreContract
from tiering_assets.resources.errors import ObjectStoreError, ObjectTooLargeError
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.s3_bulk import DOUBTS_MAX, BulkS3ObjectStore

pytestmark = pytest.mark.stack
READS = [
    lambda store: store.get("k"),
    lambda store: store.get("k", bytes_max=9),
    lambda store: list(store.list_objects()),
    lambda store: list(store.list_objects("k/", start_after="k/1")),
]


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory):
    home = tmp_path_factory.mktemp("vgw")
    gateway = Gateway(PROGRAM, home, access_key="test-access-key", secret_key="test-secret-key")
    yield S3Server(gateway.endpoint, "test-access-key", "test-secret-key")
    gateway.close()


# The tests' own server, and a second kind where benchmarks have built it.
SERVERS = ["s3_server", *(["versitygw"] if PROGRAM.exists() else [])]


@pytest.fixture(params=SERVERS)
def settings(request):
    return settings_of(request.getfixturevalue(request.param))


@pytest.fixture
def store(settings):
    store = BulkS3ObjectStore(settings)
    store.create_bucket()
    assert store._store() is not None
    return store


@pytest.fixture
def boto(settings, store):
    return S3ObjectStore(settings)


def body_of(store):
    found = store.get("k")
    return found and found.body


@pytest.fixture
def alone(store, monkeypatch):
    """Whatever boto3 would be asked of these fails."""

    def refuse(*_given, **_how):
        raise AssertionError("boto3 was asked")

    monkeypatch.setattr(S3ObjectStore, "get", refuse)
    monkeypatch.setattr(S3ObjectStore, "list_objects", refuse)
    return store


class TestBulkS3ObjectStore(ObjectStoreContract):
    """On the one server: the other differs in versions and uploads, which boto3 asks for."""

    @pytest.fixture
    def store(self, s3_server):  # noqa: F811
        store = BulkS3ObjectStore(settings_of(s3_server))
        store.create_bucket()
        return store


def test_reads_and_listings_are_its_own(store, alone):
    for n in range(3):
        store.put(f"k/{n}", b"x" * n, metadata={"a": "b"})
    found = store.get("k/2", bytes_max=2)
    assert (found.body, found.head.size, found.head.metadata) == (b"xx", 2, {"a": "b"})
    assert [one.key for one in store.list_objects("k/", start_after="k/0")] == ["k/1", "k/2"]
    whole = [one.key for one in store.list_objects("k/", start_after="k/")]
    assert whole == ["k/0", "k/1", "k/2"]


def test_what_it_tells_is_what_boto3_tells(store, boto):
    for key in ("a/1", "a/b c/ü+%.json", "a/b", "a-b", "b"):
        store.put(key, key.encode(), metadata={"role": "x"})
    for prefix in ("", "a/", "a/b c/"):
        assert [*store.list_objects(prefix)] == [*boto.list_objects(prefix)]
    ours, theirs = store.get("a/b c/ü+%.json"), boto.get("a/b c/ü+%.json")
    untold = {"server_date": None, "sha256": None, "storage_class": None, "expiration": None}
    assert ours.body == theirs.body
    assert ours.head == dataclasses.replace(theirs.head, **untold)


@pytest.mark.parametrize("number", [999, 1000, 1001])
def test_a_listing_of_pages_is_whole_and_each_page_is_one_request(store, settings, number):
    for n in range(number):
        store.put(f"p/{n:04d}", b"")
    meter = Counting()
    keys = [one.key for one in BulkS3ObjectStore(settings, meter=meter).list_objects("p/")]
    assert keys == [f"p/{n:04d}" for n in range(number)]
    assert meter.requests == number // 1000 + 1


def test_each_read_asks_the_meter(store, settings):
    store.put("k", b"1")
    meter = Counting()
    metered = BulkS3ObjectStore(settings, meter=meter)
    for _ in range(3):
        metered.get("k")
    assert meter.requests == 3


def test_one_that_is_too_large_is_refused_as_ever(store):
    store.put("k", b"12345")
    with pytest.raises(ObjectTooLargeError, match="5 bytes, at most 4"):
        store.get("k", bytes_max=4)


@pytest.mark.parametrize("key", ["x//y", "x/../y", "x/"])
def test_a_key_that_it_would_change_is_boto3s(store, key, monkeypatch):
    store.put("y", b"another")
    store.put("x/y", b"another")
    asked = []
    monkeypatch.setattr(S3ObjectStore, "get", lambda _self, key, **_how: asked.append(key))
    store.get(key)
    assert asked == [key]


@pytest.mark.parametrize("call", READS)
def test_errors_are_those_of_boto3(settings, call):
    cases = {
        "no bucket": (BulkS3ObjectStore(settings), r"does not exist .*set store\.bucket"),
        "no key": (
            BulkS3ObjectStore(dataclasses.replace(settings, secret_key="a-wrong-secret-key")),
            r"refused .*check store\.access_key|does not exist",
        ),
    }
    nowhere = dataclasses.replace(settings, endpoint=f"http://127.0.0.1:{free_ports(1)[0]}")
    for store, why in cases.values():
        with pytest.raises(ObjectStoreError, match=why) as caught:
            call(store)
        assert_names_the_place_and_no_key(caught.value, settings)
        assert "a-wrong-secret-key" not in str(caught.value)
    with pytest.raises(ObjectStoreError, match=r"cannot reach .*check store\.endpoint"):
        call(BulkS3ObjectStore(nowhere))


def test_after_some_doubts_boto3_alone_is_asked(store, settings):
    store.put("k", b"1")
    meter = Counting()
    wrong = BulkS3ObjectStore(dataclasses.replace(settings, secret_key="wrong"), meter=meter)
    for _ in range(DOUBTS_MAX + 3):
        with pytest.raises(ObjectStoreError):
            wrong.get("k")
    assert meter.requests == 2 * DOUBTS_MAX + 3


def test_a_listing_that_breaks_off_goes_on_by_boto3(store, monkeypatch):
    import obstore

    for n in range(1500):
        store.put(f"p/{n:04d}", b"")
    really = obstore.list

    def breaking(*given, **how):
        stream = iter(really(*given, **how))
        yield next(stream)
        raise OSError("connection reset by peer")

    monkeypatch.setattr(obstore, "list", breaking)
    keys = [one.key for one in store.list_objects("p/")]
    assert keys == [f"p/{n:04d}" for n in range(1500)]


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "aws_s3_express", "AWS_PROXY_URL"])
def test_an_environment_that_says_more_than_credentials_is_boto3s(
    store, settings, name, monkeypatch
):
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    store.put("k", b"1")
    again = BulkS3ObjectStore(settings)
    assert body_of(again) == b"1"
    assert again._store() is None


def test_a_ca_bundle_is_trusted_and_one_that_cannot_be_read_is_boto3s(settings, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", certifi.where())
    assert BulkS3ObjectStore(settings)._store() is not None
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nowhere/ca.pem")
    assert BulkS3ObjectStore(settings)._store() is None


def test_without_the_library_boto3_reads(store, settings, monkeypatch):
    import sys

    store.put("k", b"1")
    monkeypatch.setitem(sys.modules, "obstore", None)
    again = BulkS3ObjectStore(settings)
    assert body_of(again) == b"1"
    assert [one.key for one in again.list_objects()] == ["k"]
    assert again._store() is None


def test_a_forked_process_reads_by_boto3(store):
    store.put("k", b"1")
    assert body_of(store) == b"1"
    store._made = (-1, store._made[1])
    assert store._store() is None
    assert body_of(store) == b"1"


def test_credentials_of_a_role_are_asked_for_again(store, settings, monkeypatch):
    from tiering_assets.resources.object_store import s3_bulk

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", settings.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", settings.secret_key)
    bare = dataclasses.replace(settings, access_key="", secret_key="")
    store.put("k", b"1")
    again = BulkS3ObjectStore(bare)
    assert again._store() is not None
    assert body_of(again) == b"1"
    assert s3_bulk._credentials(bare)["expires_at"] is not None
    assert s3_bulk._credentials(settings)["expires_at"] is None


def test_it_is_not_pickled_for_obstore_writes_its_keys_down(store):
    with pytest.raises(TypeError, match="build one"):
        pickle.dumps(store)
