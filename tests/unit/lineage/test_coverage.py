"""Columns leave out what is whole, and only that: of all else the rules say what they say alone."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.unit.lineage.fleets import SPOILED, drawn, facts_of, sound_blocks, sound_fleet
from tiering_assets.catalogue.columns import BLOCKS, TABLES
from tiering_assets.catalogue.pages import InWork, RunInWork
from tiering_assets.catalogue.view import AsOf, Catalogue
from tiering_assets.lineage import coverage
from tiering_assets.lineage.coverage import ReadLists, coverage_of
from tiering_assets.lineage.coverage_rules import judge_topic
from tiering_assets.records import keys
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.table_place import TablePlace

TOPICS = 100


def node_of(name, ledgers):
    message = ml_pb2.ManagedLedgerInfo()
    for one in ledgers:
        info = message.ledgerInfo.add(ledgerId=one.ledger_id)
        if not one.is_open:
            info.entries, info.size, info.timestamp = one.entries or 0, 10, 1
        if one.uid is not None:
            number = UUID(one.uid).int
            halves = (number >> 64, number & (1 << 64) - 1)
            signed = [half - (1 << 64) if half >> 63 else half for half in halves]
            info.offloadContext.uidMsb, info.offloadContext.uidLsb = signed
            info.offloadContext.complete = True
    stat = SimpleNamespace(mzxid=1)
    return name, SimpleNamespace(path=name, data=message.SerializeToString(), stat=stat)


def made_fleet(source, number):
    """(listed, blocks, known, certified, in work) of one topic; ids of others lie between its."""
    listed, blocks, known, certified, in_work = sound_fleet(source)

    def its(ledger_id):
        return ledger_id * TOPICS + number

    listed = [replace(one, ledger_id=its(one.ledger_id)) for one in listed]
    blocks = {(its(i), uid): some for (i, uid), some in blocks.items()}
    known, in_work = set(map(its, known)), set(map(its, in_work))
    certified = {(its(i), uid) for i, uid in certified}
    ours = [one for one in listed if (one.ledger_id, one.uid) in blocks]
    what = source.choice(["sound", "sound", "unlisted", *SPOILED])
    if what == "unlisted" and ours:
        listed.remove(source.choice(ours))
    elif what in SPOILED and ours:
        victim = source.choice(ours)
        attempt = victim.ledger_id, victim.uid
        spoiled, entries = what(source, *sound_blocks(source, blocks=5))
        blocks[attempt] = spoiled
        certified.add(attempt)
        listed[listed.index(victim)] = replace(victim, entries=entries)
    return listed, blocks, known, certified, in_work


@pytest.fixture(scope="module")
def fleet():
    source = drawn(7)
    return {f"t/n/persistent/{n:03d}": made_fleet(source, n) for n in range(TOPICS)}


@pytest.fixture(scope="module")
def tables(fleet, tmp_path_factory):
    root = tmp_path_factory.mktemp("fleet")
    rows, known_rows = [], []
    for name, (_listed, blocks, known, *_) in fleet.items():
        for (ledger_id, uid), some in blocks.items():
            its = {"topic": name, "ledger_id": ledger_id, "uid": uid}
            rows += [{**block._asdict(), **its} for block in some]
        known_rows += [{"topic": name, "ledger_id": one, "state": "released"} for one in known]
    random.Random(1).shuffle(rows)
    write_deltalake(f"{root}/blocks", pa.Table.from_pylist(rows, schema=BLOCKS))
    schema = TABLES["ledger_changes"]
    write_deltalake(f"{root}/ledgers", pa.Table.from_pylist(known_rows, schema=schema))
    return Catalogue(TablePlace(root=str(root), options={})).opened()


@pytest.fixture
def covered(fleet, tables):
    """Coverage of these topics of the fleet."""
    certificates = {keys.certificate(i, UUID(u)) for one in fleet.values() for i, u in one[3]}
    stack: Any = SimpleNamespace(
        in_parallel=lambda ask, some: [ask(one) for one in some],
        book=SimpleNamespace(exists=certificates.__contains__),
    )
    in_work = frozenset(ledger_id for one in fleet.values() for ledger_id in one[4])
    work = InWork({"run": RunInWork(since=datetime(2026, 3, 1, tzinfo=UTC), ledgers=in_work)})
    as_of = AsOf(page=1, written_at=None, in_work=work, proven_at=None)

    def these(names):
        nodes = [node_of(name, fleet[name][0]) for name in names]
        return [*coverage_of(stack, tables, as_of, nodes, ReadLists())]

    return these


def expected_of(name, parts):
    """What the rules say of all its blocks."""
    listed, blocks, *others = parts
    return judge_topic(name, listed, facts_of(blocks, *others, look_at_all=True))


@pytest.mark.parametrize(("ledgers", "topics"), [(40, 30), (250_000, 2_000)])
def test_all_is_as_the_rules_say_of_every_block(fleet, covered, monkeypatch, ledgers, topics):
    monkeypatch.setattr(coverage, "LEDGERS_AT_ONCE", ledgers)
    monkeypatch.setattr(coverage, "TOPICS_AT_ONCE", topics)
    assert covered(fleet) == [expected_of(*one) for one in fleet.items()]


def test_the_rules_look_where_they_find_something_or_wait_and_nowhere_else(
    fleet, covered, monkeypatch
):
    looked = []

    def judging(name, *args):
        looked.append(name)
        return judge_topic(name, *args)

    monkeypatch.setattr(coverage, "judge_topic", judging)
    covered(fleet)
    every = [expected_of(*one) for one in fleet.items()]
    assert looked == [one.topic for one in every if one.findings or one.by_brokers or one.in_work]
    assert {kind.kind for one in every for kind in one.findings} >= {
        *("gap", "overlap", "swap", "duplicate", "surplus", "uncovered", "unlisted")
    }
    assert 10 < len(looked) < TOPICS - 10


def test_one_topic_is_as_it_is_among_all(fleet, covered):
    for name in [*fleet][:5]:
        assert covered([name]) == [expected_of(name, fleet[name])]


def test_many_topics_are_not_named_in_the_question(fleet, covered, monkeypatch):
    before = covered(fleet)
    monkeypatch.setattr(coverage, "_NAMED_MAX", 0)
    assert covered(fleet) == before
    some = [*fleet][::3]
    assert covered(some) == [expected_of(name, fleet[name]) for name in some]


def test_topics_without_ledgers_and_no_topics_are_answered(covered, fleet, monkeypatch):
    assert covered([]) == []
    monkeypatch.setitem(fleet, "t/n/persistent/empty", ([], {}, set(), set(), set()))
    [found] = covered(["t/n/persistent/empty"])
    assert (found.first, found.last, found.findings, found.covered) == (None, None, (), 0)


def test_blocks_of_another_topic_cover_nothing(fleet, tables, covered, monkeypatch):
    name = next(name for name, parts in fleet.items() if expected_of(name, parts).covered)
    monkeypatch.setitem(fleet, "t/n/persistent/other", fleet[name])
    here, there = covered([name, "t/n/persistent/other"])
    assert here.covered == expected_of(name, fleet[name]).covered
    assert there.covered == 0
