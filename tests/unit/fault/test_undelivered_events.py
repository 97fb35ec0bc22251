"""OpenLineage events that cannot be delivered: kept, sent again in their order, and bounded.

The server is a real one on loopback. The bucket is simulated, the tables are delta-rs's own.
"""

import json
import sys
import threading
import time
from itertools import count

import pytest

from tests.support.lineage_server import DROP, HOLD, lineage_server, short
from tests.support.lineage_spec import problems
from tests.unit.catalogue.desk import Desk
from tests.unit.catalogue.openlineage.outbox import Outbox
from tests.unit.test_openlineage import free_port
from tiering_assets.catalogue.openlineage.telling_mark import (
    FIRST_DISTANCE,
    LEASE,
    MOST_DISTANCE,
    REFUSALS_MAX,
)
from tiering_assets.catalogue.openlineage.telling_state import judged, telling_state
from tiering_assets.catalogue.pages import newest_page
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.status import catalogue_status
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.resources.errors import (
    CatalogueError,
    ObjectConflictError,
    ObjectStoreError,
    PrerequisiteError,
)
from tiering_assets.resources.table_place import TablePlace

RUN = ["offload START 0", "offload COMPLETE 2"]
POSTING = ["catalogue-post START 0", "catalogue-post COMPLETE 3"]


@pytest.fixture
def outbox(tmp_path):
    """Events are switched on, and go nowhere yet."""
    catalogue = Catalogue(TablePlace(root=str(tmp_path / "catalogue"), options={}))
    outbox = Outbox(Desk(), catalogue, f"http://127.0.0.1:{free_port()}")
    outbox.tell()
    return outbox


def state(outbox):
    return telling_state(outbox.stack, posted=newest_page(outbox.stack))


def after_a_failure(outbox):
    outbox.pass_by(MOST_DISTANCE.total_seconds())


def test_an_endpoint_that_is_dead_for_days_gets_every_event_later(outbox):
    for day in range(5):
        outbox.offload([day], run=f"offload-{day}")
        began = time.monotonic()
        assert "no answer from 127.0.0.1" in outbox.tell().why
        assert time.monotonic() - began < 3.0
        outbox.pass_by(24 * 3600)
    found = state(outbox)
    assert (found.sent, found.pages_behind, found.dropped) == (0, 10, 0)
    assert found.waits_s >= 5 * 24 * 3600
    assert judged(found).level == "warn"
    with lineage_server() as server:
        outbox.set(url=server.url)
        outbox.tell_all()
    of_runs = [one for one in server.events if short(one).startswith("offload")]
    runs = [one["run"]["facets"]["tierkeeper_run"]["run"] for one in of_runs]
    assert runs == [f"offload-{day}" for day in range(5) for _twice in range(2)]
    assert [*map(short, of_runs)] == ["offload START 0", "offload COMPLETE 1"] * 5
    postings = [one for one in server.events if short(one).startswith("catalogue-post START")]
    runs = [one["run"]["facets"]["tierkeeper_run"]["run"] for one in postings]
    assert runs == ["pages 1 to 2", "pages 3 to 10"]  # the first was begun on the first day
    assert judged(state(outbox)).level == "ok"


def test_a_dead_endpoint_is_asked_seldom_and_costs_one_request_in_between(outbox):
    outbox.offload([1, 2])
    tries = 0
    outbox.tell()
    for _ in range(120):  # an hour of ticks
        outbox.pass_by(30)
        outbox.desk.objects.calls.clear()
        said = outbox.tell().why
        if "tried again in" in said:
            assert [name for name, _key in outbox.desk.objects.calls] == ["list_objects", "get"]
        else:
            tries += 1
    assert 5 <= tries <= 10
    assert outbox.mark.tries == tries + 1


def test_a_slow_endpoint_costs_a_tick_its_timeout_and_is_tried_again(outbox):
    outbox.offload([1, 2])
    with lineage_server(HOLD) as server:
        outbox.set(url=server.url, timeout_s=0.3)
        began = time.monotonic()
        assert outbox.tell().why == "127.0.0.1 did not answer within 0.3 s"
        assert time.monotonic() - began < 3.0
        assert outbox.mark.tries == 1
        after_a_failure(outbox)
        outbox.tell_all()
        assert server.told == RUN + POSTING


def test_one_that_answers_500_gets_the_same_event_again(outbox):
    outbox.offload([1, 2])
    with lineage_server(500) as server:
        outbox.set(url=server.url)
        assert outbox.tell().why == "127.0.0.1 answered 500"
        assert len(server.asked) == 1
        assert "tried again in 30 s" in outbox.tell().why
        assert len(server.asked) == 1
        outbox.pass_by(FIRST_DISTANCE.total_seconds())
        assert outbox.tell().why == "told up to page 2"
        assert server.told == RUN + POSTING
    assert outbox.mark.tries == 0


def test_one_that_dies_in_the_middle_goes_on_behind_what_it_took(outbox):
    outbox.offload(range(401), run="large")
    with lineage_server(200, 200, DROP) as server:
        outbox.set(url=server.url)
        assert outbox.tell().sent == 2
        assert (outbox.mark.page, outbox.mark.part) == (1, 1)
        after_a_failure(outbox)
        outbox.tell_all()
        assert server.told == [
            "offload START 0",
            "offload RUNNING 200",
            "offload RUNNING 200",
            "offload COMPLETE 1",
            *POSTING,
        ]
        assert len({one["run"]["runId"] for one in server.events[:4]}) == 1


def test_a_poster_killed_before_it_wrote_how_far_it_came_sends_the_same_again(outbox):
    outbox.offload([1, 2])
    with lineage_server() as server:
        outbox.set(url=server.url)
        outbox.desk.objects.fail("put", nth=2)  # behind the lease
        with pytest.raises(ObjectStoreError):
            outbox.tell()
        first = [*server.events]
        assert server.told == RUN + POSTING
        assert outbox.tell().why.endswith(" sends")  # the lease of the one that died
        outbox.offload([3], run="since")
        outbox.pass_by(LEASE.total_seconds())
        outbox.tell_all()
        assert server.events[:8] == [*first, *first]
        assert json.dumps(server.events[4:8]) == json.dumps(first)
        assert server.told[8:] == ["offload START 0", "offload COMPLETE 1", *POSTING]


def test_a_lease_that_was_sent_twice_by_itself_is_ours(outbox):
    """Applied, its answer lost, and refused when the client sent it again."""
    outbox.offload([1, 2])
    with lineage_server() as server:
        outbox.set(url=server.url)
        lost = ObjectConflictError("precondition failed")
        outbox.desk.objects.fail("put", nth=1, error=lost, after=True)
        outbox.tell_all()
        assert server.told == RUN + POSTING


def test_a_mark_that_goes_meanwhile_ends_the_tick(outbox):
    outbox.offload([1, 2])
    objects = outbox.desk.objects
    really = objects.put

    def put(key, body, **how):
        objects.delete(key)
        return really(key, body, **how)

    objects.put = put
    assert outbox.tell().why == "another poster was faster"


def test_a_mark_whose_answer_was_lost_stands_and_nothing_is_sent_twice(outbox):
    outbox.offload([1, 2])
    with lineage_server() as server:
        outbox.set(url=server.url)
        outbox.desk.objects.fail("put", nth=2, after=True)
        with pytest.raises(ObjectStoreError):
            outbox.tell()
        assert outbox.tell().why.startswith("told up to page 2")
        assert server.told == RUN + POSTING


def test_of_two_posters_one_sends(outbox):
    """The other comes while the first one waits for an answer."""
    outbox.offload([1, 2])
    with lineage_server(HOLD) as server:
        outbox.set(url=server.url, timeout_s=3.0)
        first = threading.Thread(target=outbox.tell)
        first.start()
        while not server.asked:
            assert first.is_alive()
        assert outbox.tell().why.endswith(" sends")
        server.ends.set()
        first.join()
        assert server.told == RUN + POSTING


def test_of_two_posters_that_see_the_same_mark_one_gets_the_lease(outbox):
    outbox.offload([1, 2])
    with lineage_server() as server:
        outbox.set(url=server.url)
        objects = outbox.desk.objects
        really, told = objects.put, list[str]()

        def put(key, body, **how):
            if key == outbox.mark_key and not told:
                told.append("the other")
                outbox.tell()
            return really(key, body, **how)

        objects.put = put
        assert outbox.tell().why == "another poster was faster"
        assert server.told == RUN + POSTING


def test_a_tick_ends_in_time_and_the_next_goes_on(outbox):
    """Each look at the clock is half a second later here."""
    for number in range(6):
        outbox.offload([number], run=f"offload-{number}")
    with lineage_server() as server:
        outbox.set(url=server.url)
        ticks = count()
        outbox.stack.monotonic = lambda: next(ticks) / 2
        said = [outbox.tell()]
        while "no time is left" in said[-1].why:
            said.append(outbox.tell())
            assert len(said) < 50
        assert len(said) > 3
        assert server.told == ["offload START 0", "offload COMPLETE 1"] * 6 + POSTING
        assert outbox.mark.tries == 0


def test_pages_that_nobody_is_told_of_take_no_more_time_either(outbox):
    """As of a night of scrubs, after a day on which nobody posted."""
    for number in range(40):
        book = outbox.book(f"hold-{number}", "tierkeeper hold set")
        book.take_up([number])
        book.close_page()
    ticks = count()
    outbox.stack.monotonic = lambda: next(ticks) / 2
    assert outbox.tell().why.startswith("no time is left; goes on behind page")
    assert 0 < outbox.mark.page < 20


def test_a_failure_counts_however_little_time_was_left(outbox):
    outbox.offload([1, 2])
    with lineage_server(500) as server:
        outbox.set(url=server.url, timeout_s=3.0)
        assert outbox.tell(seconds=2.0).why == "127.0.0.1 answered 500"
        assert outbox.mark.tries == 1


def test_an_answer_that_had_no_time_is_no_failure(outbox):
    outbox.offload([1, 2])
    with lineage_server(HOLD) as server:
        outbox.set(url=server.url, timeout_s=3.0)
        said = outbox.tell(seconds=0.2)
        assert said.why == "no time is left; goes on behind page 0"
        assert (outbox.mark.tries, outbox.mark.next_at) == (0, None)


def test_what_is_too_old_is_dropped_and_counted(outbox):
    book = outbox.book("long")
    book.take_up([1, 2])
    outbox.offload([8], run="old")
    outbox.pass_by(8 * 24 * 3600)
    for ledger_id in (1, 2):
        outbox.certify(book, ledger_id)
    book.close_page()
    with lineage_server() as server:
        outbox.set(url=server.url)
        outbox.desk.objects.calls.clear()
        said = outbox.tell()
        assert said.dropped == 2  # both events of the old run, whose records nobody reads
        assert not any("publications/" in key for _name, key in outbox.desk.objects.calls)
        assert server.told == RUN + POSTING  # the long one has its start all the same
    assert "2 were too old" in str(said)
    finding = judged(state(outbox))
    assert finding.level == "warn"
    assert "never sent: 2 too old" in finding.text


def test_what_a_run_in_work_said_too_long_ago_is_dropped_and_its_end_is_not(outbox):
    book = outbox.book("long")
    book.take_up([1, 2])
    named = [NamedRecord(key=outbox.certify(book, 1).key)]
    book._day_book._append("close", records=named)  # as of a run with thousands of records
    outbox.pass_by(8 * 24 * 3600)
    outbox.certify(book, 2)
    book.close_page()
    with lineage_server() as server:
        outbox.set(url=server.url)
        assert outbox.tell().dropped == 1
        assert server.told == ["offload START 0", "offload COMPLETE 2", *POSTING]


def test_an_event_that_is_refused_for_a_quarter_of_an_hour_is_passed_over(outbox):
    outbox.offload([1, 2])
    with lineage_server(200, *[422] * REFUSALS_MAX) as server:
        outbox.set(url=server.url)
        for _ in range(REFUSALS_MAX - 1):
            assert outbox.tell().why == "127.0.0.1 answered 422"
            after_a_failure(outbox)
        assert outbox.tell().sent == 2  # those behind it
        assert server.told == [RUN[0], *POSTING]
    assert (outbox.mark.refused, outbox.mark.sent) == (1, 3)
    assert "never sent: 1 refused" in judged(state(outbox)).text


def test_a_wrong_key_loses_nothing(outbox):
    outbox.offload([1, 2])
    with lineage_server(*[401] * 10) as server:
        outbox.set(url=server.url, api_key="wrong")
        for _ in range(10):
            outbox.tell()
            after_a_failure(outbox)
        assert outbox.mark.why == "127.0.0.1 answered 401"
        outbox.set(api_key="right")
        outbox.tell_all()
        assert server.told == RUN + POSTING
        assert server.asked[-1][1] == "Bearer right"


def test_a_record_that_is_gone_is_named_and_the_others_are_told(outbox):
    certified = outbox.offload([1, 2], publish=False)
    outbox.desk.drop(certified[0].key)
    with lineage_server() as server:
        outbox.set(url=server.url)
        outbox.tell_all()
        [end] = [one for one in server.events if short(one).startswith("offload COMPLETE")]
    assert [one["name"] for one in end["outputs"]] == [certified[1].record.data.key]
    run = end["run"]["facets"]["tierkeeper_run"]
    assert run["missingRecords"] == [outbox.stack.book.prefix + certified[0].key]
    assert run["ledgers"] == 1
    assert problems(end) == []


def test_pages_that_nobody_can_read_are_counted_and_passed_over(outbox):
    """Gone, damaged, or of a newer version."""
    for ledger_id in (1, 2, 3):
        outbox.offload([ledger_id], run=f"offload-{ledger_id}")
    outbox.desk.drop(keys.page(2))
    outbox.desk.change(keys.page(3), b'"open"', b'"opan"')
    outbox.desk.change(keys.page(5), b"tierkeeper/page/1", b"tierkeeper/page/2")
    with lineage_server() as server:
        outbox.set(url=server.url)
        outbox.tell_all()
    # A run without its end is in work; one without its beginning has its start with its end.
    ends = [one for one in server.events if one["eventType"] == "COMPLETE"]
    runs = [one["run"]["facets"]["tierkeeper_run"]["run"] for one in ends]
    assert runs == ["offload-2", "offload-3", "pages 1 to 6"]
    assert outbox.mark.unread == 3
    assert [*outbox.mark.runs.runs] == ["offload-1"]
    assert "3 pages unreadable" in str(state(outbox))


def test_a_mark_that_cannot_be_read_stops_events_alone(outbox):
    outbox.offload([1, 2])
    outbox.desk.objects.overwrite(outbox.mark_key, b'{"schema": "other"}')
    with pytest.raises(CatalogueError, match="delete it, and they begin anew"):
        outbox.tell()
    assert judged(state(outbox)).level == "fail"
    assert post(outbox.stack, outbox.catalogue).pages == 2
    assert catalogue_status(outbox.stack, outbox.catalogue).newest_page == 2
    outbox.desk.objects.delete(outbox.mark_key)
    with lineage_server() as server:
        outbox.set(url=server.url)
        assert outbox.tell().why == "they begin behind page 2"
        outbox.offload([3], run="since")
        outbox.tell_all()
        assert server.told == ["offload START 0", "offload COMPLETE 1", *POSTING]


def test_runs_that_were_in_work_when_events_were_switched_on_have_a_beginning_and_an_end(outbox):
    outbox.desk.objects.delete(outbox.mark_key)
    book = outbox.book("before")
    book.take_up([1, 2])
    began = outbox.desk.objects.now
    post(outbox.stack, outbox.catalogue)
    outbox.tell()
    outbox.pass_by(60)
    for ledger_id in (1, 2):
        outbox.certify(book, ledger_id)
    book.close_page()
    with lineage_server() as server:
        outbox.set(url=server.url)
        outbox.tell_all()
    assert server.told == RUN + POSTING
    assert server.events[0]["eventTime"] == began.isoformat()


def test_without_the_client_nothing_is_sent_and_its_package_is_named(outbox, monkeypatch):
    outbox.offload([1, 2])
    monkeypatch.setitem(sys.modules, "openlineage", None)
    outbox.desk.objects.calls.clear()
    with pytest.raises(PrerequisiteError, match="openlineage-python is not installed"):
        outbox.tell()
    assert [name for name, _key in outbox.desk.objects.calls] == ["list_objects"]
    assert post(outbox.stack, outbox.catalogue).pages == 2
