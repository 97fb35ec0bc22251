"""A retry deletes the versions that an earlier sweep named, and no other of the key."""

from dataclasses import replace

import pytest

from tests.support.left_behind import leave_unproven
from tests.support.sim_scene import Scene
from tiering_assets.clean.locked_leavings import named_versions, retry_locked_leavings
from tiering_assets.clean.sweep import sweep
from tiering_assets.ground.reasons import not_now
from tiering_assets.records import keys
from tiering_assets.records.sweep_models import NamedVersion, Swept
from tiering_assets.resources.errors import ObjectStoreError


class Locked:
    """An attempt was swept, and its versions stay, behind markers, while `on`."""

    def __init__(self):
        self.scene = next(s for s in map(Scene, range(50)) if s.world.objects._versioning)
        self.on = True
        really = self.scene.world.objects.delete

        def delete(key, *, version_id=None):
            if self.on and version_id is not None and "-ledger-" in key:
                raise ObjectStoreError(f"{key}: version {version_id} is locked")
            return really(key, version_id=version_id)

        self.scene.world.objects.delete = delete  # type: ignore[method-assign]
        self.attempt = leave_unproven(self.scene).record
        sweep(self.scene.process(), execute=True)
        assert self.record.bytes_stay

    @property
    def stored(self):
        return self.scene.stack.book.require(Swept, keys.swept(0, self.attempt.uid))

    @property
    def record(self):
        return self.stored.record

    def change(self, **how):
        self.scene.stack.book.replace(self.stored, replace(self.record, **how))

    def bodies(self):
        """Versions of the data object that are no markers, newest first."""
        listed = self.scene.world.objects.list_versions(self.attempt.data_key)
        return [one.version_id for one in listed if not one.is_marker]

    def hide_another(self):
        """Somebody writes under the same key, and deletes that."""
        self.scene.world.objects.put(self.attempt.data_key, b"of somebody else")
        self.scene.world.objects.delete(self.attempt.data_key)

    def retry(self):
        self.on = False
        return retry_locked_leavings(self.scene.process())


@pytest.fixture
def locked():
    locked = Locked()
    yield locked
    assert locked.scene.world.monitor.found == []


def test_they_go_once_nothing_locks_them_and_what_that_freed_is_told(locked):
    stayed = locked.record.bytes_stay
    [done] = locked.retry()
    assert (done.bytes_freed, done.bytes_stay) == (stayed, 0)
    assert locked.bodies() == []
    assert locked.record.bytes_stay == 0


def test_while_they_are_locked_a_retry_frees_nothing(locked):
    assert retry_locked_leavings(locked.scene.process()) == []
    assert locked.record.bytes_stay


def test_a_version_that_was_hidden_since_is_left(locked):
    locked.hide_another()
    stranger, ours = locked.bodies()
    locked.retry()
    assert locked.bodies() == [stranger] != [ours]


def test_where_nothing_stayed_a_version_that_was_hidden_since_is_left(locked):
    locked.retry()
    locked.hide_another()
    there = locked.bodies()
    assert retry_locked_leavings(locked.scene.process()) == []
    assert locked.bodies() == there != []


def test_a_record_that_names_none_means_those_behind_a_marker(locked):
    """As records of before did."""
    stay = set(locked.record.stay)
    locked.change(stay=())
    assert set(named_versions(locked.scene.stack, locked.record)) == stay
    assert stay == {
        NamedVersion(key, version.version_id)
        for key in (locked.attempt.data_key, locked.attempt.index_key)
        for version in locked.scene.world.objects.list_versions(key)
        if not version.is_marker
    }


def test_a_record_that_names_none_does_not_mean_what_can_be_read_again(locked):
    """A person took the marker away."""
    locked.change(stay=())
    key = locked.attempt.data_key
    [marker] = [v for v in locked.scene.world.objects.list_versions(key) if v.is_marker]
    locked.on = False
    locked.scene.world.objects.delete(key, version_id=marker.version_id)
    assert [one.key for one in named_versions(locked.scene.stack, locked.record)] == [
        locked.attempt.index_key
    ]
    locked.retry()
    assert locked.scene.world.objects.peek(key) is not None


def test_what_a_broker_left_is_told_and_stays(locked, monkeypatch):
    """It has no attempt record, by which alone a retry is decided."""
    key = keys.attempt(0, locked.attempt.uid)
    locked.scene.world.objects.delete(locked.scene.stack.book.prefix + key)
    said: list[str] = []
    locked.on = False
    stack = replace(locked.scene.process(), narrate=said.append)
    assert retry_locked_leavings(stack) == []
    assert "delete its versions by hand" in "\n".join(said)
    assert locked.bodies()


def test_what_may_not_go_any_more_is_told_and_stays(locked, monkeypatch):
    kept = not_now("it may be the only copy")
    monkeypatch.setattr(
        "tiering_assets.clean.locked_leavings.decide_after_reading", lambda *_a: (kept, None)
    )
    assert locked.retry() == []
    assert locked.bodies()
