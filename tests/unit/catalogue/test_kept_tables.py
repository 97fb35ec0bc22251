"""Tables that were opened before are read again as long as nobody has written to them."""

import os
import shutil
from dataclasses import replace

import pyarrow as pa
import pytest

from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.view import OF_LEDGERS, Catalogue, answer, least
from tiering_assets.resources import kept_tables
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.kept_tables import KEPT, OpenedBefore
from tiering_assets.resources.table_place import TablePlace, files_of
from tiering_assets.resources.tables import find_table, open_table

NAME = "events"
SCHEMA = TABLES[NAME]


@pytest.fixture
def place(tmp_path):
    return TablePlace(root=str(tmp_path), options={})


@pytest.fixture
def opened(monkeypatch):
    """How often a table was really opened."""
    names = []
    really = find_table

    def counting(place, name, schema):
        names.append(name)
        return really(place, name, schema)

    monkeypatch.setattr("tiering_assets.resources.kept_tables.find_table", counting)
    return names


def add(place, **told):
    table = open_table(place, NAME, SCHEMA, make=True)
    assert table.append(SCHEMA.empty_table(), told={"page": "1", **told}, mark=table.mark + 1)


def test_one_that_nobody_wrote_to_is_not_opened_again(place, opened):
    add(place)
    kept = OpenedBefore()
    first = kept.open(place, NAME, SCHEMA)
    assert kept.open(place, NAME, SCHEMA) is first
    assert opened == [NAME]
    kept.forget()
    assert kept.open(place, NAME, SCHEMA) is not first


def test_a_commit_of_anybody_is_seen_by_the_next_who_asks(place, opened):
    add(place)
    kept = OpenedBefore()
    first = kept.open(place, NAME, SCHEMA)
    add(place)
    second = kept.open(place, NAME, SCHEMA)
    assert (first.mark, second.mark) == (1, 2)
    assert first.version < second.version
    assert opened == [NAME, NAME]


def test_a_commit_while_it_was_opened_is_seen_by_the_next_who_asks(place, monkeypatch):
    add(place)
    kept, really = OpenedBefore(), find_table

    def slowly(*args, **how):
        found = really(*args, **how)
        add(place)
        return found

    with monkeypatch.context() as patched:
        patched.setattr("tiering_assets.resources.kept_tables.find_table", slowly)
        assert kept.open(place, NAME, SCHEMA).mark == 1
    assert kept.open(place, NAME, SCHEMA).mark == 2


def test_one_that_is_not_there_is_looked_for_again(place):
    kept = OpenedBefore()
    assert not kept.open(place, NAME, SCHEMA).is_written
    add(place)
    assert kept.open(place, NAME, SCHEMA).is_written


def test_with_other_credentials_it_is_opened_anew(place, opened):
    add(place)
    kept = OpenedBefore()
    kept.open(place, NAME, SCHEMA)
    kept.open(replace(place, options={"timeout": "30s"}), NAME, SCHEMA)
    assert opened == [NAME, NAME]


def test_no_more_are_kept_than_are_of_use(place, opened, monkeypatch):
    monkeypatch.setattr(kept_tables, "_KEPT_MAX", 1)
    add(place)
    open_table(place, "blocks", TABLES["blocks"], make=True)
    kept = OpenedBefore()
    for name in (NAME, "blocks", NAME):
        kept.open(place, name, TABLES[name])
    assert opened == [NAME, "blocks", NAME]


def test_a_folder_that_is_named_from_here_is_another_one_elsewhere(tmp_path, monkeypatch):
    kept, marks = OpenedBefore(), []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        place = TablePlace(root="tables", options={})
        add(place)
        if name == "there":
            add(place)
        marks.append(kept.open(place, NAME, SCHEMA).mark)
    assert marks == [1, 2]


def test_who_may_write_has_tables_of_its_own(place):
    KEPT.forget()
    catalogue = Catalogue(place)
    assert not catalogue.opened()[NAME].is_written
    own = catalogue.opened(make=True)
    shared = catalogue.opened()
    assert all(table.is_written for table in shared.registered.values())
    assert all(shared[name] is not own[name] for name in own)
    assert all(shared[name] is catalogue.opened()[name] for name in own)
    table = own["topic_changes"]
    assert table.append(pa.Table.from_pylist([], schema=TABLES["topic_changes"]), told={})
    assert catalogue.opened()["topic_changes"] is not shared["topic_changes"]


def test_one_that_was_deleted_or_made_anew_is_not_what_it_was(place, tmp_path):
    add(place)
    kept = OpenedBefore()
    first = kept.open(place, NAME, SCHEMA)
    shutil.rmtree(tmp_path / NAME)
    assert not kept.open(place, NAME, SCHEMA).is_written
    add(place)
    again = kept.open(place, NAME, SCHEMA)
    assert again.is_written
    assert again is not first


def test_only_the_tables_that_are_asked_are_opened(place, opened):
    KEPT.forget()
    Catalogue(place).opened(make=True)
    tables = Catalogue(place).opened(OF_LEDGERS)
    assert sorted(opened) == ["ledger_changes", "ledgers", "topic_changes", "topics"]
    assert [*tables] == [*OF_LEDGERS]
    assert answer(tables, "select * from ledgers, topics").num_rows == 0
    assert least(Catalogue(place), tables).page == 0


def test_one_whose_log_is_damaged_fails_by_name(place, tmp_path):
    add(place)
    kept = OpenedBefore()
    kept.open(place, NAME, SCHEMA)
    for path in (tmp_path / NAME / "_delta_log").glob("*.json"):
        path.write_text("no log\n")
    with pytest.raises(CatalogueError, match=f"table {NAME} in .* cannot be opened"):
        kept.open(place, NAME, SCHEMA).marked("turn")


def test_where_its_client_cannot_be_used_a_table_is_opened_each_time(place, opened, monkeypatch):
    add(place)
    monkeypatch.setattr("tiering_assets.resources.table_log.files_of", unusable)
    kept = OpenedBefore()
    assert [kept.open(place, NAME, SCHEMA).mark for _ in range(2)] == [1, 1]
    assert opened == [NAME, NAME]


def test_it_has_no_client_where_variables_are_set_that_it_does_not_know(monkeypatch):
    for name in [name for name in os.environ if name.upper().startswith("AWS_")]:
        monkeypatch.delenv(name)
    place = TablePlace(root="s3://bucket/tables", options={"AWS_REGION": "us-east-1"})
    assert files_of(place, NAME).prefix == f"tables/{NAME}"
    monkeypatch.setenv("AWS_ODD", "and unknown to it")
    with pytest.raises(ValueError, match="variables"):
        files_of(place, NAME)


def unusable(place, name):
    raise ValueError(f"{place.root}/{name} cannot be asked")
