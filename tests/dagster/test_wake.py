"""When a tick may skip its look: only when it would find what the last one found."""

import pytest

from tiering_assets.defs.automation.wake import Wake
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.settings import MetadataSettings

SETTINGS = MetadataSettings()


class Watched:
    """Counts changes as real watches do."""

    changes = 0

    def __init__(self):
        self.followed = set()

    def follow(self, paths):
        self.followed.update(paths)

    def close(self):
        """Nothing to close."""


@pytest.fixture
def watched():
    return Watched()


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def wake(watched, now):
    return Wake(connect=lambda _settings: watched, clock=lambda: now[0])


def look(wake, *, whole=True, sensor="s"):
    changes = wake.before_look(SETTINGS)
    wake.after_look(sensor, changes, ["/a", "/b"], whole=whole)


def skips(wake, sensor="s"):
    return wake.may_skip(sensor, every_s=30) is not None


def test_the_first_look_is_never_skipped(wake):
    assert not skips(wake)


def test_a_look_is_skipped_while_nothing_changed_and_it_is_young(wake, watched, now):
    look(wake)
    assert watched.followed == {"/a", "/b"}
    now[0] += 29
    assert skips(wake)
    assert not skips(wake, sensor="another")
    now[0] += 1
    assert not skips(wake)


def test_a_change_wakes_every_sensor_once(wake, watched):
    look(wake)
    look(wake, sensor="another")
    watched.changes += 1
    assert not skips(wake)
    look(wake)
    assert skips(wake)
    assert not skips(wake, sensor="another")


def test_a_change_during_the_look_counts_after_it(wake, watched):
    changes = wake.before_look(SETTINGS)
    watched.changes += 1
    wake.after_look("s", changes, [], whole=True)
    assert not skips(wake)


def test_a_round_that_is_not_at_its_end_goes_on(wake):
    look(wake, whole=False)
    assert not skips(wake)


def test_without_watches_every_tick_looks(now):
    def refuse(_settings):
        raise MetadataError("no ZooKeeper")

    wake = Wake(connect=refuse, clock=lambda: now[0])
    look(wake)
    assert not skips(wake)
