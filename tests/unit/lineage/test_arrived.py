"""Ledgers as they are posted: which come next, and what of them is read."""

from dataclasses import replace

import pytest

from tests.support.pulsar_entries import message
from tests.support.sim_scene import TOPIC
from tests.unit.catalogue.desk import OTHER_UID, example
from tests.unit.lineage.test_commands import TIME
from tests.unit.records.examples import UID
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.view import least
from tiering_assets.lineage.messages.arrivals import StreamPosition, due, next_position
from tiering_assets.lineage.messages.arrived import blocks_that_came, first_pages, readable
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, Quarantine
from tiering_assets.resources.errors import CatalogueError

NAME = TOPIC.replace("/persistent/", "/")
PATTERN = NAME[:-1] + "*"


@pytest.fixture
def published(scene):
    """Makes and publishes a ledger of the topic."""

    def one():
        ledger = scene.fill(TOPIC, message(TIME), message(TIME))
        scene.publish(ledger)
        return ledger

    return one


def coming(tables, at, mark, topic=NAME, most=None):
    came = first_pages(tables, topic)
    some = readable(tables, at, came, until=mark, most=most)
    end = next_position(at, came, some, until=mark, most=most)
    blocks = blocks_that_came(tables, due(at, end, came), came)
    return end, [*dict.fromkeys(one.ledger_id for one in blocks)]


@pytest.mark.parametrize("topic", [NAME, PATTERN])
def test_ledgers_come_as_they_are_posted(published, posted, topic):
    first, second = published(), published()
    tables, as_of = posted()
    end, found = coming(tables, StreamPosition(), as_of.page, topic)
    assert found == [first, second]
    third = published()
    tables, as_of = posted()
    end, found = coming(tables, end, as_of.page, topic)
    assert found == [third]
    assert coming(tables, end, as_of.page, topic) == (end, [])


def test_other_topics_do_not_come(published, posted):
    published()
    tables, _ = posted()
    assert first_pages(tables, "public/default/others") == {}


def test_so_many_come_at_once(published, posted):
    ledgers = [published() for _ in range(3)]
    tables, as_of = posted()
    at, found = StreamPosition(), []
    for ledger in ledgers:
        at, some = coming(tables, at, as_of.page, most=1)
        assert some == [ledger]
        found += some
    assert found == ledgers
    came = first_pages(tables, NAME)
    assert readable(tables, StreamPosition(), came, until=as_of.page, most=1) == {*ledgers}


def test_one_that_lost_its_copy_since_it_was_planned_is_named(published, posted, scene):
    ledger = published()
    tables, as_of = posted()
    end, _ = coming(tables, StreamPosition(), as_of.page)
    came = first_pages(tables, NAME)
    with pytest.raises(CatalogueError, match=f"ledgers {ledger + 1} .1 in all. were to be read"):
        blocks_that_came(tables, [ledger, ledger + 1], came)
    assert end.owed == frozenset()


def test_one_without_a_sound_copy_comes_when_it_has_one_and_never_again(desk, catalogue):
    ml_name = example(Certificate).ml_name
    name = ml_name.replace("/persistent/", "/")

    def certify(uid):
        ledger = replace(example(Certificate).ledger, ledger_id=42)
        record = example(Certificate, ledger=ledger, uid=uid, ml_name=ml_name)
        desk.book.create(keys.certificate(42, uid), record)

    def quarantine(uid):
        record = example(Quarantine, ledger_id=42, uid=uid, ml_name=ml_name)
        desk.book.create(keys.quarantine(42, uid), record)

    def posted():
        desk.book.close_page()
        while post(desk.stack, catalogue).pages:
            pass
        tables = catalogue.opened()
        return tables, least(catalogue, tables).page

    desk.chain(7, ml_name=ml_name)
    certify(UID)
    quarantine(UID)
    tables, mark = posted()
    at, found = coming(tables, StreamPosition(), mark, name)
    assert (found, at.owed) == ([7], {42})
    certify(OTHER_UID)
    tables, mark = posted()
    at, found = coming(tables, at, mark, name)
    assert (found, at.owed) == ([42], frozenset())
    quarantine(OTHER_UID)
    tables, mark = posted()
    assert coming(tables, at, mark, name) == (at, [])
