from datetime import timedelta

import pytest

from tests.support.object_store_contract import ObjectStoreContract
from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.resources.errors import ObjectStoreError


class TestSimulator(ObjectStoreContract):
    @pytest.fixture
    def store(self):
        return SimulatedObjectStore()


class TestSimulatorThatListsNoChecksums(ObjectStoreContract):
    @pytest.fixture
    def store(self):
        return SimulatedObjectStore(list_checksums=False)


def body_of(store, key, **version):
    found = store.get(key, **version)
    assert found is not None
    return found.body


def test_an_answer_can_be_lost_after_the_write_was_applied():
    store = SimulatedObjectStore()
    store.fail("put", after=True)
    with pytest.raises(ObjectStoreError, match="injected"):
        store.put("k", b"1")
    assert body_of(store, "k") == b"1"


def test_the_second_call_fails_and_the_third_works():
    store = SimulatedObjectStore()
    store.fail("head", nth=2, error=ObjectStoreError("503"))
    store.head("k")
    with pytest.raises(ObjectStoreError, match="503"):
        store.head("k")
    store.head("k")


def test_a_shortened_range_is_noticed_and_a_flipped_bit_is_for_the_caller():
    store = SimulatedObjectStore()
    store.put("k", b"abcd")
    store.alter_range(lambda body: body[:-1])
    with pytest.raises(ObjectStoreError, match="3 of 4"):
        store.get_range("k", start=0, length=4)
    store.alter_range(lambda body: b"x" + body[1:])
    assert store.get_range("k", start=0, length=4) == b"xbcd"


def test_versions_outlive_an_overwrite_and_a_delete():
    store = SimulatedObjectStore(versioning=True)
    first = store.put("k", b"1")
    store.put("k", b"2")
    store.delete("k")
    assert store.head("k") is None
    assert body_of(store, "k", version_id=first.version_id) == b"1"


def test_the_clock_is_the_stores_own():
    store = SimulatedObjectStore()
    before = store.server_time()
    store.put("k", b"1")
    store.advance(-90)
    head = store.head("k")
    assert head is not None
    assert head.server_date == before - timedelta(seconds=90)
    assert head.last_modified == before
