"""What rows nominate for a scrub, and how each is judged: as a listing of everything would have."""

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from tests.support.copies import BROKERS, OURS, Copy
from tests.support.scrubs_compared import compared, nominated_of, surely_nominated
from tests.support.sim_scene import TOPIC
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.scans_told import ScansTold
from tiering_assets.catalogue.view import Catalogue, carried, rows_of
from tiering_assets.defs.nominated_copies import nominate_copies, post_again
from tiering_assets.resources.settings import CatalogueSettings
from tiering_assets.scrub.fleet import find_fleet, find_nominated
from tiering_assets.scrub.scrub import scrub

SEEDS = 12
_DAY = 24 * 3600.0


@pytest.fixture(scope="module")
def fleets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleets")
    return [compared(seed, folder / str(seed)) for seed in range(SEEDS)]


def test_rows_choose_what_a_listing_chooses(fleets):
    problems = [(seed, *one.problems) for seed, one in enumerate(fleets) if one.problems]
    assert problems == []


@pytest.mark.parametrize("what", ["shallow", "deep", "deferred", "failing", "replaced", "heal"])
def test_the_fleets_had_all_there_is_to_choose(fleets, what):
    assert sum(one.told[what] for one in fleets) > 0


def test_what_rows_do_not_tell_apart_is_little_of_all(fleets):
    looks = sum(one.told["shallow"] + one.told["deep"] for one in fleets)
    assert sum(one.told["as old"] + one.told["due now"] for one in fleets) < looks / 4


# ----- one copy


@pytest.fixture(params=[OURS, BROKERS])
def copy(request):
    return Copy(request.param)


@pytest.fixture
def asker(copy, tmp_path):
    """Who asks the catalogue, which is proven. Its tables lie in a folder."""
    return asking(copy, tmp_path)


def asking(copy, folder):
    copy.scene.stack.book.close_page()
    stack = copy.scene.process("asker")
    tables = CatalogueSettings(root=str(folder / "tables"))
    stack = replace(stack, settings=replace(stack.settings, catalogue=tables))
    prove(stack, Catalogue.of(stack))
    scan(stack, Catalogue.of(stack))
    return stack


def catch_up(stack):
    while post(stack, Catalogue.of(stack)).pages:
        pass
    scan(stack, Catalogue.of(stack))


def named(stack, **how):
    return {name: {*some} for name, some in surely_nominated(stack, **how).ledgers.items()}


def run(copy, stack, nominated, **how):
    """As a run does it: with pages, which are posted."""
    process = copy.scene.process("scrub")
    done = scrub(process, nominated=nominated, **how)
    process.book.close_page()
    catch_up(stack)
    return done


def test_one_that_is_due_is_looked_at_and_not_nominated_again(copy, asker):
    copy.scene.wait(2 * _DAY)
    scan(asker, Catalogue.of(asker))
    assert named(asker) == {TOPIC: {copy.ledger_id}}
    [looked] = run(copy, asker, named(asker)).looked[:1]
    assert looked.findings == ()
    assert named(asker) == {}
    assert surely_nominated(asker).figures.due == 0


def test_a_deep_look_is_remembered_behind_a_later_shallow_one(copy, asker):
    copy.scene.wait(31 * _DAY)
    run(copy, asker, named_late(asker))
    copy.scene.wait(2 * _DAY)
    scan(asker, Catalogue.of(asker))
    done = run(copy, asker, named(asker))
    assert [one.depth.value for one in done.looked] == ["shallow"]
    [row] = rows_of(Catalogue.of(asker).opened(), [copy.ledger_id])
    assert row["verified_depth"] == "shallow"
    assert row["deep_at"] < row["verified_at"] - timedelta(days=1)
    assert row["deep_at"] == find_fleet(asker).candidates[0].deep_at


def named_late(stack):
    scan(stack, Catalogue.of(stack))
    return named(stack)


def test_what_is_judged_by_itself_is_what_a_listing_says(copy, asker):
    listed = find_fleet(asker)
    alone = find_nominated(asker, {TOPIC: {copy.ledger_id}})
    assert alone.candidates == listed.candidates
    assert alone.replaced == listed.replaced


def test_one_whose_object_is_gone_is_of_no_size_either_way(copy, asker):
    copy.lose(copy.data_key)
    [alone] = find_nominated(asker, {TOPIC: {copy.ledger_id}}).candidates
    assert (alone.object_bytes, alone) == (0, copy.candidate)


@pytest.mark.parametrize("nominated", [{TOPIC: {99}}, {"t/ns/persistent/nobody": {0}}, {}], ids=str)
def test_what_no_topic_lists_is_no_copy(copy, asker, nominated):
    assert find_nominated(asker, nominated).candidates == ()


def test_one_that_is_broken_is_nominated_until_it_was_read_well(copy, asker):
    copy.flip()
    copy.scene.wait(31 * _DAY)
    run(copy, asker, named_late(asker), heal=False)
    assert named(asker) == {TOPIC: {copy.ledger_id}}
    assert surely_nominated(asker).figures.broken == 1
    done = run(copy, asker, named(asker), heal=False)
    assert (done.looked, done.needless) == ([], frozenset())  # it is no wrong nomination
    copy.scene.wait(2)
    done = run(copy, asker, named(asker))
    assert [*done.healed] == [copy.ledger_id]


# ----- rows that are wrong


def plant(stack, ledger_id, **lie):
    """A row that says something else of a ledger."""
    tables = Catalogue.of(stack).opened()
    [row] = rows_of(tables, [ledger_id])
    table = tables["ledger_changes"]
    lying = {**row, **lie, "turn": table.turn + 1}
    made = pa.Table.from_pylist([lying], schema=TABLES["ledger_changes"])
    assert table.append(made, told=carried(table))


NEVER = {"certified_at": None, "verified_at": None, "verified_depth": None, "deep_at": None}


def test_a_row_that_was_wrong_is_counted_and_posted_again(copy, asker):
    copy.scene.wait(31 * _DAY)
    run(copy, asker, named_late(asker))
    plant(asker, copy.ledger_id, **NEVER)
    chosen = surely_nominated(asker)
    done = run(copy, asker, chosen.ledgers)
    assert (done.looked, done.needless) == ([], frozenset({copy.ledger_id}))
    post_again(asker, chosen, done.needless)
    catch_up(asker)
    assert ScansTold.by(Catalogue.of(asker).opened()["topic_changes"]).wrong == 1
    assert named(asker) == {}


@pytest.mark.parametrize("offloaded_by", ["tierkeeper", "broker"])
def test_nobody_looks_at_what_has_no_copy_whatever_rows_say(offloaded_by, tmp_path):
    copy = Copy()
    other = copy.scene.fill(TOPIC)
    asker = asking(copy, tmp_path)
    plant(asker, other, offloaded_by=offloaded_by, quarantined_at=asker.now())
    assert named(asker) == {TOPIC: {other}}
    done = run(copy, asker, named(asker))
    assert (done.looked, done.healed, done.needless) == ([], {}, frozenset({other}))


@pytest.mark.parametrize(("lies", "listed"), [(1, False), (2, True)])
def test_rows_that_are_mostly_wrong_choose_nothing(tmp_path, lies, listed):
    """As of copies in another bucket, of which no row knows that: all are listed then."""
    copy = Copy()
    others = [copy.scene.fill(TOPIC) for _ in range(lies)]
    copy.scene.wait(2 * _DAY)
    asker = asking(copy, tmp_path)
    for other in others:
        plant(asker, other, offloaded_by="broker")
    done = run(copy, asker, named(asker))
    assert (done.listed, done.needless) == (listed, frozenset(others))
    assert [one.candidate.ledger_id for one in done.looked] == [copy.ledger_id]


def test_who_goes_by_rows_lists_no_copies(copy, asker, monkeypatch):
    monkeypatch.setattr("tiering_assets.scrub.scrub.find_fleet", pytest.fail)
    copy.scene.wait(2 * _DAY)
    done = run(copy, asker, named_late(asker))
    assert {one.candidate.ledger_id for one in done.looked} == {copy.ledger_id}


def test_nothing_was_wrong_and_nothing_is_written(copy, asker):
    before = [*asker.book.every_key()]
    post_again(asker, surely_nominated(asker), frozenset())
    assert [*asker.book.every_key()] == before


def test_rows_that_cannot_be_made_anew_are_told_and_stop_nothing(copy, asker, monkeypatch):
    copy.scene.wait(2 * _DAY)
    scan(asker, Catalogue.of(asker))
    said: list[str] = []
    telling = replace(asker, narrate=said.append)
    chosen = surely_nominated(asker)
    down = replace(
        telling, settings=replace(asker.settings, catalogue=CatalogueSettings(root="/dev/null/x"))
    )
    post_again(down, chosen, frozenset({copy.ledger_id}))
    assert "as they were" in said[-1]


# ----- when everything is listed


def test_a_small_fleet_is_listed_as_that_takes_less_time(copy, asker):
    copy.scene.wait(2 * _DAY)
    scan(asker, Catalogue.of(asker))
    assert nominate_copies(asker, deep=False) is None
    assert nominated_of(asker) is not None


def test_tables_that_nobody_proved_nominate_nothing(copy, tmp_path):
    stack = copy.scene.process("asker")
    tables = CatalogueSettings(root=str(tmp_path / "none"))
    stack = replace(stack, settings=replace(stack.settings, catalogue=tables))
    assert nominated_of(stack) is None


def test_tables_that_cannot_be_read_are_told_of_and_everything_is_listed(copy, asker, tmp_path):
    said: list[str] = []
    for one in (tmp_path / "tables").rglob("*.parquet"):
        one.write_bytes(b"rot")
    assert nominated_of(replace(asker, narrate=said.append)) is None
    assert "all copies are listed" in said[-1]
