"""K3 over every command: each record that is about a ledger is written between an open page that
names the ledger and a close page that names the record.
"""

import pytest

from tests.support import trimmed_cluster
from tests.support.same_record import STORIES, told_by
from tests.support.trimmed_cluster import TrimmedCluster
from tiering_assets.ground.day_book import DayBook
from tiering_assets.ground.record_book import RecordBook


def judged(lines, monkeypatch):
    """What the judge of the day book found after a story; test_same.py has every command in one."""
    clusters = []

    class Kept(TrimmedCluster):
        def __init__(self):
            super().__init__()
            clusters.append(self)

    monkeypatch.setattr(trimmed_cluster, "TrimmedCluster", Kept)
    told_by(lines, ())
    [cluster] = clusters
    cluster.process.close_books()
    return [one for one in cluster.world.monitor.found if one.invariant in ("K2", "K3")]


@pytest.mark.parametrize("story", STORIES)
def test_every_record_of_a_command_is_between_its_pages(story, monkeypatch):
    assert judged(STORIES[story], monkeypatch) == []


WRITING = ("ledger offload {sealed} --execute", "hold set 1 --reason audit --author ops")


@pytest.mark.parametrize("line", WRITING)
def test_a_book_that_forgets_its_open_page_is_found(line, monkeypatch):
    monkeypatch.setattr(RecordBook, "take_up", lambda *_given: None)
    assert {one.invariant for one in judged([line], monkeypatch)} == {"K3"}


@pytest.mark.parametrize("line", WRITING)
def test_a_book_that_forgets_what_it_wrote_is_found(line, monkeypatch):
    monkeypatch.setattr(DayBook, "wrote", lambda *_given: None)
    [found] = judged([line], monkeypatch)
    assert "cli ended, no close page names" in found.detail


def test_a_page_that_follows_another_than_the_last_one_is_found(monkeypatch):
    really = DayBook._append

    def forgetful(self, *given, **how):
        self._newest = None
        monkeypatch.setattr(DayBook, "_look", lambda _self: (0, ""))
        really(self, *given, **how)

    def write_over(self, page, body):
        self._objects.put(
            self._prefix + f"day-book/{10**19 - 1 - page.number:019d}.json",
            body,
            if_match=None,
            if_absent=False,
        )
        return True

    monkeypatch.setattr(DayBook, "_append", forgetful)
    monkeypatch.setattr(DayBook, "_put", write_over)
    assert "K2" in {one.invariant for one in judged(WRITING[:1], monkeypatch)}
