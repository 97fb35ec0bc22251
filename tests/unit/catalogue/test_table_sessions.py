"""Questions over tables that stay open are asked in a session that stays open, too."""

from functools import partial
from shutil import rmtree

import pytest

from tiering_assets.catalogue.columns import TABLES
from tiering_assets.resources import table_sessions
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.table_place import TablePlace
from tiering_assets.resources.table_sessions import SESSIONS, KeptSessions
from tiering_assets.resources.tables import ask, find_table, open_table

NAME = "events"
SCHEMA = TABLES[NAME]
COUNT = f"select count(*) as n from {NAME}"


@pytest.fixture
def place(tmp_path):
    return TablePlace(root=str(tmp_path), options={})


@pytest.fixture
def made(monkeypatch):
    """How many sessions were made."""
    really, found = table_sessions._new, []

    def new():
        found.append(1)
        return really()

    monkeypatch.setattr(table_sessions, "_new", new)
    return found


def opened(place, rows=1):
    table = open_table(place, NAME, SCHEMA, make=True)
    add(table, rows)
    return table


def add(table, rows=1):
    one = dict.fromkeys(SCHEMA.names) | {"page": 1, "key": "a"}
    assert table.append(SCHEMA.empty_table().from_pylist([one] * rows, SCHEMA), told={})


def count(table, **how):
    return ask(COUNT, {NAME: table}, **how)["n"].to_pylist()


def test_the_second_question_is_asked_in_the_session_of_the_first(place, made):
    table = opened(place)
    assert count(table) == count(table) == [1]
    assert len(made) == 1


def test_what_this_process_wrote_meanwhile_is_seen(place):
    table = opened(place)
    assert count(table) == [1]
    add(table)
    table = table.again()
    assert count(table) == [2]


def test_other_views_are_asked_as_they_are(place, made):
    table = opened(place)
    for number in (1, 2, 2):
        views = {"some": partial("select {} as n".format, number)}
        assert ask("select n from some", {NAME: table}, views=views)["n"].to_pylist() == [number]
    assert len(made) == 2


def test_behind_a_failure_nobody_asks_in_that_session(place, made):
    table = opened(place)
    assert count(table) == [1]
    with pytest.raises(CatalogueError, match="cannot answer"):
        ask("select nothing from nowhere", {NAME: table})
    assert count(table) == [1]
    assert len(made) == 2


def test_who_asks_meanwhile_has_a_session_of_its_own(place):
    tables = {NAME: opened(place)}
    with SESSIONS.over(tables, {}, COUNT) as one, SESSIONS.over(tables, {}, COUNT) as other:
        assert one is not other
    with SESSIONS.over(tables, {}, COUNT) as again:
        assert again in (one, other)


def test_so_many_are_kept(place, made, monkeypatch):
    monkeypatch.setattr(table_sessions, "_KEPT_MAX", 1)
    sessions, tables = KeptSessions(), [{NAME: opened(place)}, {NAME: opened(place)}]
    for some in (tables[0], tables[0], tables[1], tables[0]):
        with sessions.over(some, {}, COUNT):
            pass
    assert len(made) == 3


def test_only_tables_that_a_question_names_are_opened(place):
    opened(place)
    tables = {NAME: find_table(place, NAME, SCHEMA), "blocks": find_table(place, NAME, SCHEMA)}
    views = {"some": lambda: f"select page from {NAME}", "others": lambda: "select 1 from blocks"}
    assert ask("select page from some", tables, views=views).num_rows == 1
    assert [one.is_open for one in tables.values()] == [True, False]
    assert ask("select * from others", tables, views=views).num_rows == 1
    assert [one.is_open for one in tables.values()] == [True, True]


def test_a_table_that_cannot_be_opened_by_then_is_named(place):
    opened(place)
    table = find_table(place, NAME, SCHEMA)
    rmtree(place.root)
    with pytest.raises(CatalogueError, match=f"table {NAME} in .* cannot be opened"):
        count(table)
