"""Brokers are remembered in the bucket, and asked for as long as one of them may serve topics."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.change.confirm import NOT_LOADED, reload_topic
from tiering_assets.change.disturb import see
from tiering_assets.doctor.brokers import check_away
from tiering_assets.ground.stack import RunMemory
from tiering_assets.look.topic import brokers_seen
from tiering_assets.look.topic.broker_list import declare_gone, list_brokers
from tiering_assets.records import keys
from tiering_assets.records.broker_models import BrokersSeen
from tiering_assets.resources.errors import ObjectStoreError, RefusedError
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace

TOPIC = "t/ns/persistent/orders"
FIRST, SECOND = "10.0.0.1:8080", "10.0.0.2:8080"
WHO = {"reason": "decommissioned", "author": "ops"}
MONTH = 30 * 86400.0


class Brokers:
    """Who is registered, who answers, and with what we asked; nobody has the topic."""

    def __init__(self, inner):
        self._inner = inner
        self.registered, self.answering = [FIRST, SECOND], {FIRST, SECOND}
        self.asked = []

    def list_brokers(self):
        return sorted(self.registered)

    def answers(self, broker):
        return broker in self.answering

    def locate(self, _topic, *, remembered=(), quiet_s=0.0):
        away = tuple(b for b in remembered if b not in self.registered)
        self.asked.append((away, quiet_s))
        silent = tuple(b for b in away if b not in self.answering)
        load = TopicLoad.UNKNOWN if silent else TopicLoad.NOT_LOADED
        return TopicPlace(load, None, silent)

    def __getattr__(self, name):
        return getattr(self._inner, name)


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def site(world):
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    site.broker.restart()
    return site


@pytest.fixture
def first_run(world, site):
    stack = Process(world, "brokers", site).stack()
    return replace(stack, broker=Brokers(stack.broker))


def another_run(stack):
    return replace(stack, memory=RunMemory())


def place(stack):
    return brokers_seen.locate(stack, TOPIC, stack.topics.read(TOPIC))


def seen(stack):
    record = stack.book.require(BrokersSeen, keys.BROKERS_SEEN).record
    return {one.name: one for one in record.brokers}


def lose(stack, broker=SECOND, *, answers=False):
    stack.broker.registered.remove(broker)
    if not answers:
        stack.broker.answering.remove(broker)


def test_a_broker_that_is_gone_makes_its_topics_unknown_however_long_one_waits(first_run, world):
    assert place(first_run).load is TopicLoad.NOT_LOADED
    assert {*seen(first_run)} == {FIRST, SECOND}
    lose(first_run)
    for days in (0, 1, 100):
        world.scheduler.now += days * 86400.0
        found = place(another_run(first_run))
        assert found.load is TopicLoad.UNKNOWN
        assert found.silent == (SECOND,)


def test_one_that_lost_its_session_since_the_last_look_is_asked(first_run):
    found = first_run.topics.read(TOPIC)
    assert brokers_seen.locate(first_run, TOPIC, found).load is TopicLoad.NOT_LOADED
    first_run.broker.registered.remove(FIRST)  # within the minute for which a look counts
    assert brokers_seen.locate(first_run, TOPIC, found).load is TopicLoad.NOT_LOADED
    first_run.broker.answering.remove(FIRST)
    assert brokers_seen.locate(first_run, TOPIC, found).load is TopicLoad.UNKNOWN
    assert [away for away, _quiet_s in first_run.broker.asked] == [(), (FIRST,), (FIRST,)]


def test_it_counts_again_once_it_answers(first_run, world):
    place(first_run)
    lose(first_run)
    assert place(another_run(first_run)).load is TopicLoad.UNKNOWN
    first_run.broker.answering.add(SECOND)
    world.scheduler.now += 60.0
    assert place(another_run(first_run)).load is TopicLoad.NOT_LOADED
    assert seen(first_run)[SECOND].answered_at is not None
    world.scheduler.now += MONTH  # it answered, and the memory is a week
    assert place(another_run(first_run)).load is TopicLoad.NOT_LOADED
    assert first_run.broker.asked[-1][0] == ()


def test_one_that_was_not_asked_as_another_has_the_topic_has_not_answered(first_run, world):
    """Or it would be forgotten in a week, with whatever it serves."""
    place(first_run)
    lose(first_run)
    loaded = TopicPlace(TopicLoad.LOADED, FIRST)
    first_run.broker.locate = lambda _topic, **_how: loaded
    world.scheduler.now += 60.0
    assert place(another_run(first_run)) == loaded
    assert seen(first_run)[SECOND].answered_at is None


def test_it_counts_again_once_a_person_says_that_it_is_gone(first_run, world):
    place(first_run)
    lose(first_run)
    world.scheduler.now += 60.0
    declare_gone(first_run, SECOND, **WHO)
    assert place(another_run(first_run)).load is TopicLoad.NOT_LOADED
    first_run.broker.registered.append(SECOND)
    world.scheduler.now += 60.0
    place(another_run(first_run))
    world.scheduler.now += 2 * 3600.0  # the record is written again after an hour
    place(another_run(first_run))
    first_run.broker.registered.remove(SECOND)
    assert place(another_run(first_run)).load is TopicLoad.UNKNOWN  # it had come back


def test_a_word_is_taken_of_nobody_who_is_there(first_run):
    place(first_run)
    with pytest.raises(RefusedError, match="is registered now"):
        declare_gone(first_run, SECOND, **WHO)
    lose(first_run, answers=True)
    with pytest.raises(RefusedError, match="it answers"):
        declare_gone(first_run, SECOND, **WHO)
    with pytest.raises(RefusedError, match="never seen"):
        declare_gone(first_run, "misspelt:8080", **WHO)
    assert first_run.book.keys(keys.BROKERS_GONE) == []


def test_a_run_that_sees_a_part_of_the_cluster_leaves_nobody_out(first_run, world):
    place(first_run)
    first_run.broker.registered = ["10.0.0.3:8080"]
    world.scheduler.now += 60.0
    place(another_run(first_run))
    assert {*seen(first_run)} == {FIRST, SECOND, "10.0.0.3:8080"}


def test_a_record_that_cannot_be_written_does_not_stop_a_run(first_run, monkeypatch):
    def refuse(*_args, **_options):
        raise ObjectStoreError("403: read-only")

    monkeypatch.setattr(type(first_run.book), "create", refuse)
    assert place(first_run).load is TopicLoad.NOT_LOADED


def test_two_runs_that_write_at_once_both_end_with_every_broker(first_run, monkeypatch):
    """The one that loses keeps its own view; the other's record stands and the next run adds."""
    other = another_run(first_run)
    create = type(first_run.book).create

    def late(book, key, record):
        monkeypatch.setattr(type(first_run.book), "create", create)
        place(other)
        return create(book, key, record)

    monkeypatch.setattr(type(first_run.book), "create", late)
    assert place(first_run).load is TopicLoad.NOT_LOADED
    assert {*seen(first_run)} == {FIRST, SECOND}


def test_what_is_quiet_is_counted_from_the_nodes_last_write(first_run, world):
    world.scheduler.now += 500.0
    place(first_run)
    [(_remembered, quiet_s)] = first_run.broker.asked
    assert quiet_s == pytest.approx(500.0, abs=2.0)


def test_nothing_is_quiet_about_a_topic_whose_load_leaves_no_trace(first_run, world):
    world.scheduler.now += 500.0
    _topic, node = first_run.topics.read(TOPIC)
    terminated: Any = SimpleNamespace(terminated_at=(1, 2))
    brokers_seen.locate(first_run, TOPIC, (terminated, node))
    brokers_seen.locate(first_run, TOPIC, None)
    assert [quiet_s for _remembered, quiet_s in first_run.broker.asked] == [0.0, 0.0]


def test_the_slower_of_two_clocks_says_how_long_it_was_quiet(first_run, world):
    fast = replace(first_run, now=lambda: first_run.now() + timedelta(days=1))
    world.scheduler.now += 500.0
    place(fast)
    assert fast.broker.asked[-1][1] == pytest.approx(500.0, abs=2.0)


def test_publication_and_reload_ask_the_remembered_ones(first_run, world, site):
    place(first_run)
    lose(first_run)
    world.scheduler.now += 600.0
    run = another_run(first_run)
    assert see(run, TOPIC).idle_version is None
    assert reload_topic(run, TOPIC, why="test") == "unload acknowledged"
    declare_gone(first_run, SECOND, **WHO)
    site.broker.restart()
    run = another_run(first_run)
    assert see(run, TOPIC).idle_version is not None
    assert reload_topic(run, TOPIC, why="test") == NOT_LOADED


def test_doctor_names_those_that_are_remembered_and_do_not_answer(first_run):
    assert [f.level for f in check_away(first_run)] == ["ok"]
    place(first_run)
    lose(first_run)
    [found] = check_away(another_run(first_run))
    assert (found.check, found.level) == (f"broker {SECOND}", "fail")
    assert f"tierkeeper broker gone {SECOND}" in found.next_step
    first_run.broker.answering.add(SECOND)
    [found] = check_away(another_run(first_run))
    assert found.level == "warn"
    listed = {one.name: one for one in list_brokers(another_run(first_run))}
    assert listed[FIRST].registered
    assert not listed[FIRST].is_asked
    assert (listed[SECOND].registered, listed[SECOND].answers) == (False, True)
