"""Whatever happened to a fleet and to its posters, the tables say what the bucket's records say."""

import pytest

from tests.support import book_histories
from tests.support.book_histories import problems_of
from tiering_assets.catalogue.facts import changes
from tiering_assets.catalogue.facts.read_pages import written_on
from tiering_assets.catalogue.view import answer


@pytest.mark.parametrize("seed", range(20))
def test_tables_equal_the_bucket_after_a_history(seed, tmp_path):
    assert problems_of(seed, tmp_path) == []


def test_histories_have_copies_of_brokers_that_a_scrub_read(tmp_path, monkeypatch):
    really, seen = book_histories._rebuilt, []

    def rebuilt(stack, catalogue):
        rows = answer(catalogue.opened(), "select * from blocks where written_by = 'broker'")
        seen.append(rows.num_rows)
        return really(stack, catalogue)

    monkeypatch.setattr(book_histories, "_rebuilt", rebuilt)
    assert problems_of(9, tmp_path) == []
    assert sum(seen) > 5


def test_a_record_that_is_not_posted_is_a_difference(tmp_path, monkeypatch):
    """Of pages alone: the listing, which has all records on one proof page, tells of it."""

    def some(page):
        named = written_on(page)
        if page.command == "listed":
            return named
        return tuple(one for one in named if not one.key.startswith("certificates/"))

    monkeypatch.setattr(changes, "written_on", some)
    assert any(", certified_at: posted None" in one for one in problems_of(0, tmp_path))
