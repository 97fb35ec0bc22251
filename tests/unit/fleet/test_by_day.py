"""What each day did, by rows, is what the records of that day say."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.sim_scene import TOPIC, Scene, is_released
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.fleet.by_day import DAYS, work_by_day
from tiering_assets.fleet.source import tables_to_ask
from tiering_assets.records.models import Release
from tiering_assets.resources.settings import CatalogueSettings

DAY_S = 24 * 3600
SIZE = len(b"firstlast")


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def days(scene, tmp_path):
    settings = replace(scene.stack.settings, catalogue=CatalogueSettings(root=str(tmp_path)))
    stack = replace(scene.process("asker"), settings=settings)

    def ask():
        prove(stack, Catalogue.of(stack))
        scan(stack, Catalogue.of(stack))
        source = tables_to_ask(stack)
        assert source is not None
        return work_by_day(source, stack.now())

    return ask


def test_each_day_has_the_bytes_that_its_records_tell(scene, days):
    ledger_id = 0
    for together in (False, True, False, False):
        scene.publish(ledger_id)
        ledger_id = scene.fill(TOPIC)
        if not together:
            scene.wait(DAY_S)
    releasing = scene.process("releasing")
    assert is_released(scene.release(0, stack=releasing))
    releasing.book.close_page()  # until then its records are nobody's to count
    found = days()
    published = Counter(one.record.confirmed_at.date() for one in scene.publications())
    [key] = [one for one in scene.stack.book.keys("releases/0/") if "intent" not in one]
    released = scene.stack.book.require(Release, key).record
    assert sorted(published.values()) == [1, 1, 2]
    assert {one.day: one.published for one in found if one.published} == {
        day: SIZE * count for day, count in published.items()
    }
    assert {one.day: one.released for one in found if one.released} == {
        released.released_at.date(): SIZE
    }


def test_a_day_that_did_nothing_is_among_them_and_an_old_one_is_not(scene, days):
    scene.publish()
    scene.wait(DAYS * DAY_S)
    found = days()
    assert len(found) == DAYS
    assert [one.day - found[0].day for one in found] == [timedelta(days=n) for n in range(DAYS)]
    assert {(one.published, one.released) for one in found} == {(0, 0)}
