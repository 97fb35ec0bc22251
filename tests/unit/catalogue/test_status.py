"""How far the catalogue goes, how far it is behind, and what somebody should look at."""

from tests.unit.catalogue.desk import asked
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.status import catalogue_status
from tiering_assets.records import keys


def test_a_catalogue_that_is_not_there_is_empty_and_stays_so(desk, catalogue, tmp_path):
    status = catalogue_status(desk.stack, catalogue)
    assert (status.as_of.page, status.newest_page, status.lag_s) == (0, 0, 0.0)
    assert status.rows == {"blocks": 0, "events": 0, "ledger_changes": 0, "topic_changes": 0}
    assert (status.ledgers, status.doubts) == ({}, {})
    assert status.root == str(tmp_path / "catalogue")
    assert [*tmp_path.iterdir()] == []


def test_one_that_was_never_posted_has_pages_ahead_and_no_lag_to_tell(desk, catalogue):
    desk.book.take_up([42])
    status = catalogue_status(desk.stack, catalogue)
    assert (status.as_of.page, status.newest_page, status.lag_s) == (0, 1, 0.0)


def test_rows_and_states_are_counted(desk, catalogue):
    desk.chain(42)
    desk.chain(7, outcome="abandon")
    desk.book.close_page()
    post(desk.stack, catalogue)
    status = catalogue_status(desk.stack, catalogue)
    assert status.rows == {"blocks": 4, "events": 9, "ledger_changes": 2, "topic_changes": 0}
    assert status.ledgers == {"released": 1, "verified": 1}
    assert [*status.ledgers] == ["released", "verified"]
    assert status.doubts == {}


def test_the_lag_is_since_the_newest_posted_page_was_written(desk, catalogue):
    desk.book.take_up([42])
    post(desk.stack, catalogue)
    desk.objects.advance(300)
    assert catalogue_status(desk.stack, catalogue).lag_s == 0.0  # there is no newer page
    desk.book.close_page()
    status = catalogue_status(desk.stack, catalogue)
    assert (status.as_of.page, status.newest_page) == (1, 2)
    assert 300 <= status.lag_s < 310


def test_a_clock_that_is_ahead_makes_no_negative_lag(desk, catalogue):
    desk.objects.advance(3600)
    desk.book.take_up([42])
    post(desk.stack, catalogue)
    desk.objects.advance(-3600)
    desk.book.close_page()
    assert catalogue_status(desk.stack, catalogue).lag_s == 0.0


def test_doubts_are_counted_by_what_was_found(desk, catalogue):
    for ledger_id in (1, 2, 3):
        desk.chain(ledger_id, outcome="abandon")
    desk.book.close_page()
    other = desk.book_of("run-2")
    gone = desk.outcome(9, book=other)
    other.take_away([gone])
    first, second, _third = desk.book.keys("certificates/")
    desk.drop(first)
    desk.change(second, b'"sim-bucket"', b'"sim-basket"')
    desk.drop(keys.page(1))
    post(desk.stack, catalogue)
    status = catalogue_status(desk.stack, catalogue)
    assert status.doubts == {"damaged": 1, "missing": 1, "page_damaged": 1}
    found = asked(catalogue, "select distinct what from events where what not in ('written')")
    assert {row["what"] for row in found} == {*status.doubts, "gone"}
