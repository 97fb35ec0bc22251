"""Each key of a table is in one part, whatever its files are."""

import random

import pytest

from tiering_assets.lineage.in_spark.table_spans import TablePart, key_spans
from tiering_assets.resources.table_files import TableFile


def file(first, last, rows=10):
    return TableFile(first=first, last=last, rows=rows, bytes=1)


def inside(span, key):
    return (span.first is None or key >= span.first) and (span.behind is None or key < span.behind)


@pytest.mark.parametrize("seed", range(50))
def test_each_key_is_in_one_part(seed):
    chance = random.Random(seed)
    files = []
    for _ in range(chance.randrange(8)):
        first = chance.randrange(50)
        files.append(file(first, first + chance.randrange(30), chance.randrange(1, 20)))
    spans = key_spans(files, rows=chance.randrange(1, 40))
    assert len(spans) <= max(1, len(files))
    for key in range(-1, 100):
        assert sum(inside(span, key) for span in spans) == 1


def test_small_files_are_read_together_and_none_is_cut():
    files = [file(0, 9), file(10, 19), file(20, 29), file(20, 39), file(40, 49)]
    assert key_spans(files, rows=20) == [
        TablePart(None, 20),
        TablePart(20, 40),
        TablePart(40, None),
    ]
    assert key_spans(files, rows=1000) == [TablePart()]
    assert key_spans([], rows=10) == [TablePart()]


@pytest.mark.parametrize(
    ("span", "sql"),
    [
        (TablePart(), "true"),
        (TablePart(None, 7), "(k < 7 or k is null)"),
        (TablePart(7, 9), "k >= 7 and k < 9"),
        (TablePart(9, None), "k >= 9"),
        (TablePart("it's", None), "k >= 'it''s'"),
    ],
)
def test_keys_without_a_value_are_in_the_first_part(span, sql):
    assert span.sql("k") == sql
