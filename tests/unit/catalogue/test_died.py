"""Runs that died: what they wrote of their ledgers is found without a listing of everything."""

import pytest

from tests.unit.catalogue.desk import asked, counts
from tests.unit.catalogue.test_prove import past_claims
from tiering_assets.catalogue import died as module
from tiering_assets.catalogue.died import Died, close_dead
from tiering_assets.catalogue.facts.record_facts import SAYS
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.view import least


def closed(desk, catalogue):
    while post(desk.stack, catalogue).pages:
        pass
    tables = catalogue.opened()
    done = close_dead(desk.stack, catalogue, least(catalogue, tables))
    while post(desk.stack, catalogue).pages:
        pass
    return done


def named(catalogue):
    rows = asked(catalogue, "select key from events where what = 'written'")
    return [row["key"] for row in rows]


@pytest.mark.parametrize("outcome", ["publish", "abandon"])
def test_what_it_wrote_of_its_ledgers_is_named_and_they_are_in_work_no_longer(
    desk, catalogue, outcome
):
    desk.chain(42, outcome=outcome)
    past_claims(desk)
    wanted = [key for key in desk.book.keys("") if key.partition("/")[0] in SAYS]
    assert closed(desk, catalogue) == Died(runs=("run-1",), late=len(wanted))
    assert sorted(named(catalogue)) == sorted(wanted)
    [row] = asked(catalogue, "select state from ledgers")
    assert row["state"] == ("released" if outcome == "publish" else "verified")
    assert least(catalogue, catalogue.opened()).in_work.ledgers == set()
    assert closed(desk, catalogue) == Died()


def test_what_was_named_before_is_not_named_again(desk, catalogue):
    desk.chain(42, outcome="abandon")
    desk.book.close_page()
    desk.book.take_up([42])
    desk.scrub(42)
    past_claims(desk)
    before = named_once(desk, catalogue)
    assert closed(desk, catalogue) == Died(runs=("run-1",), late=1)
    assert len(named(catalogue)) == len(before) + 1


def named_once(desk, catalogue):
    while post(desk.stack, catalogue).pages:
        pass
    return named(catalogue)


def test_records_of_a_ledger_whose_id_begins_alike_are_not_its_own(desk, catalogue):
    desk.book.take_up([4])
    desk.chain(42, book=desk.book_of("run-2"))
    past_claims(desk)
    desk.claim(42)
    assert closed(desk, catalogue) == Died(runs=("run-1",), late=0)
    assert counts(catalogue)["events"] == 0
    assert least(catalogue, catalogue.opened()).proven_at is None  # nothing was listed as a whole


def test_where_no_run_is_old_nothing_is_asked(desk, catalogue, monkeypatch):
    desk.book.take_up([4])
    monkeypatch.setattr(module, "live_claims", lambda *_given: 1 / 0)
    assert closed(desk, catalogue) == Died()


def test_where_no_run_is_in_work_nobodys_time_is_asked(desk, catalogue, monkeypatch):
    monkeypatch.setattr(type(desk.objects), "server_time", lambda _store: 1 / 0)
    assert closed(desk, catalogue) == Died()


def test_one_that_may_be_at_work_is_let_be(desk, catalogue):
    desk.chain(42)
    assert closed(desk, catalogue) == Died()
    past_claims(desk)
    desk.claim(42)
    assert closed(desk, catalogue) == Died()


def test_an_attempt_that_cannot_be_read_hides_no_record_of_its_ledger(desk, catalogue):
    desk.chain(42, outcome="abandon")
    [key] = desk.book.keys("attempts/42/")
    desk.objects.overwrite(desk.key_of(key), b"no record")
    past_claims(desk)
    done = closed(desk, catalogue)
    assert done.late == 2
    assert {*named(catalogue)} < {*desk.book.keys("")}


def test_it_asks_in_lots_whether_records_are_named(desk, catalogue, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    desk.chain(42)
    past_claims(desk)
    assert closed(desk, catalogue).late == 5
