"""Which files of a settled table are written again: in key order, each key in one."""

import random
from itertools import pairwise

import pytest

from tiering_assets.catalogue.upkeep.spans import KeySpan, joined, spans_to_write
from tiering_assets.resources.table_files import TableFile

FULL = 100


def file(first, last, *, rows=None, size=FULL):
    return TableFile(first=first, last=last, rows=rows or last - first + 1, bytes=size)


def spans(files, changed, **how):
    return [
        (one.first, one.behind)
        for one in spans_to_write(files, changed, **{"rows_max": 1000, "bytes_max": FULL, **how})
    ]


def test_where_nothing_changed_nothing_is_written():
    assert spans([file(1, 9)], []) == []


def test_the_first_rows_of_all_are_one_span_without_bounds():
    assert spans([], [5, 7]) == [(None, None)]


def test_many_first_rows_are_cut_into_lots():
    assert spans([], [*range(7)], rows_max=3) == [(None, 3), (3, 6), (6, None)]


def test_only_files_that_have_a_changed_key_are_written():
    three = [file(10, 19), file(20, 29), file(30, 39)]
    assert spans(three, [25]) == [(20, 30)]
    assert spans(three, [12, 33]) == [(None, 20), (30, None)]


def test_a_key_before_all_goes_into_the_first_file():
    assert spans([file(10, 19), file(20, 29)], [3]) == [(None, 20)]


def test_a_key_between_two_full_files_leaves_both_as_they_are():
    assert spans([file(10, 19), file(30, 39)], [25]) == [(25, 30)]


def test_keys_behind_a_full_file_begin_a_new_one():
    assert spans([file(10, 19)], [40, 41]) == [(40, None)]


@pytest.mark.parametrize(("size", "first"), [(74, None), (75, 40)])
def test_keys_behind_a_file_go_into_it_while_it_is_small(size, first):
    assert spans([file(10, 19, size=size)], [40]) == [(first, None)]


def test_a_file_with_changed_keys_takes_those_behind_it_along():
    assert spans([file(10, 19), file(60, 69)], [12, 40]) == [(None, 60)]


def test_a_span_is_cut_behind_the_keys_of_its_file_only():
    assert spans([file(0, 9)], [*range(20)], rows_max=12) == [(None, 10), (10, None)]
    assert spans([file(0, 9)], [5, *range(10, 40)], rows_max=20) == [
        (None, 19),
        (19, 39),
        (39, None),
    ]


def test_files_that_overlap_are_one():
    assert joined([file(0, 9), file(5, 20), file(21, 30)], bytes_max=FULL) == [
        file(0, 20, rows=26, size=2 * FULL),
        file(21, 30),
    ]
    within = joined([file(0, 30), file(5, 20)], bytes_max=FULL)
    assert [(one.first, one.last) for one in within] == [(0, 30)]


@pytest.mark.parametrize(("size", "left"), [(50, 1), (51, 2)])
def test_small_neighbours_that_fit_in_one_file_become_one(size, left):
    two = [file(0, 9, size=50), file(20, 29, size=size)]
    assert len(joined(two, bytes_max=FULL)) == left


def test_files_of_too_many_rows_that_overlap_are_not_written_as_one():
    files = [file(0, 60), file(50, 120), file(110, 180)]
    assert spans(files, [*range(0, 181, 10)], rows_max=30) == [(None, 50), (50, 110), (110, None)]


def test_keys_may_be_text_with_quotes():
    assert KeySpan("o'clock", "p").sql("topic") == "topic >= 'o''clock' and topic < 'p'"
    assert KeySpan(None, None).sql("n") == "true"
    assert KeySpan(None, 7).sql("n") == "n < 7"
    assert KeySpan(None, None, empty=True).sql("n") == "false"
    assert KeySpan(5, None).sql("n") == "n >= 5"


@pytest.mark.parametrize("seed", range(200))
def test_every_changed_key_is_in_one_span_and_no_file_without_one_is_cut(seed):
    chance = random.Random(seed)
    ends = sorted(chance.sample(range(1000), 2 * chance.randint(0, 8)))
    files = [
        file(a, b, size=chance.choice((10, 60, 100)))
        for a, b in zip(ends[::2], ends[1::2], strict=True)
    ]
    changed = sorted(chance.sample(range(1000), chance.randint(1, 200)))
    rows_max = chance.choice((10, 100, 1000))
    found = spans(files, changed, rows_max=rows_max)
    for key in changed:
        within = [
            one
            for one in found
            if (one[0] is None or key >= one[0]) and (one[1] is None or key < one[1])
        ]
        assert len(within) == 1
    for before, after in pairwise(found):
        assert before[1] is not None
        assert after[0] is not None
        assert before[1] <= after[0]
    for group in joined(files, rows_max=rows_max, bytes_max=FULL):
        for first, behind in found:
            if first is not None:
                assert not group.first < first <= group.last
            if behind is not None:
                assert not group.first < behind <= group.last
