"""Small files are joined and old ones deleted; whoever opened a version, or slept, is unharmed."""

import json
import os
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import deltalake
import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from tests.unit.catalogue.desk import asked
from tests.unit.catalogue.test_settle import NEWEST, seen
from tests.unit.records.examples import AT
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.settled import SETTLED
from tiering_assets.catalogue.upkeep import keep as keeping
from tiering_assets.catalogue.upkeep.keep import keep, many_small
from tiering_assets.catalogue.upkeep.settle import Absorbed, cut, settle
from tiering_assets.catalogue.upkeep.upkeep import keep_up
from tiering_assets.catalogue.view import least
from tiering_assets.ground.record_book import utc_now
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.table_files import FILE_BYTES
from tiering_assets.resources.table_upkeep import join_small

DAY_S = 86400


@pytest.fixture
def posted(desk, catalogue):
    for n in range(4):
        seen(desk, 5, 10 + n, hours=n)
        post(desk.stack, catalogue)
    return catalogue


def kept(catalogue, *, apart=timedelta()):
    now = utc_now()
    return keep(catalogue, store_now=now + apart, now=now)


def parquet(catalogue, name):
    return {path.name for path in Path(catalogue.place.root, name).glob("*.parquet")}


def aged(catalogue, days=8):
    """As if all that was done so far was done so many days ago: log, files and what they say."""
    past = time.time() - days * DAY_S
    for path in Path(catalogue.place.root).rglob("*"):
        if path.is_file():
            if path.suffix == ".json" and "_delta_log" in path.parts:
                path.write_text(_earlier(path.read_text(), days))
            os.utime(path, (past, past))


def _earlier(text, days):
    def line(row):
        for kind, name in (("remove", "deletionTimestamp"), ("commitInfo", "timestamp")):
            if kind in row:
                row[kind][name] -= days * DAY_S * 1000
        return json.dumps(row)

    return "\n".join(line(json.loads(one)) for one in text.splitlines())


def test_few_small_files_are_left(posted):
    assert kept(posted).joined == ()


@pytest.mark.parametrize(("files", "many"), [(50, False), (51, True)])
def test_many_are_more_than_fifty(files, many):
    assert many_small([1] * files) is many
    assert many_small([FILE_BYTES // 2] * 500) is False


def test_many_small_files_become_one_and_answers_stay(posted, monkeypatch):
    monkeypatch.setattr(keeping, "SMALL_MAX", 3)
    before, as_of = asked(posted, NEWEST), least(posted, posted.opened())
    assert kept(posted).joined == ("events", "ledger_changes")  # no block yet
    assert [len(table.sizes) for table in posted.opened().posted.values()] == [0, 1, 1]
    assert asked(posted, NEWEST) == before
    assert least(posted, posted.opened()) == as_of
    assert kept(posted).joined == ()


def test_posting_goes_on_behind_it_and_beside_it(desk, posted, monkeypatch):
    monkeypatch.setattr(keeping, "SMALL_MAX", 3)
    really, first = join_small, [True]

    def slow(table, **how):
        if first and table.name == "ledger_changes":
            first.clear()
            seen(desk, 77, hours=9)
            post(desk.stack, posted)
        return really(table, **how)

    monkeypatch.setattr(keeping, "join_small", slow)
    kept(posted)
    assert [row["ledger_id"] for row in asked(posted, NEWEST)] == [5, 10, 11, 12, 13, 77]
    as_of = least(posted, posted.opened())
    assert as_of.page == posted.opened()["ledger_changes"].mark
    assert as_of.written_at is not None


def test_files_go_7_days_after_they_were_replaced(posted, monkeypatch):
    monkeypatch.setattr(keeping, "SMALL_MAX", 3)
    assert kept(posted).deleted == 0
    before = parquet(posted, "events")
    assert len(before) == 5
    aged(posted, days=6)
    assert kept(posted).deleted == 0
    aged(posted, days=2)
    rows = asked(posted, NEWEST)
    assert kept(posted).deleted == 8
    assert len(parquet(posted, "events")) == 1
    assert asked(posted, NEWEST) == rows
    assert least(posted, posted.opened()).written_at is not None


def test_what_a_killed_writer_left_goes_and_what_one_writes_now_stays(posted):
    folder = Path(posted.place.root, "blocks")
    (folder / "part-killed.parquet").write_text("half")
    aged(posted)
    (folder / "part-writing.parquet").write_text("half")
    assert kept(posted).deleted == 1
    assert parquet(posted, "blocks") == {"part-writing.parquet"}


@pytest.mark.parametrize("apart", [-6, 6])
def test_where_clocks_differ_nothing_is_deleted(posted, apart):
    (Path(posted.place.root, "blocks") / "part-killed.parquet").write_text("half")
    aged(posted)
    assert kept(posted, apart=timedelta(minutes=apart)).deleted is None
    assert kept(posted, apart=timedelta(minutes=apart / 2)).deleted == 1


def test_a_reader_of_an_opened_version_finishes_across_all_of_it(desk, posted, monkeypatch):
    monkeypatch.setattr(keeping, "SMALL_MAX", 3)
    from tiering_assets.catalogue.view import answer

    reader, before = posted.opened(), asked(posted, NEWEST)
    settle(posted, "ledgers", at=AT, tail_max=0)
    cut(posted, "ledgers", now=AT + timedelta(days=2))
    seen(desk, 5, 99, hours=9)
    post(desk.stack, posted)
    kept(posted)
    assert answer(reader, NEWEST).to_pylist() == before


def forgetful(catalogue, name):
    """A log whose old commits were cleaned up, behind a checkpoint."""
    table = deltalake.DeltaTable(f"{catalogue.place.root}/{name}")
    table.create_checkpoint()
    aged(catalogue, days=40)
    table.cleanup_metadata()


def test_a_log_that_was_cleaned_up_still_tells_marks_and_the_newest_page(desk, posted):
    settle(posted, "ledgers", at=AT, tail_max=0)
    marks = {name: (table.mark, table.turn) for name, table in posted.opened().items()}
    before = least(posted, posted.opened())
    for name in (*marks, "ledgers"):
        forgetful(posted, name)
        assert len([*Path(posted.place.root, name, "_delta_log").glob("*.json")]) <= 1
    assert {name: (table.mark, table.turn) for name, table in posted.opened().items()} == marks
    assert least(posted, posted.opened()) == before
    seen(desk, 5, hours=11)
    post(desk.stack, posted)
    assert settle(posted, "ledgers", at=AT, tail_max=0).tail == 1


def behind_the_back(table, rows):
    """A commit of one that was about to write it when it fell asleep."""
    deltalake.write_deltalake(table.delta, rows, mode="append")


def through_the_front(table, rows):
    table.append(rows, mark=table.mark + 1, told={})


@pytest.mark.parametrize("write", [behind_the_back, through_the_front])
def test_a_poster_that_slept_until_its_log_was_cleaned_up_adds_nothing(desk, posted, write):
    """What it writes has a number that nobody reads any more; others posted its page long ago."""
    asleep = posted.opened().posted
    for n in range(3):
        seen(desk, 200 + n, hours=20)
        post(desk.stack, posted)
    for name in asleep:
        forgetful(posted, name)
    before = [asked(posted, f"select * from {name} order by page") for name in asleep]
    for table in asleep.values():
        rows = deltalake.DeltaTable(f"{posted.place.root}/{table.name}").to_pyarrow_table()[:1]
        with suppress(CatalogueError, DeltaError, CommitFailedError):
            write(table, rows)
    assert [asked(posted, f"select * from {name} order by page") for name in asleep] == before
    seen(desk, 300, hours=30)
    marks = {table.mark for table in posted.opened().posted.values()}
    post(desk.stack, posted)
    assert asked(posted, "select count(*) as n from ledgers where ledger_id = 300") == [{"n": 1}]
    assert min(table.mark for table in posted.opened().posted.values()) > max(marks)


# ----- all in one go


def all_of(desk, catalogue, **how):
    return keep_up(
        desk.stack,
        catalogue,
        tell=lambda _line: None,
        clock=lambda: desk.objects.now,
        **{"all_rows": False, **how},
    )


def test_of_a_small_tail_nothing_is_settled_unless_it_is_asked_for(desk, posted):
    done = all_of(desk, posted)
    assert done.settled["ledgers"] == Absorbed(tail=8, rows=0, spans=0, turn=0)
    assert (done.cut, done.joined, done.deleted) == ({}, (), 0)
    done = all_of(desk, posted, all_rows=True)
    assert done.settled["ledgers"] == Absorbed(tail=8, rows=5, spans=1, turn=4)
    assert done.cut == {}


def test_a_day_later_the_tail_goes(desk, posted):
    all_of(desk, posted, all_rows=True)
    desk.objects.advance(DAY_S + 60)
    before = asked(posted, NEWEST)
    assert all_of(desk, posted).cut == {"ledgers": 4}
    assert asked(posted, NEWEST) == before


def test_where_there_is_no_page_there_is_nothing_to_do(desk, catalogue):
    done = all_of(desk, catalogue, all_rows=True)
    assert done.settled == dict.fromkeys(SETTLED, Absorbed(tail=0, rows=0, spans=0, turn=0))
    assert (done.cut, done.joined, done.deleted) == ({}, (), 0)
