"""What pages change: a whole new row for each ledger of which something is different."""

from dataclasses import replace

import pytest

from tests.unit.catalogue.desk import OTHER_UID, batch, example, page, stored, unreadable
from tests.unit.records.examples import AT, ML_NAME, UID
from tiering_assets.catalogue.facts.changes import changed_rows, changes_of
from tiering_assets.catalogue.facts.read_pages import FoundRecord
from tiering_assets.records import keys, models
from tiering_assets.records.sweep_models import Removal

CERTIFIED = stored(keys.certificate(42, UID), example(models.Certificate))
QUARANTINED = stored(keys.quarantine(42, UID), example(models.Quarantine))
HELD = stored(keys.hold(42), example(models.Hold))
REMOVED = stored(keys.removal(42, UID), example(Removal))
ATTEMPTED = stored(keys.attempt(42, UID), example(models.Attempt))


def rows_after(*pages, found=(), before=()):
    return [*changed_rows(changes_of(batch(*pages, found=found)), before)]


def certified_row(**changes):
    names = {key for key, value in changes.items() if value}
    pages = [page(1, names=[CERTIFIED.key])]
    found = [CERTIFIED]
    for one in (HELD, REMOVED):
        if one.key in names:
            pages.append(page(len(pages) + 1, names=[one.key]))
            found.append(one)
    [row] = rows_after(*pages, found=found)
    return row


def after_gone(row, *gone):
    [after] = rows_after(page(9, "gone", names=gone), before=[row])
    return after


def test_a_record_that_a_page_names_becomes_a_row():
    [row] = rows_after(page(5, names=[CERTIFIED.key]), found=[CERTIFIED])
    assert (row["ledger_id"], row["state"], row["page"]) == (42, "verified", 5)
    assert (row["tenant"], row["namespace"], row["partition"]) == ("public", "public/default", None)


@pytest.mark.parametrize("phase", ["open", "gone"])
def test_a_page_that_says_that_nothing_is_there_makes_no_row(phase):
    assert rows_after(page(5, phase, names=[CERTIFIED.key]), found=[CERTIFIED]) == []


def test_a_proof_names_what_is_there_like_a_close():
    assert len(rows_after(page(5, "proof", names=[CERTIFIED.key]), found=[CERTIFIED])) == 1


def test_what_was_not_found_or_not_read_changes_nothing():
    names = [CERTIFIED.key, QUARANTINED.key]
    nothing = (CERTIFIED.key, FoundRecord(missing=True, why="nothing lies there"))
    assert rows_after(page(5, names=names), unreadable(6), found=[nothing]) == []


def test_a_ledger_has_one_row_of_the_last_page_that_changed_it():
    pages = [page(5, names=[CERTIFIED.key]), page(6, names=[QUARANTINED.key])]
    [row] = rows_after(*pages, found=[CERTIFIED, QUARANTINED])
    assert (row["state"], row["page"]) == ("quarantined", 6)


def test_ledgers_come_in_their_order():
    records = [
        stored(keys.certificate(n, UID), example(models.Certificate, ledger=ledger(n)))
        for n in (7, 42, 5)
    ]
    rows = rows_after(page(1, names=[one.key for one in records]), found=records)
    assert [row["ledger_id"] for row in rows] == [5, 7, 42]


def ledger(ledger_id):
    return replace(example(models.Certificate).ledger, ledger_id=ledger_id)


def test_what_is_told_a_second_time_makes_no_row():
    row = certified_row()
    assert rows_after(page(9, names=[CERTIFIED.key]), found=[CERTIFIED], before=[row]) == []
    assert rows_after(page(9, names=[ATTEMPTED.key]), found=[ATTEMPTED], before=[row]) == []


def test_what_is_new_is_added_to_the_row_of_before():
    row = certified_row()
    [after] = rows_after(page(9, names=[QUARANTINED.key]), found=[QUARANTINED], before=[row])
    assert after == {**row, "quarantined_at": AT, "state": "quarantined", "page": 9}


def test_a_hold_that_goes_holds_nothing_any_more():
    row = certified_row(**{HELD.key: True})
    assert row["held"] == "audit 17"
    assert after_gone(row, HELD.key) == {**row, "held": None, "page": 9}


def test_a_hold_of_a_scope_is_of_no_row():
    row = certified_row(**{HELD.key: True})
    gone = page(9, "gone", names=[keys.HOLD_ALL, keys.topic_hold(ML_NAME)])
    assert rows_after(gone, before=[row]) == []
    assert [*changes_of(batch(gone))] == []


def test_a_record_that_goes_takes_along_what_it_said():
    row = certified_row(**{REMOVED.key: True})
    assert row["state"] == "expired"
    after = after_gone(row, REMOVED.key)
    assert after == {**row, "removed_at": None, "state": "verified", "page": 9}


def test_a_ledger_of_which_every_record_goes_has_no_attempt():
    after = after_gone(certified_row(), ATTEMPTED.key, CERTIFIED.key)
    assert (after["uid"], after["attempts"], after["certified_at"]) == (None, 0, None)


def test_what_goes_of_another_attempt_leaves_this_one_alone():
    gone = page(9, "gone", names=[keys.certificate(42, OTHER_UID)])
    assert rows_after(gone, before=[certified_row()]) == []


@pytest.mark.parametrize(
    "key", [keys.outcome(42, UID), keys.publication(ML_NAME, 1), keys.leftover(42, UID)]
)
def test_what_says_nothing_of_an_attempt_takes_nothing_along(key):
    assert rows_after(page(9, "gone", names=[key]), before=[certified_row()]) == []


def test_what_goes_of_a_ledger_that_nobody_knew_makes_no_row():
    assert rows_after(page(9, "gone", names=[HELD.key, CERTIFIED.key, REMOVED.key])) == []


@pytest.mark.parametrize("key", ["attempts/42.json", "scrubs/42.json"])
def test_a_key_that_names_no_attempt_takes_nothing_along(key):
    assert [*changes_of(batch(page(9, "gone", names=[key])))] == []


@pytest.mark.parametrize("phase", ["close", "proof", "open"])
def test_what_a_page_names_and_nobody_finds_takes_nothing_along(phase):
    """An audit judges that; the row says what was once proven."""
    nothing = (CERTIFIED.key, FoundRecord(missing=True, why="nothing lies there"))
    named = page(9, phase, names=[CERTIFIED.key])
    assert rows_after(named, found=[nothing], before=[certified_row()]) == []


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("t/ns/persistent/orders-partition-3", ("t", "t/ns", 3)),
        ("t/ns/persistent/orders", ("t", "t/ns", None)),
        ("no name of a topic", (None, None, None)),
    ],
)
def test_a_topics_name_gives_columns_where_it_is_one(name, columns):
    record = stored(CERTIFIED.key, example(models.Certificate, ml_name=name))
    [row] = rows_after(page(1, names=[record.key]), found=[record])
    assert row["topic"] == name
    assert (row["tenant"], row["namespace"], row["partition"]) == columns


def test_a_ledger_whose_topic_nobody_said_has_no_columns_of_it():
    [row] = rows_after(page(1, names=[HELD.key]), found=[HELD])
    assert (row["topic"], row["tenant"], row["namespace"], row["held"]) == (
        *[None] * 3,
        "audit 17",
    )
