"""`broker list|gone` over simulated servers, and what a topic's status says of an undo."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.sim_broker_memory import NAME
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.change.confirm import Noted
from tiering_assets.change.topic_edit import Copy, TopicChange
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.ground.stack import RunMemory
from tiering_assets.look.topic.brokers_seen import known_brokers
from tiering_assets.records import keys
from tiering_assets.records.broker_models import BrokerGone

TOPIC = "t/ns/persistent/orders"
OTHER = "10.0.0.2:8080"


@pytest.fixture
def stack(monkeypatch):
    """One broker is registered; another was, and is not there."""
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    found = Process(world, "cli", site).stack()
    registered = [NAME, OTHER]
    monkeypatch.setattr(site.broker, "list_brokers", lambda: [*registered])
    known_brokers(found)
    registered.remove(OTHER)
    world.scheduler.now += 10.0
    found = replace(found, memory=RunMemory())

    @contextmanager
    def opened(_session, _runner=None):
        yield found

    monkeypatch.setattr(Session, "stack", opened)
    return found


def document(capsys, *words, code=0):
    capsys.readouterr()
    assert run([*words, "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out if code == 0 else said.err)


def test_a_broker_that_is_not_there_is_listed_and_said_to_be_gone(stack, capsys):
    found = {one["broker"]: one for one in document(capsys, "broker", "list")["brokers"]}
    assert (found[NAME]["registered"], found[NAME]["asked"]) == (True, False)
    assert (found[OTHER]["registered"], found[OTHER]["answers"]) == (False, False)
    assert found[OTHER]["asked"]
    gone = ("broker", "gone", OTHER, "--reason", "dead", "--author", "ops")
    assert document(capsys, *gone, "--plan")["executed"] is False
    assert stack.book.keys(keys.BROKERS_GONE) == []
    assert document(capsys, *gone, "--execute")["broker"] == OTHER
    [stored] = stack.book.iter_records(BrokerGone, keys.BROKERS_GONE)
    assert (stored.record.broker, stored.record.author) == (OTHER, "ops")
    found = {one["broker"]: one for one in document(capsys, "broker", "list")["brokers"]}
    assert not found[OTHER]["asked"]


def test_one_that_is_registered_is_not_gone(stack, capsys):
    refused = document(capsys, "broker", "gone", NAME, "--reason", "dead", "--plan", code=26)
    assert "it is registered now" in refused["message"]


def test_the_table_is_for_people(stack, capsys):
    assert run(["broker", "list"]) == 0
    said = capsys.readouterr().out
    assert OTHER in said
    assert "2 brokers" in said


def test_a_topics_status_lists_what_its_broker_may_not_know(stack, capsys):
    marks = TopicChange(marks={7: Copy(stack.new_uid(), 1)})
    Noted(stack, TOPIC, marks, czxid=1, why="test")
    [found] = document(capsys, "topic", "offload-status", "t/ns/orders")["topics"]
    assert found["undo_unconfirmed"] == [7]
    assert run(["topic", "offload-status", "t/ns/orders"]) == 0
    assert "undo unconfirmed" in capsys.readouterr().out
