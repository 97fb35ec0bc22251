"""Settled ledgers are counted by topic for those who ask for topics, and then alike."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.fleet_compared import READ, Fleet
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.fleet.backlog import take_backlog
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import Scope
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.resources.settings import CatalogueSettings

ORDERS = topic_of(TOPIC)
OTHERS = tuple(f"public/default/persistent/more-{n}" for n in range(3))


@pytest.fixture
def scene():
    scene = Scene()
    for name in OTHERS:
        scene.broker.create_topic(name)
    return scene


@pytest.fixture
def stack(scene, tmp_path):
    settings = replace(scene.stack.settings, catalogue=CatalogueSettings(root=str(tmp_path)))
    return replace(scene.process("asker"), settings=settings)


@pytest.fixture
def asked(monkeypatch):
    """What is asked of the tables about topics, once all is counted."""
    found = []

    def told(tables, sql):
        found.append(sql)
        return answer(tables, sql)

    monkeypatch.setattr("tiering_assets.fleet.topic_figures.answer", told)
    return found


def caught_up(stack):
    prove(stack, Catalogue.of(stack))
    scan(stack, Catalogue.of(stack))
    return take_backlog(stack).figures


class Second:
    """Not a random one."""

    def choice(self, acts: Any) -> Any:
        return acts[1]


def a_failure(scene, name=TOPIC):
    """A ledger that no bookie has any more, behind one that is settled."""
    lost = scene.fill(name)
    entries = scene.cluster.bookies.pop(lost)
    scene.offload(lost)
    scene.cluster.bookies[lost] = entries
    return lost


def test_who_wants_the_total_and_what_lags_does_not_count_all_topics(scene, stack, asked):
    scene.publish()
    a_failure(scene)
    figures = caught_up(stack)
    assert figures.total.ledgers > 1
    assert len(figures.topics) == 4
    assert asked == [asked[0]]
    lagging = dict(figures.topics.lagging())
    assert [*lagging] == [ORDERS]
    assert lagging[ORDERS].offloaded == 1  # with what is settled
    assert len(asked) == 2
    assert f"topic in ('{TOPIC}')" in asked[1]
    assert [*figures.topics.lagging()] == [*lagging.items()]
    assert len(asked) == 2  # kept
    read = take_backlog(stack, fresh=READ).figures
    assert {name: one.ledgers for name, one in figures.topics.items()} == {
        name: one.ledgers for name, one in read.topics.items()
    }


def test_the_largest_topics_are_found_by_rows(scene, stack, asked):
    scene.publish()
    scene.past_the_lag()
    process = scene.process("release")
    scene.release(stack=process)
    process.book.close_page()
    scene.fill(OTHERS[1], b"longer than all others" * 9)
    figures = caught_up(stack)
    assert [name for name, _one in figures.topics.largest(2)] == [topic_of(OTHERS[1]), ORDERS]
    [(name, one)] = figures.topics.largest(2, LedgerState.RELEASED)
    assert (name, one) == (ORDERS, figures.topics[ORDERS])
    assert sum("topic in" in sql for sql in asked) == 2


def test_where_nothing_lags_nothing_is_asked(scene, stack, asked):
    scene.publish()
    figures = caught_up(stack)
    assert [*figures.topics.lagging()] == []
    assert asked == []


def test_many_that_lag_are_counted_among_all(scene, stack, asked, monkeypatch):
    scene.publish()
    a_failure(scene)
    few = dict(caught_up(stack).topics.lagging())
    monkeypatch.setattr("tiering_assets.fleet.topic_figures._NAMED_MAX", 0)
    asked.clear()
    many = dict(take_backlog(stack).figures.topics.lagging())
    assert [*many] == [*few]
    assert many[ORDERS].reasons[0].ledgers == 1
    assert "topic in" not in asked[0]


def test_a_settled_copy_that_is_damaged_lags(scene, stack, asked):
    Fleet(scene, Second()).quarantine(0)  # type: ignore[arg-type]  # once published
    scene.stack.book.close_page()
    figures = caught_up(stack)
    assert [name for name, _one in figures.topics.lagging()] == [ORDERS]
    assert figures.total.stuck == 1


def test_where_a_topic_is_held_each_topic_is_counted_by_itself(scene, stack, asked):
    scene.publish()
    scene.past_the_lag()
    scene.fill(OTHERS[0])
    hold(scene.stack, Scope("topic", TOPIC), reason="audit", author="kim")
    figures = caught_up(stack)
    reasons = {one.reason.value for one in figures.topics[ORDERS].reasons}
    assert "held" in reasons
    assert asked == []
    assert sum(one.ledgers for one in figures.topics.values()) == figures.total.ledgers
