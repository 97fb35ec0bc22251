"""Pages are read in their order, and what runs have taken up is known after each."""

from datetime import timedelta

import pytest

from tests.unit.catalogue.desk import page, unreadable
from tests.unit.records.examples import AT
from tiering_assets.catalogue.pages import InWork, newest_page, read_pages
from tiering_assets.records import keys

OPEN_PAGES = 20  # more than are asked for at once


def written(desk, number=OPEN_PAGES):
    """As many open pages of one run."""
    for ledger_id in range(1, number + 1):
        desk.book.take_up([ledger_id])


def read(desk, after=0, **how):
    """(number, ledgers or why there is none to read) of each page."""
    return [
        (one.number, one.why if one.stored is None else one.stored.record.ledgers)
        for one in read_pages(desk.stack, after, **how)
    ]


def test_every_page_behind_a_number_is_read_in_order(desk):
    written(desk)
    assert read(desk) == [(n, (n,)) for n in range(1, OPEN_PAGES + 1)]
    assert read(desk, 18) == [(19, (19,)), (20, (20,))]


def test_the_newest_page_is_looked_for_once_however_many_there_are(desk):
    written(desk)
    desk.objects.calls.clear()
    read(desk)
    assert [name for name, _key in desk.objects.calls].count("list_objects") == 1


@pytest.mark.parametrize("number", [0, 3])
def test_that_there_is_no_new_page_costs_two_requests(desk, number):
    written(desk, number)
    desk.objects.calls.clear()
    assert read(desk, number) == []
    assert [name for name, _key in desk.objects.calls] == ["get", "list_objects"]


@pytest.mark.parametrize("gone", [1, 2, 10, 17, 19])
def test_a_page_that_is_gone_below_the_newest_is_passed_over_and_told(desk, gone):
    written(desk)
    desk.drop(keys.page(gone))
    assert read(desk) == [
        (n, "it is gone" if n == gone else (n,)) for n in range(1, OPEN_PAGES + 1)
    ]


def test_several_that_are_gone_are_each_told(desk):
    written(desk, 5)
    for number in (2, 3):
        desk.drop(keys.page(number))
    assert read(desk) == [
        (1, (1,)),
        (2, "it is gone"),
        (3, "it is gone"),
        (4, (4,)),
        (5, (5,)),
    ]


def test_one_that_is_written_while_it_is_looked_for_is_read(desk, monkeypatch):
    written(desk, 3)
    lost = desk.objects.peek(desk.key_of(keys.page(2)))[0]
    desk.drop(keys.page(2))
    really = desk.objects.list_objects

    def at_last(*given, **how):
        if desk.objects.peek(desk.key_of(keys.page(2))) is None:
            desk.objects.put(desk.key_of(keys.page(2)), lost)
        return really(*given, **how)

    monkeypatch.setattr(desk.objects, "list_objects", at_last)
    assert read(desk) == [(1, (1,)), (2, (2,)), (3, (3,))]


def test_a_page_that_nobody_can_read_is_passed_over_and_told(desk):
    written(desk, 3)
    desk.change(keys.page(2), b'"open"', b'"opan"')
    [_first, (number, why), last] = read(desk)
    assert number == 2
    assert "it was changed after writing" in why
    assert last == (3, (3,))


def test_a_page_that_names_another_number_is_not_gone_by(desk):
    written(desk, 3)
    desk.objects.overwrite(
        desk.key_of(keys.page(2)), desk.objects.peek(desk.key_of(keys.page(1)))[0]
    )
    assert read(desk)[1] == (2, "it says that it is page 1")


@pytest.mark.parametrize(("most", "taken"), [(1, 2), (2, 2), (3, 4), (4, 4), (5, 6), (99, 6)])
def test_pages_are_cut_behind_the_one_that_names_enough(desk, most, taken):
    for ledger_id in (1, 2, 3):
        book = desk.book_of(f"run-{ledger_id}")
        desk.outcome(ledger_id, book=book)
        desk.scrub(ledger_id, book=book)
        book.close_page()
    numbers = [number for number, _what in read(desk, records_max=most)]
    assert numbers == [*range(1, taken + 1)]


def test_a_page_that_cannot_be_read_names_nothing(desk):
    written(desk, 3)
    desk.drop(keys.page(2))
    assert len(read(desk, records_max=1)) == 3


def test_the_newest_page_is_found_by_one_request_whatever_lies_before_it(desk):
    assert newest_page(desk.stack) == 0
    written(desk, 3)
    desk.objects.put(desk.key_of(f"{keys.DAY_BOOK}000-no-page.json"), b"{}")
    desk.objects.calls.clear()
    assert newest_page(desk.stack) == 3
    assert len(desk.objects.calls) == 1


LATER = AT + timedelta(hours=1)


def in_work(*pages):
    """Ledgers in work by run, after these pages."""
    found = InWork().behind(pages)
    assert InWork.from_text(found.as_text()) == found
    return {name: (run.since, sorted(run.ledgers)) for name, run in found.runs.items()}


def test_a_ledger_is_in_work_from_its_open_page_to_its_close_page():
    first, more = page(1, "open", ledgers=[5, 7]), page(2, "open", ledgers=[9], at=LATER)
    assert in_work() == {}
    assert in_work(first, unreadable(2)) == {"run-1": (AT, [5, 7])}
    assert in_work(first, more) == {"run-1": (AT, [5, 7, 9])}
    assert in_work(first, more, page(3, ledgers=[5, 9])) == {"run-1": (AT, [7])}
    assert in_work(first, more, page(3, ledgers=[5, 7, 9])) == {}


def test_what_is_taken_up_again_is_in_work_since_then():
    assert in_work(
        page(1, "open", ledgers=[5]), page(2, ledgers=[5]), page(3, "open", ledgers=[5], at=LATER)
    ) == {"run-1": (LATER, [5])}


@pytest.mark.parametrize("phase", ["gone", "proof"])
def test_pages_of_other_phases_change_nothing_of_it(phase):
    assert in_work(page(1, "open", ledgers=[5]), page(2, phase, ledgers=[5])) == {
        "run-1": (AT, [5])
    }


def test_each_run_has_its_own_and_one_ledger_may_be_in_work_of_two():
    pages = [page(1, "open", ledgers=[5]), page(2, "open", ledgers=[5, 6], run="run-2")]
    assert InWork().behind(pages).ledgers == {5, 6}
    assert in_work(*pages, page(3, ledgers=[5])) == {"run-2": (AT, [5, 6])}


def test_a_page_for_a_run_that_died_is_that_runs():
    opened = page(1, "open", ledgers=[5])
    closed = page(2, ledgers=[5], run="poster", for_run="run-1")
    assert in_work(opened, closed) == {}
