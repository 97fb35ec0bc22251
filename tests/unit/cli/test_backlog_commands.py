"""What `ledger why` and `topic backlog` print, over simulated servers."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.automation.standing import OFF
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.resources.settings import AutoSettings, BrokerSettings

TOPIC = "t/ns/persistent/orders"


@pytest.fixture(autouse=True)
def connected(monkeypatch, tmp_path):
    """A topic with a closed ledger 0 of nine bytes and an open one; no broker answers."""
    monkeypatch.chdir(tmp_path)
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    site.broker.produce(TOPIC, [b"first", b"last"])
    site.broker.roll_over(TOPIC)
    site.cluster.metadata.put("/admin/policies/t/ns", b'{"offload_threshold": 9}')
    stack = Process(world, "cli", site).stack()
    with running_admin_simulator() as gone:
        address = BrokerSettings(admin_url=gone.url, timeout_s=2)
    stack = replace(stack, settings=replace(stack.settings, broker=address))

    @contextmanager
    def opened(_session):
        yield stack

    monkeypatch.setattr(Session, "stack", opened)
    return site, stack


STEP = "nothing to do until its topic grows or ages; `tierkeeper policy show {}` names the level"


def test_why_is_one_line_and_the_next_step_is_another(capsys):
    assert run(["ledger", "why", "0"]) == 0
    why, step = capsys.readouterr().out.splitlines()
    assert why == "ledger 0: below threshold: 9 bytes from here on <= 9"
    assert step.startswith(f"  next: {STEP.format('t/ns/orders')}")


def test_why_as_a_document(capsys):
    assert run(["ledger", "why", "0", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document.pop("next_step").startswith(STEP.format("t/ns/orders"))
    assert document == {
        "schema": "tierkeeper/ledger-why/1",
        "ledger_id": 0,
        "reason": "below threshold",
        "detail": "9 bytes from here on <= 9",
        "state": "sealed",
        "topic": "persistent://t/ns/orders",
        "ml_name": TOPIC,
    }


def test_a_run_that_failed_before_it_had_an_attempt_is_told_by_both_commands(connected, capsys):
    site, stack = connected
    del site.cluster.bookies[0]
    offload_batch(stack, [0])
    assert run(["ledger", "why", "0"]) == 0
    assert capsys.readouterr().out.startswith("ledger 0: failed: ledger 0 entry 0: no replica")
    assert run(["topic", "backlog", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["reason"]: row["ledgers"] for row in document["reasons"]} == {
        "open": 1,
        "failed": 1,
    }


def test_an_unknown_ledger_is_an_error_with_the_next_step(capsys):
    assert run(["ledger", "why", "77"]) == 17
    assert "`tierkeeper ledger list` prints those that exist" in capsys.readouterr().err


def test_the_fleets_backlog_by_reason(capsys):
    assert run(["topic", "backlog"]) == 0
    header, *rows = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    assert [cell.strip() for cell in header if cell] == ["REASON", "LEDGERS", "SIZE", "OLDEST"]
    assert [row[0] for row in rows[:2]] == ["open", "below threshold"]
    assert [row[0] for row in rows[2:]] == [
        f"next, below threshold: {STEP.format('TOPIC')} that says so",
        "next, open: nothing to do: it is closed when its topic rolls over",
    ]


def test_while_automation_is_off_the_backlog_says_so_before_anything_else(
    connected, monkeypatch, capsys
):
    _site, stack = connected
    assert run(["topic", "backlog"]) == 0
    [first, *_rest] = capsys.readouterr().err.splitlines()
    assert first == OFF
    assert run(["topic", "backlog", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["automation"] == OFF
    settings = replace(stack.settings, auto=AutoSettings(enabled=True))

    @contextmanager
    def opened(_session):
        yield replace(stack, settings=settings)

    monkeypatch.setattr(Session, "stack", opened)
    assert run(["topic", "backlog"]) == 0
    assert "automation" not in capsys.readouterr().err
    assert run(["topic", "backlog", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["automation"] is None


def test_the_backlog_of_named_topics_tells_them_apart(capsys):
    assert run(["topic", "backlog", "t/ns/orders", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["ledgers"], document["bytes"]) == (2, 9)
    by_reason = {row["reason"]: (row["ledgers"], row["bytes"]) for row in document["reasons"]}
    assert by_reason == {"open": (1, 0), "below threshold": (1, 9)}
    [topic] = document["topics"]
    assert topic == {"topic": "persistent://t/ns/orders", "reasons": document["reasons"]}


def test_a_topic_that_nobody_has_is_a_usage_error(capsys):
    assert run(["topic", "backlog", "t/ns/typo"]) == 2
    assert "the metadata store has no such topic" in capsys.readouterr().err
