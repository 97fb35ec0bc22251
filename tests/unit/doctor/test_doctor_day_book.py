"""Doctor tells of runs that write records and no pages, as versions before the day book do."""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.change.disturb import record_disturbance
from tiering_assets.doctor.day_book import check_day_book
from tiering_assets.ground.finding import Level
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys


@pytest.fixture
def scene():
    return Scene()


def look(scene):
    return [(one.level, one.text) for one in check_day_book(scene.process("doctor"))]


def reload_by_an_older_version(scene, run="old-run"):
    stack = scene.process(run)
    stack = replace(stack, book=RecordBook(stack.objects, stack.instance))
    scene.wait(5)
    record_disturbance(stack, TOPIC, None, why="a test")


def test_before_the_first_page_nothing_is_told_of(scene):
    reload_by_an_older_version(scene)
    [(level, text)] = look(scene)
    assert (level, text[:12]) == (Level.OK, "no page yet:")


def test_runs_with_pages_are_fine(scene):
    reload_by_an_older_version(scene)
    scene.wait(5)
    scene.publish()
    [(level, text)] = look(scene)
    assert level is Level.OK
    assert "newest page 2, by simulated; " in text
    assert "reloads since 2026-" in text


def test_a_run_without_a_page_is_named(scene):
    scene.publish()
    reload_by_an_older_version(scene)
    reload_by_an_older_version(scene)
    [(level, text)] = look(scene)
    assert level is Level.WARN
    assert text.startswith("run old-run on ")
    assert text.endswith("wrote records and no page, after page 1 was there")


def test_of_two_days_ago_nothing_is_told(scene):
    scene.publish()
    reload_by_an_older_version(scene)
    scene.wait(2 * 86_400)
    [(level, _text)] = look(scene)
    assert level is Level.OK


@pytest.mark.parametrize("folder", [keys.DAY_BOOK, keys.DISTURBANCES])
def test_what_cannot_be_read_is_passed_over(scene, folder):
    scene.publish()
    reload_by_an_older_version(scene)
    book = scene.stack.book
    for key in book.keys(folder):
        scene.world.objects.overwrite(book.prefix + key, b"{")
    [(level, _text)] = look(scene)
    assert level is Level.OK
