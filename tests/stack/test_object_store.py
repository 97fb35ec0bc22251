"""The S3 client against a real S3 server: the contract, and what its errors say."""

import dataclasses
import hashlib
import multiprocessing
import pickle
import socket
import uuid

import boto3
import pytest
from botocore.config import Config

from tests.stack.s3_fixture import free_ports, s3_server  # noqa: F401 - the fixture
from tests.support.object_store_contract import ObjectStoreContract, send
from tiering_assets.resources.errors import ObjectExistsError, ObjectStoreError, SettingsError
from tiering_assets.resources.object_store.deletion import delete_object
from tiering_assets.resources.object_store.records import RecordStore
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import StoreSettings

pytestmark = pytest.mark.stack


def settings_of(server, **changes):
    plain = StoreSettings(
        endpoint=server.endpoint,
        bucket=f"b-{uuid.uuid4().hex[:12]}",
        access_key=server.access_key,
        secret_key=server.secret_key,
        connect_timeout_s=2.0,
        read_timeout_s=20.0,
        attempts_max=2,
    )
    return dataclasses.replace(plain, **changes)


@pytest.fixture
def settings(s3_server):  # noqa: F811
    return settings_of(s3_server)


@pytest.fixture
def store(settings):
    store = S3ObjectStore(settings)
    store.create_bucket()
    store.create_bucket()  # ours already: no error
    return store


@pytest.fixture
def plain_client(settings):
    """A second client that shares nothing with ours but the address."""
    return boto3.client(
        "s3",
        endpoint_url=settings.endpoint,
        region_name=settings.region,
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        config=Config(s3={"addressing_style": "path"}),
    )


class TestS3ObjectStore(ObjectStoreContract):
    @pytest.fixture
    def store(self, store):
        return store


def test_another_client_reads_what_we_wrote(store, plain_client):
    store.put("k", b"payload", metadata={"a": "b"})
    answer = plain_client.get_object(Bucket=store.bucket, Key="k")
    assert answer["Body"].read() == b"payload"
    assert answer["Metadata"] == {"a": "b"}


def test_the_stored_checksum_comes_back_on_head(store):
    store.put("k", b"payload")
    assert store.head("k").sha256 == hashlib.sha256(b"payload").digest()


def test_a_multipart_object_has_no_checksum_of_the_whole(store):
    upload = store.create_upload("m", metadata={})
    part = send(store, "m", upload, 1, b"tail")
    assert part.sha256 == hashlib.sha256(b"tail").digest()
    store.complete_upload("m", upload, [part])
    assert store.head("m").sha256 is None


def test_a_listing_takes_every_page(store):
    for n in range(1005):
        store.put(f"page/{n:05d}", b"")
    keys = [item.key for item in store.list_objects("page/")]
    assert keys == [f"page/{n:05d}" for n in range(1005)]


def test_a_versioned_bucket_gives_the_version_asked_for(store, plain_client):
    plain_client.put_bucket_versioning(
        Bucket=store.bucket, VersioningConfiguration={"Status": "Enabled"}
    )
    assert store.bucket_facts().versioning == "Enabled"
    first = store.put("k", b"one")
    second = store.put("k", b"two!")
    assert first.version_id != second.version_id
    assert store.get("k", version_id=first.version_id).body == b"one"
    assert store.get_range("k", start=0, length=3, version_id=first.version_id) == b"one"
    store.delete("k")
    assert store.head("k") is None
    assert store.head("k", version_id=second.version_id).size == 4
    listed = store.list_versions("k")
    assert {v.version_id: v.size for v in listed if not v.is_marker} == {
        first.version_id: 3,
        second.version_id: 4,
    }
    assert [v.is_marker for v in listed].count(True) == 1
    deleted = delete_object(store, "k")
    assert (deleted.bytes_freed, deleted.bytes_stay) == (7, 0)
    assert store.list_versions("k") == []


def test_records_live_on_the_real_store(store):
    records = RecordStore(store, "instance-1")
    mine = records.create("claims/7.json", {"schema": "claim/1", "run_id": "r1"})
    renewed = records.replace_if_match(
        "claims/7.json", {"schema": "claim/1", "run_id": "r2"}, etag=mine.etag
    )
    assert records.read("claims/7.json") == renewed
    with pytest.raises(ObjectExistsError, match="claim/1"):
        records.create("claims/7.json", {"schema": "claim/1", "run_id": "r3"})
    assert list(records.list("claims/")) == ["claims/7.json"]


CALLS = [
    lambda store: store.put("k", b"x"),
    lambda store: store.head("k"),
    lambda store: store.get("k"),
    lambda store: store.get_range("k", start=0, length=1),
    lambda store: store.delete("k"),
    lambda store: list(store.list_objects()),
    lambda store: list(store.list_uploads()),
    lambda store: store.create_upload("k", metadata={}),
    lambda store: store.server_time(),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_missing_bucket_is_an_error_with_the_next_step_and_never_an_absent_key(settings, call):
    with pytest.raises(ObjectStoreError, match=r"does not exist .*set store\.bucket") as caught:
        call(S3ObjectStore(settings))
    assert_names_the_place_and_no_key(caught.value, settings)


class Counting:
    """A meter that allows everything."""

    requests = 0

    def request(self):
        self.requests += 1

    def upload(self, size):
        return size

    def bounds_uploads(self):
        return False


def test_a_read_of_an_absent_key_is_one_request_for_the_answer_tells_it_from_the_bucket(settings):
    """A HEAD's answer has no body, so that it takes a second one."""
    S3ObjectStore(settings).create_bucket()
    meter = Counting()
    store = S3ObjectStore(settings, meter=meter)
    assert store.get("k") is None
    assert meter.requests == 1
    assert store.head("k") is None
    assert meter.requests == 3


@pytest.mark.parametrize("call", CALLS)
def test_wrong_credentials_say_what_to_check(store, settings, call):
    wrong = dataclasses.replace(settings, secret_key="a-wrong-secret-key")
    with pytest.raises(ObjectStoreError, match=r"refused .*check store\.access_key") as caught:
        call(S3ObjectStore(wrong))
    assert_names_the_place_and_no_key(caught.value, settings)
    assert "a-wrong-secret-key" not in str(caught.value)


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_endpoint_says_what_to_check(settings, call):
    nowhere = dataclasses.replace(settings, endpoint=f"http://127.0.0.1:{free_ports(1)[0]}")
    with pytest.raises(ObjectStoreError, match=r"cannot reach .*check store\.endpoint") as caught:
        call(S3ObjectStore(nowhere))
    assert_names_the_place_and_no_key(caught.value, nowhere)


def test_a_server_that_never_answers_leaves_the_outcome_unknown(settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        mute = dataclasses.replace(settings, endpoint=endpoint, read_timeout_s=0.2, attempts_max=1)
        with pytest.raises(ObjectStoreError, match="unknown: look before"):
            S3ObjectStore(mute).put("k", b"x")


def test_a_missing_bucket_is_a_fact(settings):
    assert not S3ObjectStore(settings).bucket_facts().exists


def assert_names_the_place_and_no_key(error, settings):
    text = repr(error) + str(error.__cause__)
    assert settings.bucket in text
    assert settings.endpoint in text
    assert settings.secret_key not in text
    assert settings.access_key not in text


def test_half_a_key_pair_and_no_bucket_are_refused_at_once(settings):
    with pytest.raises(SettingsError, match=r"store\.bucket"):
        S3ObjectStore(dataclasses.replace(settings, bucket=""))
    with pytest.raises(SettingsError, match=r"store\.secret_key"):
        S3ObjectStore(dataclasses.replace(settings, secret_key=""))
    with pytest.raises(SettingsError, match=r"store\.endpoint"):
        S3ObjectStore(dataclasses.replace(settings, endpoint="no url")).head("k")


def test_credentials_neither_show_nor_travel(store, settings):
    assert settings.secret_key not in repr(store)
    with pytest.raises(TypeError, match="build one"):
        pickle.dumps(store)


def _child(store, answers):
    answers.put(store.get("k").body)


def test_a_forked_process_gets_a_client_of_its_own(store):
    store.put("k", b"before the fork")
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    child = fork.Process(target=_child, args=(store, answers))
    child.start()
    assert answers.get(timeout=30) == b"before the fork"
    child.join(timeout=30)
    assert child.exitcode == 0
    assert store.get("k").body == b"before the fork"
