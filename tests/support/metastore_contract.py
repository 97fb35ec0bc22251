"""What every MetadataStore does, the simulator as well as the real ZooKeeper.

A test class inherits MetadataStoreContract and gives three fixtures: `store` and `other` (two
clients, two sessions, one cluster) and `root` (a path that does not exist yet).
"""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tiering_assets.resources.errors import MetadataConflictError, MetadataError
from tiering_assets.resources.metastore.store import VersionedPath


class MetadataStoreContract:
    def test_a_missing_node_reads_as_none_and_has_no_children(self, store, root):
        assert store.get(root) is None
        assert store.children(root) == []
        store.sync(root)

    def test_many_nodes_are_read_in_their_order(self, store, root):
        paths = [f"{root}/n{number:04d}" for number in range(600)]  # more than are on their way
        for path in paths[::2]:
            store.create(path, path.encode())
        found = list(store.get_many(iter(paths[::-1])))
        assert [None if n is None else n.data.decode() for n in found] == [
            path if path in paths[::2] else None for path in paths[::-1]
        ]
        assert found[1] == replace(store.get(paths[598]), read_at_s=found[1].read_at_s)
        assert list(store.get_many([])) == []

    def test_stats_of_many_nodes_come_in_their_order(self, store, root):
        paths = [f"{root}/n{number:04d}" for number in range(600)]
        for path in paths[::2]:
            store.create(path, path.encode())
        store.set(paths[598], b"x", expected_version=0)
        found = list(store.stat_many(iter(paths[::-1])))
        assert found == [None if n is None else n.stat for n in store.get_many(paths[::-1])]
        assert [one is None for one in found] == [path not in paths[::2] for path in paths[::-1]]
        assert list(store.stat_many([])) == []

    def test_create_makes_parents_and_starts_at_version_0(self, store, root):
        path = f"{root}/a/b"
        stat = store.create(path, b"x")
        node = store.get(path)
        assert node is not None
        assert (node.data, node.path, node.stat) == (b"x", path, stat)
        assert stat.version == 0
        assert stat.czxid == stat.mzxid
        assert store.children(f"{root}/a") == ["b"]
        assert abs(stat.ctime_ms - time.time() * 1000) < 60_000

    def test_create_of_an_existing_node_conflicts(self, store, other, root):
        store.create(root, b"x")
        with pytest.raises(MetadataConflictError):
            other.create(root, b"y")
        node = store.get(root)
        assert node is not None
        assert node.data == b"x"

    def test_set_counts_versions_and_keeps_the_creation(self, store, root):
        created = store.create(root, b"0")
        first = store.set(root, b"1", expected_version=0)
        second = store.set(root, b"", expected_version=1)
        assert (first.version, second.version) == (1, 2)
        assert created.czxid == first.czxid == second.czxid
        assert created.mzxid < first.mzxid < second.mzxid
        assert created.ctime_ms == second.ctime_ms
        node = store.get(root)
        assert node is not None
        assert (node.data, node.stat) == (b"", second)

    def test_a_stale_version_writes_nothing(self, store, other, root):
        store.create(root, b"0")
        other.set(root, b"1", expected_version=0)
        with pytest.raises(MetadataConflictError):
            store.set(root, b"2", expected_version=0)
        store.sync(root)
        node = store.get(root)
        assert node is not None
        assert (node.data, node.stat.version) == (b"1", 1)

    def test_set_of_a_missing_node_conflicts(self, store, root):
        with pytest.raises(MetadataConflictError):
            store.set(root, b"", expected_version=0)

    @pytest.mark.parametrize("version", [-1, -2])
    def test_there_is_no_write_to_any_version(self, store, root, version):
        store.create(root, b"0")
        with pytest.raises(ValueError, match="version"):
            store.set(root, b"1", expected_version=version)
        with pytest.raises(ValueError, match="version"):
            store.delete(root, expected_version=version)
        with pytest.raises(ValueError, match="version"):
            store.check_and_delete(checks=[VersionedPath(root, version)], deletes=[])

    def test_asking_whether_a_node_may_be_written_changes_nothing(self, store, root):
        store.require_writable(root)  # what is not there is nobody's secret
        stat = store.create(root, b"0")
        store.require_writable(root)
        node = store.get(root)
        assert (node.data, node.stat) == (b"0", stat)

    def test_delete_needs_the_version(self, store, root):
        store.create(root, b"0")
        store.set(root, b"1", expected_version=0)
        with pytest.raises(MetadataConflictError):
            store.delete(root, expected_version=0)
        store.delete(root, expected_version=1)
        assert store.get(root) is None
        with pytest.raises(MetadataConflictError):
            store.delete(root, expected_version=1)

    def test_a_node_with_children_is_not_deleted(self, store, root):
        store.create(f"{root}/a", b"")
        with pytest.raises(MetadataConflictError):
            store.delete(root, expected_version=0)
        assert store.children(root) == ["a"]

    def test_a_node_made_again_has_another_czxid(self, store, root):
        before = store.create(root, b"")
        store.delete(root, expected_version=0)
        after = store.create(root, b"")
        assert after.version == before.version == 0
        assert after.czxid != before.czxid

    def test_children_are_sorted(self, store, root):
        for name in ("b", "a", "c"):
            store.create(f"{root}/{name}", b"")
        assert store.children(root) == ["a", "b", "c"]

    def test_check_and_delete_does_all(self, store, root):
        for name in ("guard", "1", "2"):
            store.create(f"{root}/{name}", b"")
        store.set(f"{root}/guard", b"x", expected_version=0)
        store.check_and_delete(
            checks=[VersionedPath(f"{root}/guard", 1)],
            deletes=[VersionedPath(f"{root}/1", 0), VersionedPath(f"{root}/2", 0)],
            session_id=store.session_id(),
        )
        assert store.children(root) == ["guard"]

    @pytest.mark.parametrize(
        ("guard", "second"), [(0, 0), (1, 5), (1, None)], ids=["check", "delete", "gone"]
    )
    def test_check_and_delete_does_nothing_if_one_version_differs(self, store, root, guard, second):
        for name in ("guard", "1", "2"):
            store.create(f"{root}/{name}", b"")
        store.set(f"{root}/guard", b"x", expected_version=0)
        last = VersionedPath(f"{root}/2", second) if second is not None else None
        with pytest.raises(MetadataConflictError):
            store.check_and_delete(
                checks=[VersionedPath(f"{root}/guard", guard)],
                deletes=[
                    VersionedPath(f"{root}/1", 0),
                    last or VersionedPath(f"{root}/missing", 0),
                ],
            )
        assert store.children(root) == ["1", "2", "guard"]

    def test_a_write_holds_only_with_the_versions_that_it_depends_on(self, store, root):
        store.create(f"{root}/guard", b"")
        store.create(f"{root}/value", b"0")
        guard = VersionedPath(f"{root}/guard", 0)
        stat = store.set(f"{root}/value", b"1", expected_version=0, checks=[guard])
        assert stat.version == 1
        assert store.get(f"{root}/value").stat == stat
        store.set(guard.path, b"x", expected_version=0)
        with pytest.raises(MetadataConflictError):
            store.set(f"{root}/value", b"2", expected_version=1, checks=[guard])
        store.delete(guard.path, expected_version=1)
        with pytest.raises(MetadataConflictError):
            store.set(f"{root}/value", b"2", expected_version=1, checks=[guard])
        assert store.get(f"{root}/value").data == b"1"

    def test_a_write_of_another_session_is_refused(self, store, other, root):
        store.create(root, b"0")
        node = other.get(root)
        assert node is not None
        assert store.session_id() != other.session_id() == node.session_id
        with pytest.raises(MetadataConflictError):
            store.set(root, b"1", expected_version=0, session_id=node.session_id)
        with pytest.raises(MetadataConflictError):
            store.check_and_delete(
                checks=[], deletes=[VersionedPath(root, 0)], session_id=node.session_id
            )
        store.set(root, b"1", expected_version=0, session_id=store.session_id())

    def test_an_ephemeral_node_goes_with_its_session(self, store, other, root):
        other.create(f"{root}/lock", b"", ephemeral=True)
        assert store.children(root) == ["lock"]
        other.close()
        store.sync(root)
        assert store.children(root) == []

    def test_a_closed_store_says_so(self, other, root):
        other.close()
        with pytest.raises(MetadataError):
            other.get(root)
        with pytest.raises(MetadataError):
            other.create(root, b"")
