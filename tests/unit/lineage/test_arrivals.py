"""Who reads ledgers as they are posted gets each once for ever, and none is forgotten."""

import random

import pytest

from tiering_assets.lineage.messages.arrivals import StreamPosition, due, next_position
from tiering_assets.resources.errors import FormatError

START = StreamPosition()
PAGES = {1: 5, 2: 5, 3: 7, 4: 9}


def test_what_was_posted_comes_once():
    end = next_position(START, PAGES, {1, 2, 3, 4}, until=9)
    assert end == StreamPosition(9)
    assert due(START, end, PAGES) == {1, 2, 3, 4}
    assert next_position(end, PAGES, {1, 2, 3, 4}, until=20) == end
    later = next_position(end, {**PAGES, 6: 20}, {1, 2, 3, 4, 6}, until=20)
    assert due(end, later, {**PAGES, 6: 20}) == {6}


def test_pages_without_its_ledgers_are_no_reason_to_go_on():
    assert next_position(START, {}, (), until=100) == START
    assert next_position(START, {1: 5}, (), until=100) == START


def test_one_that_cannot_be_read_yet_is_owed_until_it_can():
    end = next_position(START, PAGES, {1, 3}, until=7)
    assert end == StreamPosition(7, frozenset({2}))
    assert due(START, end, PAGES) == {1, 3}
    paid = next_position(end, PAGES, {1, 2, 3}, until=7)
    assert paid == StreamPosition(7)
    assert due(end, paid, PAGES) == {2}


@pytest.mark.parametrize(
    ("most", "page", "ledgers"), [(1, 6, {1, 2}), (2, 6, {1, 2}), (3, 8, {1, 2, 3}), (4, 9, {4})]
)
def test_no_page_is_cut_and_no_other_is_begun_past_the_limit(most, page, ledgers):
    end = next_position(START, PAGES, {1, 2, 3, 4}, until=9, most=most)
    assert end.page == page
    assert ledgers <= due(START, end, PAGES)
    assert max(due(START, end, PAGES)) == max(ledgers)


def test_owed_ones_count_as_well():
    start = StreamPosition(4, frozenset({0}))
    end = next_position(start, {0: 3, **PAGES}, {0, 1, 2, 3, 4}, until=9, most=1)
    assert end == StreamPosition(4)
    assert due(start, end, {0: 3, **PAGES}) == {0}


def test_a_position_is_kept_by_spark_and_understood_again():
    for one in (START, StreamPosition(7, frozenset({12, 3}))):
        assert StreamPosition.of(one.told()) == one
    assert StreamPosition(7, frozenset({12, 3})).told() == {"page": 7, "owed": "3,12"}


@pytest.mark.parametrize(
    "told", [{}, {"page": 1}, {"page": "x", "owed": ""}, {"page": 1, "owed": "x"}]
)
def test_what_is_no_position_is_refused(told):
    with pytest.raises(FormatError, match=r"a position in a stream is .* expected a page"):
        StreamPosition.of(told)


@pytest.mark.parametrize("seed", range(200))
def test_each_ledger_comes_exactly_once_whatever_happens_meanwhile(seed):
    """Ledgers are posted, become unsound and sound again, while a reader goes on."""
    chance = random.Random(seed)
    first_pages: dict[int, int] = {}
    sound: set[int] = set()
    came: list[int] = []
    at, mark = START, 0
    for step in range(60):
        mark += chance.randrange(3)
        if chance.random() < 0.5:
            mark += 1
            for ledger in range(100 * step, 100 * step + chance.randrange(1, 4)):
                first_pages[ledger] = mark
                if chance.random() < 0.7:
                    sound.add(ledger)
        for ledger in [*first_pages]:
            if chance.random() < 0.1:
                sound.symmetric_difference_update([ledger])
        end = next_position(at, first_pages, sound, until=mark, most=chance.choice([None, 1, 2]))
        coming = due(at, end, first_pages)
        assert coming <= sound
        assert bool(coming) == (end != at)
        mark += chance.randrange(2)
        first_pages[100 * step + 50] = mark = mark + 1  # posted while that lot is read
        assert due(at, end, first_pages) == coming
        came += coming
        at = StreamPosition.of(end.told())
    end = next_position(at, first_pages, first_pages.keys(), until=mark)
    came += due(at, end, first_pages)
    assert sorted(came) == sorted(first_pages)
