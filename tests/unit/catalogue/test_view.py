"""The catalogue as it is asked: where it lies, the newest rows, and what every answer tells."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from tests.unit.catalogue.desk import asked
from tests.unit.records.examples import AT
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.pages import InWork, RunInWork
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.settled import SETTLED
from tiering_assets.catalogue.view import AsOf, Catalogue, answer, rows_of
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.kept_tables import KEPT
from tiering_assets.resources.settings import CatalogueSettings
from tiering_assets.resources.sql import rows_among, sql_text


def test_an_answer_says_how_far_it_goes():
    work = InWork({"run-1": RunInWork(since=AT, ledgers=frozenset({5, 7}))})
    as_of = AsOf(page=4711, written_at=AT, in_work=work, proven_at=None)
    assert str(as_of) == "as of page 4711 of 2026-01-02 03:04:05Z; 2 ledgers in work"
    before = AsOf(page=0, written_at=None, in_work=InWork(), proven_at=None)
    assert str(before) == "as of page 0; 0 ledgers in work"


def test_tables_lie_beside_the_records_or_where_settings_say(desk, tmp_path):
    settings = desk.stack.settings
    store = replace(settings.store, bucket="b", access_key="a", secret_key="s")
    desk.stack.settings = replace(settings, store=store, catalogue=CatalogueSettings())
    assert Catalogue.of(desk.stack).place.root == "s3://b/tierkeeper/inst/catalogue/1"
    desk.stack.settings = replace(settings, catalogue=CatalogueSettings(root=str(tmp_path)))
    assert Catalogue.of(desk.stack).place.root == str(tmp_path)


def test_a_question_may_end_like_a_statement_and_sees_every_table(desk, catalogue):
    desk.chain(42)
    desk.book.close_page()
    post(desk.stack, catalogue)
    for name in (*TABLES, "ledgers", "topics"):
        [row] = asked(catalogue, f" select count(*) as n from {name} ;\n ")
        assert (row["n"] > 0) is not name.startswith("topic")  # those are a scan's


def test_a_ledger_has_one_row_however_often_it_changed(desk, catalogue):
    for n in range(3):
        desk.scrub(42, scrubbed_at=AT + timedelta(hours=n))
        desk.book.close_page()
        post(desk.stack, catalogue)
    assert len(asked(catalogue, "select * from ledger_changes")) == 3
    [row] = asked(catalogue, "select * from ledgers")
    assert row["verified_at"] == AT + timedelta(hours=2)
    assert set(row) == set(TABLES["ledger_changes"].names)


def test_rows_of_some_ledgers_are_those_alone(desk, catalogue):
    for ledger_id in (5, 7, 9):
        desk.scrub(ledger_id)
    desk.book.close_page()
    post(desk.stack, catalogue)
    tables = catalogue.opened()
    assert sorted(row["ledger_id"] for row in rows_of(tables, [5, 9, 11])) == [5, 9]
    assert rows_of(tables, []) == []


def test_what_is_no_question_is_refused(desk, catalogue):
    with pytest.raises(CatalogueError, match="the catalogue cannot answer"):
        answer(catalogue.opened(), "delete from ledgers")


def test_rows_are_of_the_columns_that_tables_have(desk, catalogue):
    desk.chain(42)
    desk.book.close_page()
    post(desk.stack, catalogue)
    for name, schema in TABLES.items():
        found = answer(catalogue.opened(), f"select * from {name}").schema
        assert found.names == schema.names


def test_readers_open_tables_at_once_but_settled_ones_before_their_tails(catalogue, monkeypatch):
    """Else a tail that was cut meanwhile would be missed by an older settled table."""
    settled, written = Barrier(len(SETTLED)), Barrier(len(TABLES))
    really, order = KEPT.open, []

    def together(place, name, schema):
        (settled if name in SETTLED else written).wait(timeout=30)
        order.append(name)
        return really(place, name, schema)

    monkeypatch.setattr(KEPT, "open", together)
    tables = catalogue.opened()
    assert set(order[: len(SETTLED)]) == set(SETTLED)
    assert (list(tables), list(tables.settled)) == ([*TABLES], [*SETTLED])


def test_the_first_table_that_cannot_be_opened_is_told(catalogue, monkeypatch):
    def broken(place, name, schema):
        raise CatalogueError(f"table {name} cannot be opened")

    monkeypatch.setattr(KEPT, "open", broken)
    with pytest.raises(CatalogueError, match="table ledgers cannot be opened"):
        catalogue.opened()


def test_rows_with_times_are_read_without_pandas(desk, catalogue):
    """It is a second of CPU, and most commands read rows."""
    desk.chain(42)
    desk.book.close_page()
    post(desk.stack, catalogue)
    program = (
        "import sys\n"
        "from tiering_assets.catalogue.view import Catalogue, rows_of\n"
        "from tiering_assets.resources.table_place import TablePlace\n"
        f"tables = Catalogue(TablePlace(root={catalogue.place.root!r}, options={{}})).opened()\n"
        "print(rows_of(tables, [42])[0]['certified_at'].isoformat(), 'pandas' in sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    [row] = asked(catalogue, "select certified_at from ledgers")
    assert said.stdout.split() == [row["certified_at"].isoformat(), "False"], said.stderr


@pytest.mark.parametrize("value", ["", "orders", "it's", "'; drop table x; --", "a''b"])
def test_a_text_of_a_question_is_that_text(catalogue, value):
    assert asked(catalogue, f"select {sql_text(value)} as it") == [{"it": value}]


@pytest.mark.parametrize("count", [0, 1, 1000, 1001, 30_000])
@pytest.mark.parametrize("name", [int, "it's/a,{0}"])
def test_rows_are_those_that_have_one_of_the_values_however_many(catalogue, count, name):
    make: Callable[[int], int | str] = int if name is int else name.format
    values: list[Any] = [make(n) for n in range(-1, count - 1)]
    candidates = [make(n) for n in (-2, -1, 0, 998, 999, 29_998, 29_999)]
    rows = ", ".join(f"({sql_text(one) if isinstance(one, str) else one})" for one in candidates)
    table = rows_among(f"(select * from (values {rows}) as t(x))", "x", values)
    found = asked(catalogue, f"select x from {table} where x is not null")
    wanted = {make(n) for n in (-1, 0, 998, 999, 29_998) if n < count - 1}
    assert {row["x"] for row in found} == wanted


def test_so_many_values_are_one_literal_to_the_planner():
    """Twenty thousand of their own took 4.5 s."""
    assert rows_among("t", "x", range(1000)).count(",") == 999
    assert rows_among("t", "x", range(1001)).count(",") < 10
