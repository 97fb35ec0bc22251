"""What one sensor read is given to the next only while nothing says that it changed."""

import threading
from collections import Counter

import pytest

from tests.support.metastore_sim import Cluster as Tree
from tests.support.metastore_sim import SimulatedStore
from tiering_assets.defs.automation.shared_topics import KEPT_S, KeptTopics, SharedTopics
from tiering_assets.defs.automation.wake import TICK_S, Wake
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.settings import MetadataSettings

NAMES = [f"t/ns/persistent/orders-{number}" for number in range(3)]


class Watched:
    """Watches as ZooKeeper's: each fires once, and is set again by the next follow()."""

    def __init__(self):
        self.armed = {}
        self.changes = 0
        self.set = 0

    def follow(self, paths):
        for path in paths:
            if path not in self.armed:
                self.set += 1
                self.armed[path] = self.set

    def watch_of(self, path):
        return self.armed.get(path)

    def fire(self, path):
        if self.armed.pop(path, None) is not None:
            self.changes += 1

    def close(self):
        """Nothing to close."""


class Counted(SimulatedStore):
    def __init__(self, cluster):
        super().__init__(Tree(), lambda: cluster.now)
        self._seen_by = cluster

    def get_many(self, paths):
        asked = list(paths)
        self._seen_by.asked.update(asked)
        self._seen_by.during()
        return super().get_many(asked)

    def sync(self, path):
        self._seen_by.listings += 1
        super().sync(path)


class Cluster:
    """A metadata tree whose reads are counted and whose changes fire watches."""

    def __init__(self):
        self.now = 1000.0
        self.asked: Counter[str] = Counter()
        self.listings = 0
        self.watched = Watched()
        self.wake = Wake(connect=lambda _settings: self.watched, clock=lambda: self.now)
        self.kept = KeptTopics(wake=self.wake, clock=lambda: self.now)
        self.store = Counted(self)
        for name in NAMES:
            self.store.create(managed_ledger_path(name), name.encode())
        self.during = lambda: None

    def write(self, name, data):
        path = managed_ledger_path(name)
        found = self.store.get(path)
        assert found is not None
        self.store.set(path, data, expected_version=found.stat.version)
        self.watched.fire(path)

    def read(self, names=tuple(NAMES)):
        """What a sensor that ticks now is given, by name."""
        found = dict(SharedTopics(self.store, self.kept).read_many(names))
        return {name: None if node is None else node.data for name, node in found.items()}

    def times(self, name):
        return self.asked[managed_ledger_path(name)]


@pytest.fixture
def cluster():
    made = Cluster()
    made.wake.before_look(MetadataSettings())
    return made


def test_sensors_of_one_tick_read_each_node_once(cluster):
    truth = {name: name.encode() for name in NAMES}
    assert [cluster.read() for _sensor in range(4)] == [truth] * 4
    assert [cluster.times(name) for name in NAMES] == [1, 1, 1]
    assert cluster.read([NAMES[2], "t/ns/persistent/none"]) == {
        NAMES[2]: truth[NAMES[2]],
        "t/ns/persistent/none": None,
    }
    assert cluster.times(NAMES[2]) == 1


def test_what_changed_is_read_again_and_nothing_else(cluster):
    cluster.read()
    cluster.write(NAMES[1], b"new")
    assert cluster.read()[NAMES[1]] == b"new"
    assert [cluster.times(name) for name in NAMES] == [1, 2, 1]


def test_a_change_while_it_is_read_is_not_missed(cluster):
    """The watch is set first, so it fires, whichever of the two the reading was given."""
    cluster.during = lambda: cluster.write(NAMES[0], b"new") if cluster.times(NAMES[0]) == 1 else 0
    cluster.read()
    assert cluster.read()[NAMES[0]] == b"new"
    assert cluster.times(NAMES[0]) == 2


def test_a_watch_that_was_set_again_does_not_vouch_for_what_was_read_before(cluster):
    cluster.read()
    cluster.write(NAMES[1], b"new")
    cluster.wake.follow([managed_ledger_path(NAMES[1])])  # by a sensor at its look's end
    assert cluster.read()[NAMES[1]] == b"new"


def test_nothing_is_given_for_longer_than_a_minute(cluster):
    cluster.read()
    cluster.now += KEPT_S
    cluster.read()
    assert cluster.times(NAMES[0]) == 1
    cluster.now += 1
    cluster.read()
    assert cluster.times(NAMES[0]) == 2


def test_without_watches_each_sensor_reads_for_itself(cluster):
    def refuse(_settings):
        raise MetadataError("no ZooKeeper")

    cluster.kept = KeptTopics(wake=Wake(connect=refuse), clock=lambda: cluster.now)
    cluster.read()
    cluster.read()
    assert [cluster.times(name) for name in NAMES] == [2, 2, 2]


def test_a_reading_that_fails_is_told_to_each_and_keeps_nothing(cluster):
    def fail():
        raise MetadataError("the session is lost")

    cluster.during = fail
    for _sensor in range(2):
        with pytest.raises(MetadataError, match="the session is lost"):
            cluster.read()
    cluster.during = lambda: None
    assert cluster.read()[NAMES[0]] == NAMES[0].encode()


def test_the_oldest_go_when_there_are_too_many(cluster):
    cluster.kept.bytes_max = len(NAMES[0]) * 2
    cluster.read()
    cluster.read(NAMES[1:])
    assert [cluster.times(name) for name in NAMES] == [1, 1, 1]
    cluster.read(NAMES[:1])
    assert cluster.times(NAMES[0]) == 2


def test_sensors_that_tick_together_list_the_topics_once(cluster):
    def listed():
        return list(SharedTopics(cluster.store, cluster.kept).iter_managed_ledgers())

    assert sorted(listed()) == NAMES
    cluster.store.create(managed_ledger_path("t/ns/persistent/new"), b"")
    assert sorted(listed()) == NAMES
    assert cluster.listings == 1
    cluster.now += TICK_S + 1
    assert "t/ns/persistent/new" in listed()


def test_one_that_wants_what_another_reads_waits_for_it(cluster):
    reading, go_on = threading.Event(), threading.Event()

    def wait():
        reading.set()
        assert go_on.wait(30)

    cluster.during = wait
    first = threading.Thread(target=cluster.read)
    first.start()
    assert reading.wait(30)
    second = threading.Thread(target=cluster.read)
    second.start()
    go_on.set()
    first.join(30)
    second.join(30)
    assert [cluster.times(name) for name in NAMES] == [1, 1, 1]
