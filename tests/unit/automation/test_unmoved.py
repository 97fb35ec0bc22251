"""Topics that need not be asked whether they moved: only while a watch says so."""

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.automation.unmoved import Unmoved
from tiering_assets.catalogue.scan import scan as scanning
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.table_place import TablePlace

NAMES = ["t/ns/persistent/a", "t/ns/persistent/b"]


class Watches:
    def __init__(self):
        self.armed, self.count = {}, 0

    def follow(self, paths):
        for path in paths:
            if path not in self.armed:
                self.count += 1
                self.armed[path] = self.count

    def watch_of(self, path):
        return self.armed.get(path)

    def fire(self, name):
        self.armed.pop(managed_ledger_path(name), None)


class NoWatches(Watches):
    def follow(self, _paths):
        pass


@pytest.fixture
def watches():
    return Watches()


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def unmoved(watches, clock):
    return Unmoved(watches, lambda: clock[0])


def test_a_topic_is_asked_once_until_its_watch_fires(unmoved, watches):
    assert unmoved.may_have_moved(NAMES) == NAMES
    unmoved.settle()
    assert unmoved.may_have_moved(NAMES) == []
    watches.fire(NAMES[1])
    assert unmoved.may_have_moved(NAMES) == NAMES[1:]
    assert unmoved.may_have_moved(NAMES) == []  # asked for more: the one before is written


def test_a_topic_is_asked_again_after_ten_minutes_whatever_its_watch_says(unmoved, clock):
    unmoved.may_have_moved(NAMES)
    unmoved.settle()
    clock[0] += 599
    assert unmoved.may_have_moved(NAMES) == []
    clock[0] += 1
    assert unmoved.may_have_moved(NAMES) == NAMES


def test_what_did_not_come_to_the_tables_is_asked_again(unmoved):
    unmoved.may_have_moved(NAMES)
    unmoved.forget()
    assert unmoved.may_have_moved(NAMES) == NAMES


def test_a_lost_session_has_every_topic_asked(unmoved, watches):
    unmoved.may_have_moved(NAMES)
    unmoved.settle()
    watches.armed.clear()
    assert unmoved.may_have_moved(NAMES) == NAMES


def test_without_watches_every_topic_is_asked_each_time():
    unmoved = Unmoved(NoWatches())
    for _ in range(2):
        assert unmoved.may_have_moved(NAMES) == NAMES
        unmoved.settle()


def test_a_change_between_the_watch_and_the_answer_is_asked_again(unmoved, watches):
    unmoved.may_have_moved(NAMES)
    watches.fire(NAMES[0])
    unmoved.settle()
    assert unmoved.may_have_moved(NAMES) == NAMES[:1]


def test_a_scan_asks_for_topics_without_a_row_although_their_watch_did_not_fire(
    unmoved, tmp_path, monkeypatch
):
    scene = Scene()
    monkeypatch.setattr(scanning, "_STATS", 1)
    catalogue = Catalogue(TablePlace(root=str(tmp_path / "a"), options={}))
    assert scan(scene.stack, catalogue, may_have_moved=unmoved.may_have_moved).asked == 1
    unmoved.settle()
    assert scan(scene.stack, catalogue, may_have_moved=unmoved.may_have_moved).asked == 0
    anew = Catalogue(TablePlace(root=str(tmp_path / "b"), options={}))
    done = scan(scene.stack, anew, may_have_moved=unmoved.may_have_moved)
    assert (done.asked, done.moved) == (1, 1)
    scene.fill(TOPIC)
    assert scan(scene.stack, anew, may_have_moved=unmoved.may_have_moved).asked == 0  # a hint
