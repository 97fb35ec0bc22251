"""Ledgers that wait for a threshold: told in columns, and ledger by ledger, the same."""

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.fleet_compared import READ
from tests.support.sim_scene import Scene
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.explain.backlog_evidence import BacklogLook
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.explain.topic_list import policy_words
from tiering_assets.fleet.backlog import take_backlog
from tiering_assets.fleet.ledgers import list_ledgers
from tiering_assets.fleet.topics import list_all_topics
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy, TieringMode
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.pauses import pause
from tiering_assets.look.brakes.scopes import EVERYTHING, Scope
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name
from tiering_assets.resources.settings import CatalogueSettings

NAMES = tuple(f"t/ns{place}/persistent/orders-{n}" for place in range(3) for n in range(3))
ODD = "t/ns0/persistent/a%2Fb"  # Pulsar's admin API knows no such name
SIZES = (None, -1, 0, 30, 10**9)
AGES = (None, -1, 2, 7000, 1_030_000, 2**63 - 1)  # clocks are 50 s apart


class Topics:
    """Topics with sealed ledgers that nobody has touched."""

    def __init__(self, seed, folder):
        self.scene = Scene(seed)
        self.chance = random.Random(seed)
        for name in (*NAMES, ODD):
            self.scene.broker.create_topic(name)
        for place in ("", 0, 1, 2):
            self.scene.cluster.metadata.put(f"/admin/policies/t/ns{place}", b"{}")
        settings = replace(self.scene.stack.settings, catalogue=CatalogueSettings(root=str(folder)))
        self.stack = replace(self.scene.process("asker"), settings=settings)

    def fill(self):
        for name in (*NAMES, ODD):
            for _ in range(self.chance.randrange(3)):
                self.scene.fill(name)
                self.scene.wait(self.chance.choice((100, 5000, 10**5)))

    def policy(self):
        def one(**more):
            size, age = self.chance.choice(SIZES), self.chance.choice(AGES)
            return OwnPolicy(threshold_bytes=size, threshold_seconds=age, **more)

        own = OwnPolicies(
            default=one(),
            namespaces={"t/ns1": one(mode=self.chance.choice((None, TieringMode.PAUSED)))},
            topics={str(parse_managed_ledger_name(NAMES[4])): one()},
        )
        rules = replace(
            self.stack.settings.policy,
            zero_length_ledgers=self.chance.random() < 0.8,
            unloaded_topics=self.chance.random() < 0.9,
        )
        settings = replace(self.stack.settings, policy=rules)
        self.stack = replace(self.stack, own_policies=own, settings=settings)

    def catch_up(self):
        self.scene.stack.book.close_page()
        prove(self.stack, Catalogue.of(self.stack))
        scan(self.stack, Catalogue.of(self.stack))


def counted(found):
    of = {
        name: [(r.reason, r.ledgers, r.bytes) for r in one.reasons]
        for name, one in found.figures.topics.items()
    }
    return of, found.steps


@pytest.mark.parametrize("seed", range(12))
def test_any_policies_say_the_same_in_columns(seed, tmp_path):
    topics = Topics(seed, tmp_path)
    topics.fill()
    topics.policy()
    scope = topics.chance.choice((None, Scope("topic", NAMES[0]), Scope("namespace", "t/ns2")))
    if scope is not None:
        pause(topics.scene.stack, scope, TieringMode.PAUSED, reason="repair", author="kim")
    topics.catch_up()
    by_rows, by_reading = take_backlog(topics.stack), take_backlog(topics.stack, fresh=READ)
    assert by_rows.source is not None
    assert counted(by_rows) == counted(by_reading)


def test_of_topics_that_wait_none_is_looked_at(tmp_path, monkeypatch):
    topics = Topics(1, tmp_path)
    topics.fill()
    topics.catch_up()
    own = OwnPolicies(default=OwnPolicy(threshold_bytes=10**9))
    topics.stack = replace(topics.stack, own_policies=own)
    looked = Counter[str]()
    really = BacklogLook.explain

    def explain(self, topic):
        looked[topic.ml_name] += 1
        yield from really(self, topic)

    monkeypatch.setattr(BacklogLook, "explain", explain)
    before = take_backlog(topics.stack).figures.total
    assert {row.reason for row in before.reasons} == {
        BacklogReason.OPEN,
        BacklogReason.BELOW_THRESHOLD,
        BacklogReason.NOT_ADMITTED,  # of the odd one
    }
    assert set(looked) <= {ODD}  # what its policy is, a broker would have to say
    looked.clear()
    sealed = [v for v in list_ledgers(topics.stack).views if v.state is LedgerState.SEALED]
    topics.scene.cluster.delete_ledger(sealed[0].ledger_id)
    lost = take_backlog(topics.stack).figures.total
    assert sealed[0].ml_name in looked
    assert BacklogReason.UNSAFE in {row.reason for row in lost.reasons}


def test_a_word_on_a_topic_is_not_taken_for_its_neighbours(tmp_path):
    topics = Topics(1, tmp_path)
    own = OwnPolicies(
        default=OwnPolicy(threshold_bytes=0),
        topics={str(parse_managed_ledger_name(NAMES[4])): OwnPolicy(threshold_bytes=-1)},
    )
    stack = replace(topics.stack, own_policies=own)
    pause(stack, Scope("topic", NAMES[8]), TieringMode.PAUSED, reason="repair", author="kim")
    named = {name: str(parse_managed_ledger_name(name)) for name in (*NAMES, ODD)}
    for order in (NAMES, NAMES[::-1]):
        with policy_words(stack) as word_of:
            said = {name: word_of(named[name]) for name in (*order, ODD)}
        assert said.pop(ODD) == "unknown"
        assert said.pop(NAMES[4]) == "no"
        assert said.pop(NAMES[8]) == "switched off"
        assert set(said.values()) == {"yes"}
    pause(stack, EVERYTHING, TieringMode.DISABLED, reason="repair", author="kim")
    with policy_words(stack) as word_of:
        assert {word_of(named[name]) for name in NAMES} == {"switched off"}


def test_a_list_stops_where_it_is_told_to_and_says_so(tmp_path):
    topics = Topics(2, tmp_path)
    topics.fill()
    topics.catch_up()
    ways: tuple[dict[str, Any], ...] = ({}, {"fresh": READ})
    for how in ways:
        whole = list_all_topics(topics.stack, **how)
        some = list_all_topics(topics.stack, most=4, **how)
        assert (some.cut, whole.cut) == (True, False)
        assert some.topics == whole.topics[:4]
        assert not list_all_topics(topics.stack, most=len(whole.topics), **how).cut
        views = list_ledgers(topics.stack, **how).views
        for most in range(1, len(views) + 1):
            listed = list_ledgers(topics.stack, most=most, **how)
            assert listed.views == views[:most]
            assert listed.cut == (most < len(views))


def test_a_hold_on_a_topic_does_not_make_a_list_short(tmp_path):
    """Its published ledgers are held: rows alone do not say so."""
    topics = Topics(3, tmp_path)
    for name in NAMES[:3]:
        topics.scene.fill(name)
    for one in list_ledgers(topics.stack, fresh=READ).views:
        if one.state is LedgerState.SEALED:
            topics.scene.offload(one.ledger_id)
    topics.scene.wait(timedelta(minutes=1).total_seconds())
    topics.catch_up()
    hold(topics.scene.stack, Scope("topic", NAMES[0]), reason="audit", author="kim")
    published = frozenset({LedgerState.PUBLISHED})
    by_rows = list_ledgers(topics.stack, states=published, most=1)
    by_reading = list_ledgers(topics.stack, states=published, most=1, fresh=READ)
    assert (by_rows.views, by_rows.cut) == (by_reading.views, by_reading.cut)
    assert by_rows.views
    assert by_rows.cut
