"""Tables that an older version made, without a column of this one, and what both do with them."""

import pyarrow as pa
import pytest

from tests.support.sim_scene import TOPIC
from tests.unit.catalogue.desk import asked
from tests.unit.records.examples import AT
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.settled import SETTLED
from tiering_assets.catalogue.upkeep.settle import settle
from tiering_assets.catalogue.view import rows_of
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.table_upkeep import with_columns
from tiering_assets.resources.tables import Table, open_table

ADDED = "deep_at"
OLD = pa.schema([field for field in TABLES["ledger_changes"] if field.name != ADDED])
SQL = f"select ledger_id, certified_at, {ADDED} from ledgers order by ledger_id"


@pytest.fixture
def of_before(monkeypatch):
    """What runs in it is of the version before."""

    def within(act):
        with monkeypatch.context() as before:
            before.setitem(TABLES, "ledger_changes", OLD)
            return act()

    return within


def add(catalogue, ledger_id, **row):
    table = catalogue.opened(make=True)["ledger_changes"]
    row = {"ledger_id": ledger_id, "topic": TOPIC, "certified_at": AT, **row}
    schema = TABLES["ledger_changes"]
    made = pa.Table.from_pylist([{**row, "turn": table.turn + 1}], schema=schema)
    assert table.append(made, told={})


def settled(catalogue):
    settle(catalogue, "ledgers", at=AT, tail_max=0)


def columns(catalogue, name="ledgers"):
    tables = catalogue.opened()
    both = tables[SETTLED[name].changes], tables.settled[name]
    return [ADDED in table.columns for table in both]


@pytest.fixture
def old(catalogue, of_before):
    """One settled row and one of the tail."""
    of_before(lambda: add(catalogue, 1))
    of_before(lambda: settled(catalogue))
    of_before(lambda: add(catalogue, 2))
    assert columns(catalogue) == [False, False]
    return catalogue


def test_they_are_asked_as_they_are_and_have_nulls_there(old):
    rows = [{"ledger_id": n, "certified_at": AT, ADDED: None} for n in (1, 2)]
    assert asked(old, SQL) == rows
    assert asked(old, f"select ledger_id from ledgers where {ADDED} > now()") == []
    assert [row[ADDED] for row in rows_of(old.opened(), [1, 2])] == [None, None]
    assert columns(old) == [False, False]


def test_who_writes_adds_it_and_their_rows_stay(old):
    add(old, 3, **{ADDED: AT})
    assert columns(old) == [True, True]
    assert [row[ADDED] for row in asked(old, SQL)] == [None, None, AT]
    settled(old)
    assert [row[ADDED] for row in asked(old, SQL)] == [None, None, AT]


@pytest.mark.parametrize("one", [0, 1], ids=["the tail", "the settled table"])
def test_one_of_two_that_has_it_alone_is_read_as_well(old, one):
    """Whoever added it was killed behind the first."""
    name = (SETTLED["ledgers"].changes, "ledgers")[one]
    with_columns(open_table(old.place, name, None), TABLES["ledger_changes"])
    assert columns(old) == [one == 0, one == 1]
    assert [row[ADDED] for row in asked(old, SQL)] == [None, None]
    add(old, 3, **{ADDED: AT})
    assert [row[ADDED] for row in asked(old, SQL)] == [None, None, AT]


def test_what_is_posted_to_them_tells_of_deep_looks(catalogue, desk, of_before):
    desk.scrub(41, depth="deep")
    desk.book.close_page()
    of_before(lambda: post(desk.stack, catalogue))
    desk.scrub(42, depth="deep")
    desk.book.close_page()
    post(desk.stack, catalogue)
    assert [row[ADDED] is None for row in asked(catalogue, SQL)] == [True, False]


def test_marks_and_turns_go_on_behind_it(old):
    before = old.opened()["ledger_changes"]
    after = old.opened(make=True)["ledger_changes"]
    assert (after.turn, after.mark) == (before.turn, before.mark)
    assert after.version == before.version + 1
    assert old.opened(make=True)["ledger_changes"].version == after.version


def test_two_that_add_it_at_once_add_it_once(old):
    first = open_table(old.place, "ledger_changes", None)
    then = open_table(old.place, "ledger_changes", None)
    before = first.version
    for table in (first, then):
        found = with_columns(table, TABLES["ledger_changes"])
        assert ADDED in found.columns
        assert found.version == before + 1


def test_one_to_which_it_cannot_be_added_is_told_by_name(old, monkeypatch):
    table = open_table(old.place, "ledger_changes", None)
    with monkeypatch.context() as stuck:
        stuck.setattr(Table, "commit", lambda *_args, **_how: False)
        with pytest.raises(CatalogueError, match="ledger_changes: other writers were faster"):
            with_columns(table, TABLES["ledger_changes"])


def test_the_version_before_reads_them_and_cannot_write_them(old, of_before):
    add(old, 3, **{ADDED: AT})
    sql = "select ledger_id from ledgers order by ledger_id"
    assert [row["ledger_id"] for row in of_before(lambda: asked(old, sql))] == [1, 2, 3]
    with pytest.raises(CatalogueError, match="nothing else waits for it"):
        of_before(lambda: add(old, 4))
