"""Holds and pauses are found by one code path: by their keys, whatever their bodies say."""

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.ground.own_policy import TieringMode
from tiering_assets.look.brakes.brake import HOLD, PAUSE, Brake, list_brakes, read_brakes
from tiering_assets.look.brakes.holds import hold, lift_hold
from tiering_assets.look.brakes.pauses import pause, resume
from tiering_assets.look.brakes.scopes import EVERYTHING, Scope, ledger_scope, namespace_scope
from tiering_assets.records.keys import topic_hash

TOPIC = "t/ns/persistent/orders"
OF_TOPIC = Scope("topic", TOPIC)
WHO = {"reason": "audit", "author": "kim"}
KEYS = {
    OF_TOPIC: f"topics/{topic_hash(TOPIC)}.json",
    namespace_scope("t/ns"): f"namespaces/{topic_hash('t/ns')}.json",
    EVERYTHING: "all.json",
}
BOTH = pytest.mark.parametrize("kind", [HOLD, PAUSE], ids=["hold", "pause"])


@pytest.fixture
def stack():
    return Scene().stack


def brake(stack, kind, scope=OF_TOPIC):
    if kind is HOLD:
        assert hold(stack, scope, **WHO)
    else:
        assert pause(stack, scope, TieringMode.DISABLED, **WHO)


def release(stack, kind, scope=OF_TOPIC):
    if kind is HOLD:
        lift_hold(stack, scope, **WHO)
    else:
        assert resume(stack, scope, **WHO)


def said(stack, kind):
    return [met.said for met in read_brakes(stack, kind).on(TOPIC)]


@BOTH
@pytest.mark.parametrize("scope", KEYS, ids=str)
def test_each_scope_has_its_key_and_one_shape(stack, kind, scope):
    brake(stack, kind, scope)
    [found] = list_brakes(stack, kind)
    mode = "disabled" if kind is PAUSE else ""
    assert isinstance(found, Brake)
    assert (found.key, found.scope, found.mode) == (kind.folder + KEYS[scope], scope, mode)
    assert (found.author, found.reason) == ("kim", "audit")
    assert abs((found.since - stack.now()).total_seconds()) < 3600
    assert found.since.tzinfo is not None
    assert said(stack, kind) == ["audit (kim)"]


def test_a_hold_of_one_ledger_covers_that_one_alone(stack):
    brake(stack, HOLD, ledger_scope(7))
    [found] = list_brakes(stack, HOLD)
    assert isinstance(found, Brake)
    assert (found.key, found.scope) == ("holds/7.json", ledger_scope(7))
    found_now = read_brakes(stack, HOLD)
    assert found_now.why(7, TOPIC) == "audit (kim)"
    assert found_now.why(8, TOPIC) is None
    assert found_now.why_topic(TOPIC) is None


@BOTH
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"schema":"tierkeeper/hold/9"}'])
def test_one_that_cannot_be_read_brakes_all_the_same(stack, kind, body):
    key = kind.key(OF_TOPIC)
    stack.objects.put(stack.book.prefix + key, body)
    [why] = said(stack, kind)
    assert why.startswith(f"{kind.unreadable}: ")
    assert (read_brakes(stack, kind).why(0, TOPIC) or "").startswith(kind.unreadable)
    assert [*list_brakes(stack, kind)] == [key]


@BOTH
def test_the_widest_one_speaks(stack, kind):
    for scope in KEYS:
        brake(stack, kind, scope)
    assert [met.scope for met in read_brakes(stack, kind).on(TOPIC)] == [*KEYS][::-1]
    assert read_brakes(stack, kind).why_topic(TOPIC) == "all: audit (kim)"


@BOTH
def test_what_is_not_braked_is_not(stack, kind):
    assert read_brakes(stack, kind).why(0, TOPIC) is None
    brake(stack, kind, Scope("topic", "t/ns/persistent/others"))
    assert read_brakes(stack, kind).why(0, TOPIC) is None
    assert read_brakes(stack, kind).why_all() is None


@pytest.mark.parametrize(("kind", "then"), [(HOLD, [HOLD.gone]), (PAUSE, [])])
def test_one_that_went_since_it_was_listed_holds_and_does_not_pause(stack, kind, then):
    brake(stack, kind)
    listed = read_brakes(stack, kind)
    release(stack, kind)
    assert [met.said for met in listed.on(TOPIC)] == then
    assert said(stack, kind) == []


@BOTH
def test_a_body_is_read_when_its_brake_is_met_and_once(stack, kind, monkeypatch):
    for scope in KEYS:
        brake(stack, kind, scope)
    listed, asked = read_brakes(stack, kind), []
    really = type(stack.book).read

    def read(book, record, key):
        asked.append(key)
        return really(book, record, key)

    monkeypatch.setattr(type(stack.book), "read", read)
    assert listed.why(0, TOPIC) == listed.why(1, TOPIC) == "all: audit (kim)"
    assert asked == [kind.key(EVERYTHING)]
