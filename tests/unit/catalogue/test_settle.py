"""The newest rows go into their settled table, once, whoever dies, sleeps or is faster; what is
asked has the same answer at any time.
"""

from datetime import timedelta

import deltalake
import pyarrow as pa
import pytest

from tests.unit.catalogue.desk import asked
from tests.unit.records.examples import AT
from tiering_assets.catalogue import settled
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.upkeep import settle as settling
from tiering_assets.catalogue.upkeep import spans
from tiering_assets.catalogue.upkeep.settle import Absorbed, cut, settle
from tiering_assets.catalogue.upkeep.settlements import Settlements
from tiering_assets.catalogue.view import answer
from tiering_assets.resources import table_upkeep
from tiering_assets.resources.errors import CatalogueError

DAY = timedelta(days=1)
NEWEST = "select * from ledgers order by ledger_id"


def seen(desk, *ledger_ids, hours=0):
    """A run that looks at ledgers, and is posted by the fixture's catalogue."""
    for ledger_id in ledger_ids:
        desk.scrub(ledger_id, scrubbed_at=AT + timedelta(hours=hours))
    desk.book.close_page()


def settled_rows(catalogue):
    table = catalogue.opened().settled["ledgers"]
    from tiering_assets.resources.tables import ask

    return ask("select * from t order by ledger_id", {"t": table}).to_pylist()


def absorb(catalogue, *, at=AT, tail_max=0):
    return settle(catalogue, "ledgers", at=at, tail_max=tail_max)


@pytest.fixture
def posted(desk, catalogue):
    """Four ledgers, one of them changed twice, in three turns."""
    seen(desk, 5, 7, 9)
    post(desk.stack, catalogue)
    seen(desk, 7, hours=1)
    post(desk.stack, catalogue)
    seen(desk, 7, 11, hours=2)
    post(desk.stack, catalogue)
    return catalogue


def test_the_newest_rows_are_absorbed_and_answers_stay_the_same(posted):
    before = asked(posted, NEWEST)
    assert absorb(posted) == Absorbed(tail=6, rows=4, spans=1, turn=3)
    assert settled_rows(posted) == before == asked(posted, NEWEST)
    assert posted.opened().settled["ledgers"].marked(settled.ABSORBED) == 3


def test_with_nothing_new_nothing_is_done(posted):
    absorb(posted)
    version = posted.opened().settled["ledgers"].version
    assert absorb(posted) == Absorbed(tail=0, rows=0, spans=0, turn=3)
    assert posted.opened().settled["ledgers"].version == version


def test_a_tail_that_was_absorbed_whole_is_not_asked(desk, posted):
    absorb(posted)
    assert "ledger_changes" not in posted.opened().view("ledgers")
    seen(desk, 5, hours=3)
    post(desk.stack, posted)
    assert "ledger_changes" in posted.opened().view("ledgers")


def test_no_table_is_opened_that_no_answer_needs(posted):
    absorb(posted)
    tables = posted.opened()
    assert len(answer(tables, NEWEST)) == 4
    opened = {name for name, table in tables.registered.items() if table.is_open}
    assert opened == {"settled_ledgers"}


def test_rows_are_counted_by_what_commits_say_of_files(posted):
    def counted():
        tables = posted.opened()
        return [tables.rows_at_most("ledgers", since) for since in (0, 9, 10, 12)]

    assert counted() == [6, 5, 2, 0]
    absorb(posted)
    assert counted() == [4, 4, 4, 0]


@pytest.mark.parametrize(("tail_max", "rows"), [(6, 0), (5, 4)])
def test_a_small_tail_is_left(posted, tail_max, rows):
    assert absorb(posted, tail_max=tail_max).rows == rows


def test_before_the_first_page_there_is_nothing_to_settle(catalogue):
    assert absorb(catalogue, tail_max=-1) == Absorbed(tail=0, rows=0, spans=0, turn=0)


def test_what_changes_afterwards_is_the_newest(desk, posted):
    absorb(posted)
    seen(desk, 5, 13, hours=3)
    post(desk.stack, posted)
    rows = {row["ledger_id"]: row for row in asked(posted, NEWEST)}
    assert [*rows] == [5, 7, 9, 11, 13]
    assert rows[5]["verified_at"] == AT + timedelta(hours=3)
    assert absorb(posted) == Absorbed(tail=2, rows=5, spans=1, turn=4)
    assert settled_rows(posted) == [*rows.values()]


def test_a_ledger_that_was_settled_keeps_its_facts_when_it_changes(desk, catalogue):
    desk.chain(42)
    desk.book.close_page()
    post(desk.stack, catalogue)
    absorb(catalogue)
    cut(catalogue, "ledgers", now=AT + 2 * DAY)
    assert asked(catalogue, "select * from ledger_changes") == []
    desk.scrub(42)
    desk.book.close_page()
    post(desk.stack, catalogue)
    [row] = asked(catalogue, NEWEST)
    assert (row["state"], row["attempts"]) == ("released", 2)


# ----- who dies, sleeps, or is faster


class DiesError(Exception):
    """A settler dies."""


@pytest.fixture
def narrow(monkeypatch):
    """Two rows a span, so that a settlement is of several commits."""
    really = spans.spans_to_write

    def few(files, changed):
        return really(files, changed, rows_max=2, bytes_max=1)

    monkeypatch.setattr(settling, "spans_to_write", few)


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("commit", [0, 1])
def test_a_settler_that_dies_between_spans_changes_no_answer(
    posted, narrow, monkeypatch, commit, behind
):
    before = asked(posted, NEWEST)
    really, made = table_upkeep.replace_where, list[bool]()

    def write(*given, **how):
        if len(made) == commit and not behind:
            raise DiesError
        made.append(really(*given, **how))
        if len(made) == commit + 1:
            raise DiesError
        return made[-1]

    with monkeypatch.context() as patch:
        patch.setattr(settling, "replace_where", write)
        with pytest.raises(DiesError):
            absorb(posted)
    assert asked(posted, NEWEST) == before
    done = absorb(posted)
    assert done.rows == 4 - 2 * (commit + behind)
    assert settled_rows(posted) == before == asked(posted, NEWEST)


def test_one_that_died_before_its_last_mark_only_sets_the_mark(posted, monkeypatch):
    """As after a change that an earlier settlement had written already."""
    with monkeypatch.context() as patch:
        really = table_upkeep.replace_where
        patch.setattr(
            settling, "replace_where", lambda *given, **how: really(*given, **{**how, "marks": {}})
        )
        absorb(posted)
    assert posted.opened().settled["ledgers"].marked(settled.ABSORBED) == 0
    assert absorb(posted) == Absorbed(tail=6, rows=0, spans=1, turn=3)
    assert settled_rows(posted) == asked(posted, NEWEST)
    assert len(settled_rows(posted)) == 4


def test_of_two_settlers_one_is_faster_and_the_other_sees_it(posted, monkeypatch):
    really, first = settling._rows, [True]

    def rows(*given):
        made = really(*given)
        if first:
            first.clear()
            assert absorb(posted).rows == 4
        return made

    monkeypatch.setattr(settling, "_rows", rows)
    assert absorb(posted) == Absorbed(tail=0, rows=0, spans=0, turn=3)
    assert settled_rows(posted) == asked(posted, NEWEST)


def test_pages_that_are_posted_meanwhile_are_in_the_tail(desk, posted, monkeypatch):
    really, first = settling._rows, [True]

    def rows(*given):
        made = really(*given)
        if first:
            first.clear()
            seen(desk, 5, 99, hours=9)
            post(desk.stack, posted)
        return made

    monkeypatch.setattr(settling, "_rows", rows)
    assert absorb(posted).turn == 3
    assert [row["ledger_id"] for row in asked(posted, NEWEST)] == [5, 7, 9, 11, 99]
    assert absorb(posted) == Absorbed(tail=2, rows=5, spans=1, turn=4)


def lose_an_answer(monkeypatch):
    """The first commit is made, and its answer does not come."""
    really, lost = deltalake.write_deltalake, list[bool]()

    def write(*given, **how):
        really(*given, **how)
        if not lost:
            lost.append(True)
            raise OSError("connection reset")

    monkeypatch.setattr(deltalake, "write_deltalake", write)


def test_a_lost_answer_is_looked_up(posted, monkeypatch):
    lose_an_answer(monkeypatch)
    assert absorb(posted) == Absorbed(tail=0, rows=0, spans=0, turn=3)
    assert settled_rows(posted) == asked(posted, NEWEST)


def test_a_commit_that_cannot_be_made_is_an_error_of_one_line(posted, monkeypatch):
    def fail(*_given, **_how):
        raise OSError("no space\nleft")

    monkeypatch.setattr(deltalake, "write_deltalake", fail)
    with pytest.raises(CatalogueError, match="rows could not be settled: no space left; nothing"):
        absorb(posted)


def test_where_others_are_always_faster_it_says_so(posted, monkeypatch):
    monkeypatch.setattr(settling, "replace_where", lambda *_given, **_how: False)
    with pytest.raises(CatalogueError, match="other posters were faster 20 times"):
        absorb(posted)
    absorb_really(posted, monkeypatch)
    monkeypatch.setattr(settling, "cut_where", lambda *_given, **_how: False)
    with pytest.raises(CatalogueError, match="other posters were faster 20 times"):
        cut(posted, "ledgers", now=AT + 2 * DAY)


def absorb_really(catalogue, monkeypatch):
    monkeypatch.undo()
    absorb(catalogue)


# ----- order of files


def test_files_are_in_ledger_order_and_a_change_writes_one_of_them_again(desk, catalogue, narrow):
    seen(desk, *range(10, 20))
    post(desk.stack, catalogue)
    absorb(catalogue)
    before = catalogue.opened().settled["ledgers"].files("ledger_id")
    assert [(one.first, one.last, one.rows) for one in before] == [
        (n, n + 1, 2) for n in range(10, 20, 2)
    ]
    seen(desk, 15, hours=1)
    post(desk.stack, catalogue)
    assert absorb(catalogue) == Absorbed(tail=1, rows=2, spans=1, turn=2)
    after = catalogue.opened().settled["ledgers"].files("ledger_id")
    assert [(one.first, one.last) for one in after] == [(one.first, one.last) for one in before]
    assert settled_rows(catalogue) == asked(catalogue, NEWEST)


def test_rows_of_a_file_are_in_ledger_order(posted):
    absorb(posted)
    place = posted.place.root + "/ledgers"
    read = deltalake.DeltaTable(place).to_pyarrow_table()
    assert read["ledger_id"].to_pylist() == [5, 7, 9, 11]
    assert read.schema.names == TABLES["ledger_changes"].names


# ----- the tail is cut a day later


def test_the_tail_goes_a_day_after_it_was_absorbed(posted):
    absorb(posted)
    before = asked(posted, NEWEST)
    assert cut(posted, "ledgers", now=AT + DAY) == 0
    assert len(asked(posted, "select * from ledger_changes")) == 6
    assert cut(posted, "ledgers", now=AT + DAY + timedelta(seconds=1)) == 3
    assert asked(posted, "select * from ledger_changes") == []
    assert asked(posted, NEWEST) == before
    assert cut(posted, "ledgers", now=AT + 2 * DAY) == 0


def test_only_what_was_absorbed_a_day_ago_goes(desk, posted):
    absorb(posted)
    seen(desk, 5, hours=3)
    post(desk.stack, posted)
    absorb(posted, at=AT + DAY)
    seen(desk, 9, hours=4)
    post(desk.stack, posted)
    before = asked(posted, NEWEST)
    assert cut(posted, "ledgers", now=AT + DAY * 1.5) == 3
    assert [row["turn"] for row in asked(posted, "select turn from ledger_changes order by 1")] == [
        4,
        5,
    ]
    assert asked(posted, NEWEST) == before


def test_a_cut_tells_the_newest_page_as_before(posted):
    as_of = posted.as_of(posted.opened()["ledger_changes"])
    absorb(posted)
    cut(posted, "ledgers", now=AT + 2 * DAY)
    assert posted.as_of(posted.opened()["ledger_changes"]) == as_of
    assert as_of.written_at is not None


def test_a_posting_beside_a_cut_is_made(desk, posted):
    """Its commit fails once, as files that it saw went; it looks again."""
    absorb(posted)
    seen(desk, 5, hours=3)
    stale = posted.opened()
    cut(posted, "ledgers", now=AT + 2 * DAY)
    changes = stale["ledger_changes"]
    rows = pa.Table.from_pylist([], schema=TABLES["ledger_changes"])
    made = changes.append(rows, mark=changes.mark + 1, told={})
    assert made is (posted.opened()["ledger_changes"].mark > changes.mark)
    post(desk.stack, posted)
    assert [row["ledger_id"] for row in asked(posted, NEWEST)] == [5, 7, 9, 11]


def test_a_cut_beside_a_posting_loses_no_row_of_it(desk, posted, monkeypatch):
    absorb(posted)
    seen(desk, 5, 21, hours=3)
    really, first = table_upkeep.cut_where, [True]

    def slow(*given, **how):
        if first:
            first.clear()
            post(desk.stack, posted)
        return really(*given, **how)

    monkeypatch.setattr(settling, "cut_where", slow)
    assert cut(posted, "ledgers", now=AT + 2 * DAY) == 3
    assert [row["ledger_id"] for row in asked(posted, "select * from ledger_changes")] == [5, 21]
    assert [row["ledger_id"] for row in asked(posted, NEWEST)] == [5, 7, 9, 11, 21]


def test_of_two_that_cut_one_does(posted, monkeypatch):
    absorb(posted)
    really, first = table_upkeep.cut_where, [True]

    def slow(*given, **how):
        if first:
            first.clear()
            assert cut(posted, "ledgers", now=AT + 2 * DAY) == 3
        return really(*given, **how)

    monkeypatch.setattr(settling, "cut_where", slow)
    assert cut(posted, "ledgers", now=AT + 2 * DAY) == 0


def test_a_reader_of_before_finishes_and_one_between_opens_again(posted, monkeypatch):
    """Its settled table is of before the settlement, its tail of behind the cut."""
    reader = posted.opened()
    before = asked(posted, NEWEST)
    from tiering_assets.catalogue import view
    from tiering_assets.resources.kept_tables import KEPT

    really, first = KEPT.open, [True]

    def slow(place, name, schema):
        if first and name == "ledger_changes":
            first.clear()
            absorb(posted)
            cut(posted, "ledgers", now=AT + 2 * DAY)
        return really(place, name, schema)

    monkeypatch.setattr(KEPT, "open", slow)
    assert asked(posted, NEWEST) == before
    assert not first
    assert view.answer(reader, NEWEST).to_pylist() == before


def test_a_cut_tail_without_its_settled_table_is_an_error_that_says_what_to_do(posted):
    absorb(posted)
    cut(posted, "ledgers", now=AT + 2 * DAY)
    from shutil import rmtree

    rmtree(posted.place.root + "/ledgers")
    with pytest.raises(CatalogueError, match=r"rows were settled that are not there.*rebuild"):
        posted.opened()


def test_settlements_keep_one_that_is_over_a_day_old_and_all_others():
    found = Settlements()
    for hours in range(0, 60, 10):
        found = found.having(hours + 1, at=AT + timedelta(hours=hours))
    assert [turn for _at, turn in found.all] == [21, 31, 41, 51]
    assert Settlements.told_by(found.told()) == found
    assert found.may_go(AT + timedelta(hours=50)) == 21
    assert found.may_go(AT + timedelta(hours=54, seconds=1)) == 31
    assert found.may_go(AT) == 0
    assert Settlements().may_go(AT) == 0
    assert Settlements.told_by({}) == Settlements()
