import pytest

from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.object_store.deletion import Deleted, delete_object, delete_versions
from tiering_assets.resources.object_store.store import ObjectVersion


class Locked(SimulatedObjectStore):
    """Keeps some versions, as a bucket with object lock does."""

    locked: frozenset[str | None] = frozenset()

    def delete(self, key, *, version_id=None):
        if version_id is not None and version_id in self.locked:
            raise ObjectStoreError(f"DELETE of {key!r}: AccessDenied: object is locked")
        super().delete(key, version_id=version_id)


@pytest.fixture
def store():
    return Locked("b", versioning=True)


def test_every_version_and_marker_goes(store):
    store.put("k", b"123")
    store.put("k", b"12345")
    store.delete("k")
    assert delete_object(store, "k") == Deleted(8, 0)
    assert store.list_versions("k") == []
    assert delete_object(store, "k") == Deleted(0, 0)


def test_what_a_lock_keeps_is_hidden_and_counted_until_it_ends(store):
    first = store.put("k", b"123").version_id
    store.put("k", b"12345")
    store.locked = frozenset({first})
    for freed in (5, 0):
        deleted = delete_object(store, "k")
        assert (deleted.bytes_freed, deleted.bytes_stay) == (freed, 3)
        assert "locked" in deleted.why_stay
        assert store.head("k") is None
        assert [version.size for version in store.list_versions("k") if not version.is_marker] == [
            3
        ]
        assert sum(version.is_marker for version in store.list_versions("k")) == 1
    store.locked = frozenset()
    assert delete_object(store, "k") == Deleted(3, 0)
    assert store.list_versions("k") == []


def test_a_bucket_without_versions_needs_one_delete():
    store = SimulatedObjectStore("b")
    store.put("k", b"123")
    assert delete_object(store, "k") == Deleted(3, 0)
    assert store.head("k") is None


def test_what_a_listing_leaves_out_is_deleted_all_the_same(monkeypatch):
    store = SimulatedObjectStore("b")
    store.put("k", b"123")
    monkeypatch.setattr(store, "list_versions", lambda _key: [])
    assert delete_object(store, "k") == Deleted(0, 0)
    assert store.head("k") is None


def test_a_version_of_before_goes_by_its_name_with_the_markers_that_hide_it(monkeypatch):
    """It was written while its bucket kept none; a plain delete would leave it, and another
    marker.
    """
    store = SimulatedObjectStore("b", versioning=True)
    went: list[str | None] = []
    before = ObjectVersion(version_id="null", size=3)
    marker = ObjectVersion(version_id="v2", size=0, is_marker=True)
    monkeypatch.setattr(store, "list_versions", lambda _key: [marker, before])
    monkeypatch.setattr(store, "delete", lambda _key, *, version_id: went.append(version_id))
    assert delete_object(store, "k") == Deleted(3, 0)
    assert went == ["null", "v2"]


def test_of_several_that_stay_each_is_named_and_the_first_reason_told(monkeypatch):
    """A store may have a name for what it wrote before it kept versions, or none."""
    store = SimulatedObjectStore("b", versioning=True)
    sizes = {"v3": 7, "v2": 5, None: 3}
    kept = [ObjectVersion(version_id=name, size=size) for name, size in sizes.items()]
    monkeypatch.setattr(store, "list_versions", lambda _key: kept)

    def refuse(_key, *, version_id=None):
        raise ObjectStoreError(f"{version_id} is locked")

    monkeypatch.setattr(store, "delete", refuse)
    found = delete_versions(store, "k", ["v2", "null"])
    assert found == Deleted(0, 8, "v2 is locked", ("v2", "null"))
