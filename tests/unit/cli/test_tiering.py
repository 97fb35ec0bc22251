"""`tiering pause|resume|list` over simulated servers: words, documents, exit codes."""

import json
from contextlib import contextmanager

import pytest

from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.records import keys

NAME = "t/ns/orders"
REASON = ("--reason", "migration")


@pytest.fixture
def stack(monkeypatch):
    """Topic `orders` with a closed ledger 0 and an open one."""
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic("t/ns/persistent/orders")
    site.broker.produce("t/ns/persistent/orders", [b"first", b"later"])
    site.broker.roll_over("t/ns/persistent/orders")
    found = Process(world, "cli", site).stack()

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


def test_pause_list_resume_and_each_again(stack, capsys):
    pause = ("tiering", "pause", "--topic", NAME, *REASON, "--author", "ops")
    first = document(capsys, *pause)
    assert first["schema"] == "tierkeeper/tiering-pause/1"
    [made] = first["pauses"]
    assert (made["changed"], made["mode"], made["topics"]) == (True, "paused", 1)
    assert document(capsys, *pause)["pauses"][0]["changed"] is False
    assert document(capsys, *pause, "--disable")["pauses"][0]["changed"] is True
    [found] = document(capsys, "tiering", "list")["pauses"]
    assert (found["scope"], found["name"]) == ("topic", "t/ns/persistent/orders")
    assert (found["mode"], found["author"], found["reason"]) == ("disabled", "ops", "migration")
    refused = document(capsys, "topic", "offload", NAME, "--keep-bytes", "0", code=26)
    assert "disabled: by the pause of topic persistent://t/ns/orders" in refused["message"]
    assert "`tierkeeper tiering resume`" in refused["message"]
    resume = ("tiering", "resume", "--topic", NAME, "--reason", "over")
    planned = document(capsys, *resume, "--plan")
    assert (planned["executed"], planned["permits"]) == (False, {"topics": 1, "ledgers": 1})
    assert len(document(capsys, "tiering", "list")["pauses"]) == 1
    lifted = document(capsys, *resume, "--execute")
    assert (lifted["executed"], lifted["pauses"][0]["changed"]) == (True, True)
    assert document(capsys, *resume, "--execute")["pauses"][0]["changed"] is False
    assert document(capsys, "tiering", "list")["pauses"] == []


def test_what_stays_switched_off_after_a_resume_is_told(stack, capsys):
    for scope in (("--topic", NAME), ("--all",), ("--namespace", "t/ns", "--disable")):
        assert run(["tiering", "pause", *scope, *REASON, "--author", "ops"]) == 0
    capsys.readouterr()
    assert run(["tiering", "resume", "--topic", NAME, "--reason", "over", "--execute"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "the pause of topic persistent://t/ns/orders would go",
        "permits copies and publications of 1 topics, of which 1 ledgers are sealed and not "
        "offloaded",
        "topic persistent://t/ns/orders: resumed",
        "persistent://t/ns/orders stays disabled: by the pause of namespace t/ns: migration (ops); "
        "by the pause of everything: migration (ops)",
    ]
    assert run(["tiering", "resume", "--all", "--reason", "over", "--execute"]) == 0
    assert "stays disabled: by the pause of namespace t/ns" in capsys.readouterr().out


def test_an_unreadable_pause_is_listed_by_its_key(stack, capsys):
    stack.objects.put(stack.book.prefix + keys.PAUSE_ALL, b"{")
    [found] = document(capsys, "tiering", "list")["pauses"]
    assert (found["name"], found["mode"], found["reason"]) == (
        keys.PAUSE_ALL,
        "paused",
        "unreadable",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "found none"),
        (("--all", "--topic", NAME), "found --topic and --all"),
        (("--namespace", "t"), "expected tenant/namespace"),
        (("--topic", "orders"), "not a topic name"),
    ],
)
@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_names_nothing_is_a_usage_error(stack, capsys, verb, words, said):
    words = (*words, "--execute") if verb == "resume" else words
    assert said in document(capsys, "tiering", verb, *words, *REASON, code=2)["message"]
    assert stack.book.keys("pauses/") == []


def test_a_topic_that_does_not_exist_is_not_paused(stack, capsys):
    error = document(capsys, "tiering", "pause", "--topic", "t/ns/ordres", *REASON, code=26)
    assert "no such topic" in error["message"]
    assert stack.book.keys("pauses/") == []
