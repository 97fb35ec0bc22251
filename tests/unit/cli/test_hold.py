"""`hold set|lift|list` over simulated servers: words, documents, exit codes."""

import json
from contextlib import contextmanager

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.records import keys
from tiering_assets.records.models import HoldLift
from tiering_assets.resources.errors import LedgerNotFoundError
from tiering_assets.resources.pulsar.retention import Retention

NAME, ML_NAME = "t/ns/orders", "t/ns/persistent/orders"
WHO = ("--reason", "audit", "--author", "ops")
SCOPES = {
    "ledger": (("7",), "ledger 7", ("ledger", "7"), keys.hold(7)),
    "topic": (
        ("--topic", NAME),
        "topic persistent://t/ns/orders",
        ("topic", ML_NAME),
        keys.topic_hold(ML_NAME),
    ),
    "namespace": (
        ("--namespace", "t/ns"),
        "namespace t/ns",
        ("namespace", "t/ns"),
        keys.namespace_hold("t/ns"),
    ),
    "all": (("--all",), "everything", ("all", ""), keys.HOLD_ALL),
}


@pytest.fixture
def stack(monkeypatch):
    scene = Scene()
    scene.broker.retention = lambda _topic: Retention(minutes=60, megabytes=None)  # type: ignore[attr-defined]
    found = scene.stack

    @contextmanager
    def opened(_session, _runner=None):
        yield found

    monkeypatch.setattr(Session, "stack", opened)
    return found


def document(capsys, *words, code=0):
    capsys.readouterr()
    assert run(["hold", *words, "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out if code == 0 else said.err)


def lines(capsys, *words):
    capsys.readouterr()
    assert run(["hold", *words]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("scope", SCOPES)
def test_set_list_lift_and_each_again(stack, capsys, scope):
    option, said, (kind, name), key = SCOPES[scope]
    first = document(capsys, "set", *option, *WHO)
    assert (first["schema"], first["holds"]) == ("tierkeeper/hold-set/1", {said: True})
    assert [*first["cannot_stop"]] == ([ML_NAME] if scope == "topic" else [])
    assert document(capsys, "set", *option, *WHO)["holds"] == {said: False}
    assert lines(capsys, "set", *option, *WHO)[0] == (
        f"{said}: was held before; the first reason stays"
    )
    listed = document(capsys, "list")
    [found] = listed["holds"]
    assert listed["schema"] == "tierkeeper/hold-list/1"
    assert [*found] == ["scope", "name", "author", "held_at", "reason"]
    assert (found["scope"], found["name"]) == (kind, name)
    assert (found["author"], found["reason"]) == ("ops", "audit")
    assert stack.book.keys("holds/") == [key]
    table = lines(capsys, "list")
    assert table[0].split() == ["SCOPE", "NAME", "AUTHOR", "SINCE", "REASON"]
    assert table[-1] == "1 holds"
    topics = 0 if scope == "ledger" else 1  # no topic has a ledger 7
    plan = {"schema": "tierkeeper/hold-lift/1", "executed": False, "holds": [key]}
    plan |= {"permits": {"topics": topics, "ledgers": 0}, "still_held": {}}
    assert document(capsys, "lift", *option, *WHO, "--plan") == plan
    assert stack.book.keys("holds/") == [key]
    assert document(capsys, "lift", *option, *WHO, "--execute") == plan | {"executed": True}
    [lift] = stack.book.iter_records(HoldLift, "hold-lifts/")
    assert (lift.record.hold_key, lift.record.author) == (key, "ops")
    gone = document(capsys, "lift", *option, *WHO, "--plan", code=LedgerNotFoundError.exit_code)
    assert gone["message"] == f"{key}: no such hold; `tierkeeper hold list` prints all"
    assert document(capsys, "list")["holds"] == []


def test_what_still_holds_a_topic_is_told(stack, capsys):
    for option in (("--topic", NAME), ("--namespace", "t/ns")):
        assert lines(capsys, "set", *option, *WHO)[0].endswith(": held")
    assert lines(capsys, "lift", "--topic", NAME, *WHO, "--execute")[-2:] == [
        "the hold is lifted",
        "persistent://t/ns/orders stays held: namespace t/ns: audit (ops)",
    ]


def test_an_unreadable_hold_is_listed_by_its_key(stack, capsys):
    stack.objects.put(stack.book.prefix + keys.HOLD_ALL, b"{")
    [found] = document(capsys, "list")["holds"]
    unreadable = dict.fromkeys(("author", "held_at", "reason"), "unreadable")
    assert found == {"scope": "?", "name": keys.HOLD_ALL, **unreadable}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "exactly one of ID, --ids, --topic, --namespace, --all; found none"),
        (("--all", "0"), "found ID and --all"),
        (("--namespace", "t"), "'t': expected tenant/namespace"),
        (("--topic", "orders"), "not a topic name"),
    ],
)
@pytest.mark.parametrize("verb", ["set", "lift"])
def test_what_names_nothing_is_a_usage_error(stack, capsys, verb, words, said):
    words = (*words, "--execute") if verb == "lift" else words
    assert said in document(capsys, verb, *words, *WHO, code=2)["message"]
    assert stack.book.keys("holds/") == stack.book.keys("hold-lifts/") == []


def test_a_topic_that_does_not_exist_is_not_held(stack, capsys):
    error = document(capsys, "set", "--topic", "t/ns/ordres", *WHO, code=2)
    assert "no such topic" in error["message"]
    assert stack.book.keys("holds/") == []
