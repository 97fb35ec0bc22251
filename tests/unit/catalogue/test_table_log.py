"""What commits say, read file by file: the same as delta-rs says, with fewer requests."""

import random
import shutil
from collections import Counter

import pyarrow as pa
import pytest

from tiering_assets.resources import table_log
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.table_log import TableLog
from tiering_assets.resources.table_place import TablePlace, files_of
from tiering_assets.resources.table_upkeep import join_small
from tiering_assets.resources.tables import open_table

NAME = "things"
SCHEMA = pa.schema([("n", pa.int64())])
MARKS = ("turn", "day-book", "cut", "never")


@pytest.fixture
def place(tmp_path):
    return TablePlace(root=str(tmp_path), options={})


@pytest.fixture
def read(monkeypatch):
    """How often each file of a log was read."""
    import obstore

    counted = Counter[str]()
    really = obstore.get

    def counting(store, path, **how):
        counted[path[-10:]] += 1
        return really(store, path, **how)

    monkeypatch.setattr(obstore, "get", counting)
    return counted


def opened(place):
    return open_table(place, NAME, SCHEMA, make=True)


def add(place, mark=None, **told):
    rows = pa.Table.from_pylist([{"n": 1}], schema=SCHEMA)
    assert opened(place).append(rows, told=told, mark=mark)


@pytest.mark.parametrize("seed", range(12))
def test_marks_and_what_is_told_are_those_of_delta_rs(place, seed):
    chance = random.Random(seed)
    page = 0
    for number in range(chance.choice([1, 2, 4, 14])):
        what = chance.random()
        if what < 0.5:
            page += 1
            add(place, page, page=str(page), at=str(number))
        elif what < 0.7:
            add(place, scanned=str(number))
        elif what < 0.85:
            done = opened(place).commit(_nothing, "-", marks={"cut": number}, told={"cut": "yes"})
            assert done
        else:
            join_small(opened(place), told={"joined": str(number)})
    table = opened(place)
    history = table.delta.history()
    for mark in MARKS:
        assert table.marked(mark) == (table.delta.transaction_version(mark) or 0)
    for key, value in [("page", None), ("page", str(page)), ("cut", "yes"), ("none", None)]:
        said = [one for one in history if key in one and value in (None, one[key])]
        found = table.newest_with(key, value)
        assert found.get("at") == (said[0].get("at") if said else None)
        assert bool(found) == bool(said)


def _nothing(delta, properties):
    """A commit that changes no row."""
    from deltalake import write_deltalake

    write_deltalake(delta, SCHEMA.empty_table(), mode="append", commit_properties=properties)


def test_each_file_is_read_once_whatever_is_asked(place, read, monkeypatch):
    add(place, 3, page="3")
    log = opened(place).log
    read.clear()
    clients = []

    def made(place, name):
        clients.append(name)
        return files_of(place, name)

    monkeypatch.setattr(table_log, "files_of", made)
    assert [log.marked(mark) for mark in MARKS] == [1, 3, 0, 0]
    assert log.newest_with("page")["page"] == "3"
    assert log.newest_with("nothing") == {}
    assert log.is_newest()
    assert read == {"00001.json": 1, "00000.json": 1}
    assert clients == [NAME]


def test_what_is_further_back_is_asked_of_delta_rs(place, read):
    add(place, 3, page="3")
    for _ in range(5):
        add(place)
    log = opened(place).log
    read.clear()
    assert (log.marked("turn"), read) == (6, {"00006.json": 1})
    assert (log.marked("day-book"), log.marked("cut")) == (3, 0)
    assert log.newest_with("page")["page"] == "3"
    assert len(read) == 3


def test_a_commit_of_its_own_is_seen(place):
    table = opened(place)
    assert (table.mark, table.log.is_newest()) == (0, True)
    assert table.append(SCHEMA.empty_table(), told={"page": "9"}, mark=9)
    assert (table.mark, table.newest_with("page")["page"]) == (9, "9")
    add(place)
    assert not table.log.is_newest()


def test_without_files_that_can_be_read_delta_rs_answers(place, monkeypatch):
    add(place, 3, page="3")
    asked = []

    def refused(place, name):
        asked.append(name)
        raise ValueError(place.root)

    monkeypatch.setattr(table_log, "files_of", refused)
    log = opened(place).log
    assert (log.marked("day-book"), log.newest_with("page")["page"]) == (3, "3")
    assert not log.is_newest()
    assert asked == [NAME]


def test_a_file_that_is_no_commit_is_left_to_delta_rs(place, tmp_path):
    add(place, 3)
    table = opened(place)
    file = tmp_path / NAME / "_delta_log" / f"{1:020d}.json"
    before = file.read_text()
    file.write_text("no log\n")
    log = TableLog(place, NAME, table.version, lambda: table.delta)
    assert not log.is_newest()
    file.write_text(before)
    assert log.marked("day-book") == 3


def test_a_log_that_is_gone_is_an_error_that_says_so(place, tmp_path):
    add(place, 3)
    table = opened(place)
    shutil.rmtree(tmp_path / NAME / "_delta_log")
    with pytest.raises(CatalogueError, match="its log cannot be read"):
        table.marked("day-book")
