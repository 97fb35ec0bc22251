"""Which rows are nominated for a scrub, in which order, and what is counted of all."""

import json
from datetime import timedelta

import pyarrow as pa
import pytest

from tests.support.sim_scene import TOPIC
from tests.unit.records.examples import AT
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.nominate_copies import copies_broken, copies_due, copy_figures

DAY = timedelta(days=1)
COPY = {
    "topic": TOPIC,
    "offloaded_by": "tierkeeper",
    "bookie_copy": "live",
    "certified_at": AT,
    "published_at": AT,
}


def fill(catalogue, *rows):
    table = catalogue.opened(make=True)["ledger_changes"]
    made = [{"ledger_id": n, **COPY, **row, "turn": table.turn + 1} for n, row in enumerate(rows)]
    assert table.append(pa.Table.from_pylist(made, schema=TABLES["ledger_changes"]), told={})
    return catalogue.opened()


def due(catalogue, *rows, depth="deep", now=AT + 10 * DAY, every=DAY, most=100):
    found = copies_due(
        fill(catalogue, *rows), depth, now=now, every_s=every.total_seconds(), most=most
    )
    return [one.ledger_id for one in found]


@pytest.mark.parametrize(
    ("row", "shallow", "deep"),
    [
        ({}, AT, AT),
        ({"certified_at": None}, None, None),
        ({"verified_at": AT + DAY, "verified_depth": "shallow"}, AT + DAY, AT),
        ({"verified_at": AT + DAY, "verified_depth": "deep"}, AT + DAY, AT + DAY),
        ({"verified_at": AT + 2 * DAY, "deep_at": AT + DAY}, AT + 2 * DAY, AT + DAY),
        ({"deep_at": AT + DAY}, AT + DAY, AT + DAY),
    ],
    ids=str,
)
def test_when_a_copy_was_looked_at(catalogue, row, shallow, deep):
    fill(catalogue, row)
    [found] = copies_due(catalogue.opened(), "deep", now=AT + 10 * DAY, every_s=0.0, most=1)
    assert (found.shallow_at, found.deep_at) == (shallow, deep)


def test_what_nobody_looked_at_is_first_then_what_was_longest_ago(catalogue):
    rows: list[dict[str, object]] = [{"deep_at": AT + n * DAY} for n in (3, 1, 2)]
    rows += [{"certified_at": None, "bookie_copy": "deleted"}, {"certified_at": None}]
    assert due(catalogue, *rows) == [4, 3, 1, 2, 0]


def test_so_many_of_them(catalogue):
    assert due(catalogue, *({"deep_at": AT + n * DAY} for n in (3, 1, 2)), most=2) == [1, 2]


def test_a_look_is_due_once_its_time_is_over(catalogue):
    rows = [{"deep_at": AT + 9 * DAY + timedelta(seconds=n)} for n in (-1, 0, 1)]
    assert due(catalogue, *rows) == [0, 1]


def test_a_look_in_the_future_is_of_a_wrong_clock_and_due(catalogue):
    assert due(catalogue, {"deep_at": AT + 11 * DAY}) == [0]


def test_one_that_is_to_be_healed_takes_nobodys_place(catalogue):
    broken = {"damaged_at": AT, "certified_at": None}
    rows = [broken, {**broken, "bookie_copy": "deleted"}, {}]
    assert due(catalogue, *rows) == [2, 1]


def test_one_that_was_found_broken_lately_is_not_due(catalogue):
    late = AT + 10 * DAY - timedelta(hours=1)
    assert due(catalogue, {"quarantined_at": late}, {"damaged_at": late}) == []


@pytest.mark.parametrize("row", [{"offloaded_by": None}, {"topic": None}], ids=str)
def test_what_brokers_do_not_read_is_no_copy(catalogue, row):
    assert due(catalogue, row) == []
    assert copies_broken(catalogue.opened()) == []


OTHER = {"00000000-0000-0000-0000-000000000007": {"quarantined_at": AT.isoformat()}}


@pytest.mark.parametrize(
    ("row", "replaced"),
    [
        ({"quarantined_at": AT}, False),
        ({"damaged_at": AT + DAY}, False),
        ({"damaged_at": AT, "certified_at": None}, False),
        ({"damaged_at": AT, "deep_at": AT + timedelta(hours=1)}, False),  # by which clock?
        ({"others": json.dumps(OTHER)}, True),
        ({"others": json.dumps(OTHER).replace("quarantined", "damaged")}, True),
    ],
    ids=str,
)
def test_what_is_broken_and_what_took_its_place_is_nominated(catalogue, row, replaced):
    [found] = copies_broken(fill(catalogue, row))
    assert found.replaced is replaced


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"quarantined_at": AT, "deep_at": AT + timedelta(hours=1, seconds=1)},
        {"others": json.dumps(OTHER).replace("quarantined_at", "certified_at")},
    ],
    ids=str,
)
def test_what_is_sound_is_not(catalogue, row):
    assert copies_broken(fill(catalogue, row)) == []


def test_so_many_broken_ones_the_longest_published_first(catalogue):
    rows = [{"quarantined_at": AT, "published_at": AT + n * DAY} for n in (2, 0, 1)]
    found = copies_broken(fill(catalogue, {"others": json.dumps(OTHER)}, *rows), most=3)
    assert [one.ledger_id for one in found] == [2, 3, 1]


def test_all_of_them_are_counted(catalogue):
    tables = fill(
        catalogue,
        {"quarantined_at": AT + DAY},
        {"certified_at": None},
        {"deep_at": AT + 9 * DAY},
        {"deep_at": AT + 10 * DAY},
        {"offloaded_by": None},
    )
    day = DAY.total_seconds()
    found = copy_figures(tables, now=AT + 10 * DAY, shallow_s=day, deep_s=2 * day)
    assert (found.copies, found.broken, found.never_deep) == (4, 1, 1)
    assert (found.oldest_deep_at, found.due) == (AT, 3 + 2)


def test_tables_that_an_older_version_made_nominate_as_well(old_tables):
    """Nobody has written since, so that they have no column of deep looks yet."""
    found = copies_due(old_tables, "deep", now=AT + 10 * DAY, every_s=0.0, most=9)
    assert [(one.ledger_id, one.deep_at) for one in found] == [(0, AT)]
    figures = copy_figures(old_tables, now=AT + 10 * DAY, shallow_s=1.0, deep_s=1.0)
    assert (figures.copies, figures.due) == (1, 2)


@pytest.fixture
def old_tables(catalogue, monkeypatch):
    old = TABLES["ledger_changes"]
    old = old.remove(old.get_field_index("deep_at"))
    with monkeypatch.context() as before:
        before.setitem(TABLES, "ledger_changes", old)
        fill(catalogue, {})
    return catalogue.opened()
