"""A fleet asked by the catalogue's rows, and by reading everything: the same answers."""

import random
import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from tests.support.fleet_compared import OF_LEDGERS, READ, Fleet, compared, differences
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.status import require_fresh
from tiering_assets.catalogue.view import Catalogue, answer, carried
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.fleet.backlog import take_backlog
from tiering_assets.fleet.beside import in_bookkeeper
from tiering_assets.fleet.ledgers import list_ledgers
from tiering_assets.fleet.source import said_of, tables_to_ask
from tiering_assets.fleet.topics import list_all_topics
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.kept_tables import KEPT
from tiering_assets.resources.settings import CatalogueSettings

SEEDS = 8


@pytest.fixture(scope="module")
def fleets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleets")
    return [compared(seed, folder / str(seed)) for seed in range(SEEDS)]


def test_what_rows_say_is_what_reading_everything_says(fleets):
    assert [problem for fleet in fleets for problem in fleet.problems] == []


def test_the_fleets_had_ledgers_of_every_kind(fleets):
    states: Counter[str] = sum((fleet.states for fleet in fleets), Counter())
    assert {state.value for state in LedgerState} - set(states) <= {
        LedgerState.EXPIRED.value,
        LedgerState.RELEASING.value,  # in one of thirty; below by itself
    }
    reasons: Counter[str] = sum((fleet.reasons for fleet in fleets), Counter())
    assert len(reasons) >= 14, reasons
    assert len(OF_LEDGERS) > 8


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def stack(scene, tmp_path):
    settings = replace(scene.stack.settings, catalogue=CatalogueSettings(root=str(tmp_path)))
    return replace(scene.process("asker"), settings=settings)


def catch_up(stack):
    prove(stack, Catalogue.of(stack))
    scan(stack, Catalogue.of(stack))


def test_a_row_that_lies_makes_a_difference(scene, stack):
    """Else the comparison compares nothing."""
    scene.publish()
    catch_up(stack)
    assert [*differences(stack)] == []
    tables = Catalogue.of(stack).opened()
    [row] = answer(tables, "select * from ledgers where ledger_id = 0").to_pylist()
    table = tables["ledger_changes"]
    lie = {**row, "state": "released", "turn": table.turn + 1}
    made = pa.Table.from_pylist([lie], schema=TABLES["ledger_changes"])
    assert table.append(made, told=carried(table))
    assert [*differences(stack)] != []


def test_before_a_proof_and_behind_a_scan_everything_is_read(scene, stack):
    told: list[str] = []
    stack = replace(stack, narrate=told.append)
    assert tables_to_ask(stack) is None
    catch_up(stack)
    found = tables_to_ask(stack)
    assert found is not None
    assert "topics as of 2026-" in str(said_of(found))
    assert told == []
    scene.wait(2000)
    assert tables_to_ask(stack) is None
    assert "the catalogue last looked at topics 2026-" in told[-1]
    assert tables_to_ask(stack, fresh=timedelta(hours=1)) is not None
    assert tables_to_ask(stack, fresh=READ) is None
    off = CatalogueSettings(enabled=False)
    stack = replace(stack, settings=replace(stack.settings, catalogue=off))
    assert tables_to_ask(stack, fresh=timedelta(hours=1)) is None


def test_topics_that_somebody_names_are_read_unless_they_are_many(scene, stack):
    """What was sealed a minute ago has no row, and people ask for it by its topic's name."""
    catch_up(stack)
    before = take_backlog(stack).figures.total.ledgers
    scene.fill(TOPIC)
    assert take_backlog(stack).figures.total.ledgers == before
    for act in (take_backlog, list_ledgers, list_all_topics):
        assert act(stack, [TOPIC]).source is None
        assert (
            act(stack, [TOPIC, *(f"t/ns/persistent/n{n}" for n in range(100))]).source is not None
        )
    assert take_backlog(stack, [TOPIC]).figures.total.ledgers == before + 1
    assert len(list_ledgers(stack, [TOPIC]).views) == before + 1
    [topic] = list_all_topics(stack, [TOPIC]).topics
    assert topic.counts is not None
    assert topic.counts.every.ledgers == before + 1


def test_without_its_package_everything_is_read_and_the_package_is_named(scene, stack, monkeypatch):
    scene.publish()
    catch_up(stack)
    by_rows = take_backlog(stack).figures.total.ledgers
    KEPT.forget()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    told: list[str] = []
    stack = replace(stack, narrate=told.append)
    for act in (take_backlog, list_ledgers, list_all_topics):
        told.clear()
        found = act(stack)
        assert found.source is None
        assert told[0] == "package deltalake is not installed: topics and records are read instead"
        assert not [one for one in told[1:] if "deltalake" in one]
    assert take_backlog(stack).figures.total.ledgers == by_rows == 2
    told.clear()
    off = CatalogueSettings(enabled=False)
    assert tables_to_ask(replace(stack, settings=replace(stack.settings, catalogue=off))) is None
    assert told == []


@pytest.mark.parametrize("act", [take_backlog, list_ledgers, list_all_topics])
def test_who_reads_a_large_fleet_is_told_once_how_it_would_be_fast(scene, stack, monkeypatch, act):
    for _ in range(3):
        scene.fill(TOPIC)
    told: list[str] = []
    stack = replace(stack, narrate=told.append)
    monkeypatch.setattr("tiering_assets.fleet.source.SURVEYED_MAX", 1)
    act(stack)
    [line] = [one for one in told if "more than 1 ledgers" in one]
    assert line.startswith("the catalogue is not proven, so that more than 1 ledgers are read")
    assert "`tierkeeper catalogue prove`" in line
    told.clear()
    act(stack, fresh=READ)  # as somebody wanted it
    monkeypatch.setattr("tiering_assets.fleet.source.SURVEYED_MAX", 1000)
    act(stack)
    catch_up(stack)
    monkeypatch.setattr("tiering_assets.fleet.source.SURVEYED_MAX", 1)
    scene.wait(2000)
    act(stack)  # behind for a while, which is told already
    assert not [one for one in told if "more than" in one]


def test_a_catalogue_that_is_damaged_fails_by_name(stack, tmp_path):
    catch_up(stack)
    for one in tmp_path.rglob("*.parquet"):
        one.write_bytes(b"not any more")
    with pytest.raises(CatalogueError, match="cannot"):
        take_backlog(stack)


def test_a_list_says_that_there_are_more(scene, stack):
    for _ in range(3):
        scene.fill(TOPIC)
    catch_up(stack)
    for fresh in (READ, timedelta(hours=1)):
        every = list_ledgers(stack, fresh=fresh)
        some = list_ledgers(stack, most=2, fresh=fresh)
        assert (every.cut, some.cut) == (False, True)
        assert some.views == every.views[:2]
        assert not list_ledgers(stack, most=len(every.views), fresh=fresh).cut
        only = list_ledgers(stack, only={1, 2}, fresh=fresh)
        assert [one.ledger_id for one in only.views] == [1, 2]
        assert list_ledgers(stack, [], fresh=fresh).views == []


def test_a_ledger_that_bookkeeper_lost_is_found_however_many_there_are(scene, stack, monkeypatch):
    scene.fill(TOPIC)
    scene.cluster.delete_ledger(0)
    assert in_bookkeeper(stack, [0, 1]) == {1}
    monkeypatch.setattr("tiering_assets.fleet.beside.READS_MAX", 1)
    assert in_bookkeeper(stack, [0, 1]) == {1}
    catch_up(stack)
    found = take_backlog(stack).figures.total
    assert BacklogReason.UNSAFE in {row.reason for row in found.reasons}


def test_topics_that_are_left_alone_or_gone_are_not_listed(scene, stack):
    scene.make_shadow()
    scene.broker.create_topic("t/ns/persistent/more")
    catch_up(stack)
    scene.broker.delete_topic("t/ns/persistent/more")
    scan(stack, Catalogue.of(stack))
    found = list_all_topics(stack)
    assert found.source is not None
    assert [one.ml_name for one in found.topics] == [TOPIC]


def test_a_topic_whose_node_cannot_be_read_is_unknown(scene, stack):
    scene.cluster.metadata.put("/managed-ledgers/t/ns/persistent/torn", b"\xff\xff")
    catch_up(stack)
    [_, torn] = list_all_topics(stack).topics
    assert (torn.ml_name, torn.policy, torn.counts) == ("t/ns/persistent/torn", "unknown", None)
    assert torn.error


def test_a_release_that_was_left_half_done_is_unconfirmed(scene, stack):
    scene.publish()
    scene.past_the_lag()
    Fleet(scene, random.Random(1)).release_some(TOPIC)
    scene.wait(3700)
    catch_up(stack)
    assert [one.state for one in list_ledgers(stack, only={0}).views] == [LedgerState.RELEASING]
    assert [*differences(stack)] == []


def test_a_question_may_ask_for_rows_that_are_fresh(scene, stack):
    catalogue = Catalogue.of(stack)
    with pytest.raises(CatalogueError, match="never scanned"):
        require_fresh(stack, catalogue, catalogue.opened(), seconds=60)
    catch_up(stack)
    require_fresh(stack, catalogue, catalogue.opened(), seconds=60)
    scene.wait(120)
    with pytest.raises(CatalogueError, match="whole scan of topics is old: 1"):
        require_fresh(stack, catalogue, catalogue.opened(), seconds=60)
    require_fresh(stack, catalogue, catalogue.opened(), seconds=600)
    run = scene.process()
    offload_batch(run, [0])
    run.book.close_page()
    scene.wait(700)
    scan(stack, catalogue)
    with pytest.raises(CatalogueError, match="pages are behind: 8"):
        require_fresh(stack, catalogue, catalogue.opened(), seconds=600)


def test_what_was_never_posted_is_not_fresh(scene, stack):
    catalogue = Catalogue.of(stack)
    run = scene.process()
    offload_batch(run, [0])
    run.book.close_page()
    scan(stack, catalogue)
    with pytest.raises(CatalogueError, match="nothing is posted"):
        require_fresh(stack, catalogue, catalogue.opened(), seconds=10**9)
