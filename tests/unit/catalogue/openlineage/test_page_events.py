"""Which events a page makes: one START and one end for each run, and how it ended."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.default_cluster import CLUSTER
from tests.support.process_imports import verbs
from tests.unit.catalogue.desk import page, stored
from tests.unit.records.examples import AT, UID
from tiering_assets.catalogue.facts.read_pages import FoundRecord
from tiering_assets.catalogue.openlineage.page_events import JOB_OF, events_of, publications_on
from tiering_assets.catalogue.openlineage.runs_told import (
    RunsTold,
    ToldJob,
    canonical,
    told_run_id,
)
from tiering_assets.defs.jobs import define_jobs
from tiering_assets.records import keys
from tiering_assets.records.models import Publication, PublishedLedger
from tiering_assets.resources.errors import FormatError

LATER = AT + timedelta(hours=1)


def read(number, phase="close", *, command="offload", **how):
    record = page(number, phase, **how).stored.record
    return replace(record, command=command)


def certificates(*ledger_ids):
    return [keys.certificate(i, UID) for i in ledger_ids]


def attempts(*ledger_ids):
    return [keys.attempt(i, UID) for i in ledger_ids]


def told(*pages, runs=None, published=None):
    """What these pages make, in short, and the runs that are in work then."""
    runs, said = runs or RunsTold(), []
    for one in pages:
        events, runs = events_of(one, runs, published or {})
        said += [f"{one.job} {one.type} {len(one.lines)}" for one in events]
    return said, runs


def test_a_run_is_told_when_it_takes_up_ledgers_and_when_it_is_done():
    pages = [
        read(1, "open", ledgers=[1, 2]),
        read(2, ledgers=[1, 2], names=[*attempts(1, 2), *certificates(1, 2)], at=LATER),
    ]
    assert told(*pages) == (["offload START 0", "offload COMPLETE 2"], RunsTold())


def test_start_is_as_of_the_first_open_page_and_the_end_as_of_the_close_page():
    first, runs = events_of(read(1, "open", ledgers=[1]), RunsTold(), {})
    second, _runs = events_of(read(2, ledgers=[1], at=LATER), runs, {})
    assert [one.at for one in (*first, *second)] == [AT, LATER]
    assert {one.since for one in (*first, *second)} == {AT}


def test_a_run_that_takes_up_more_has_one_start():
    pages = [read(1, "open", ledgers=[1]), read(2, "open", ledgers=[2], at=LATER)]
    said, runs = told(*pages)
    assert said == ["offload START 0"]
    assert runs.get("run-1").ledgers == {1, 2}
    assert runs.get("run-1").since == AT


def test_a_run_that_did_nothing_completes():
    said, _runs = told(read(1, "open", ledgers=[1]), read(2, ledgers=[1]))
    assert said == ["offload START 0", "offload COMPLETE 0"]


def test_of_an_unknown_command_records_tell_what_it_is():
    """As of Dagster's own job for assets that a person chose."""
    pages = [
        read(1, "open", command="__ASSET_JOB", ledgers=[1]),
        read(2, command="__ASSET_JOB", ledgers=[1], names=certificates(1)),
    ]
    said, _runs = told(*pages)
    assert said == ["offload START 0", "offload COMPLETE 1"]


@pytest.mark.parametrize("phase", ["open", "close"])
def test_a_run_that_copies_and_releases_nothing_is_not_told(phase):
    pages = [
        read(1, "open", command="tierkeeper hold set", ledgers=[1]),
        read(2, phase, command="tierkeeper hold set", ledgers=[1], names=["holds/1.json"]),
    ]
    assert told(*pages)[0] == []


def test_what_a_proof_found_and_what_goes_is_not_told():
    assert told(
        read(1, "proof", names=certificates(1)), read(2, "gone", names=certificates(1))
    ) == (
        [],
        RunsTold(),
    )


def test_a_run_of_both_jobs_is_two_runs():
    names = [*attempts(1), *certificates(1), keys.release(2, UID)]
    said, _runs = told(read(1, "open", ledgers=[1, 2]), read(2, ledgers=[1, 2], names=names))
    assert said == [
        "offload START 0",
        "offload COMPLETE 1",
        "release START 0",
        "release COMPLETE 1",
    ]


@pytest.mark.parametrize(("ledgers", "events"), [(200, [200]), (201, [200, 1]), (1000, [200] * 5)])
def test_an_event_names_two_hundred_ledgers_at_most(ledgers, events):
    ids = range(ledgers)
    said, _runs = told(read(1, "open", ledgers=ids), read(2, ledgers=ids, names=certificates(*ids)))
    running = [f"offload RUNNING {n}" for n in events[:-1]]
    assert said == ["offload START 0", *running, f"offload COMPLETE {events[-1]}"]


def test_a_run_of_many_pages_ends_with_the_last_one():
    pages = [
        read(1, "open", ledgers=[1, 2, 3]),
        read(2, names=certificates(1)),
        read(3, names=certificates(2), ledgers=[1, 2]),
        read(4, ledgers=[3]),
    ]
    said, runs = told(*pages)
    assert said == [
        "offload START 0",
        "offload RUNNING 1",
        "offload RUNNING 1",
        "offload COMPLETE 0",
    ]
    assert runs == RunsTold()


def test_a_copy_without_a_certificate_is_a_failure_that_names_its_ledger():
    pages = [
        read(1, "open", ledgers=[1, 2]),
        read(2, ledgers=[1, 2], names=[*attempts(1, 2), *certificates(2)]),
    ]
    events, _runs = events_of(pages[1], events_of(pages[0], RunsTold(), {})[1], {})
    assert [one.type for one in events] == ["FAIL"]
    assert events[0].why == "1 ledgers were begun and have no certificate: 1"
    assert len(events[0].lines) == 1


def test_a_certificate_on_a_later_page_ends_what_was_begun():
    pages = [
        read(1, "open", ledgers=[1]),
        read(2, names=attempts(1)),
        read(3, ledgers=[1], names=certificates(1)),
    ]
    assert told(*pages)[0] == ["offload START 0", "offload COMPLETE 1"]


def test_a_copy_that_is_tried_again_and_proven_is_no_failure():
    names = [keys.attempt(1, UID), *attempts(1), *certificates(1)]
    assert told(read(1, "open", ledgers=[1]), read(2, ledgers=[1], names=names))[0][-1] == (
        "offload COMPLETE 1"
    )


def test_a_quarantine_is_a_failure():
    names = [*attempts(1), *certificates(1), keys.quarantine(1, UID)]
    events, _runs = events_of(read(1, ledgers=[1], names=names), RunsTold(), {})
    assert (events[-1].type, events[-1].why) == (
        "FAIL",
        "1 copies failed a check and are in quarantine",
    )


def test_an_intent_without_a_release_is_a_failure():
    names = [keys.release_intent(1, UID), keys.release_intent(2, UID), keys.release(2, UID)]
    pages = [
        read(1, "open", command="release", ledgers=[1, 2]),
        read(2, command="release", ledgers=[1, 2], names=names),
    ]
    events, _runs = events_of(pages[1], events_of(pages[0], RunsTold(), {})[1], {})
    assert [(one.type, len(one.lines), one.why) for one in events] == [
        ("FAIL", 1, "1 ledgers were begun and have no release: 1")
    ]


@pytest.mark.parametrize("key", [keys.outcome(1, UID), keys.scrub(1, UID, "deep")])
def test_another_record_of_a_ledger_ends_no_release(key):
    names = [keys.release_intent(1, UID), key]
    pages = [
        read(1, "open", command="release", ledgers=[1]),
        read(2, command="release", ledgers=[1], names=names),
    ]
    assert told(*pages)[0] == ["release START 0", "release FAIL 0"]


def test_publications_of_a_proof_are_not_read():
    key = "publications/aa/0000000001.json"
    assert publications_on(read(1, "proof", names=[key])) == []
    assert [one.key for one in publications_on(read(1, names=[key]))] == [key]


def test_names_that_are_no_attempts_bring_nothing():
    names = ["certificates/7.json", "releases/strange.json", "attempts/x/y.json", "quarantines/1"]
    said, _runs = told(read(1, "open", ledgers=[1]), read(2, ledgers=[1], names=names))
    assert said == ["offload START 0", "offload COMPLETE 0"]


def test_many_ledgers_are_counted_and_some_are_named():
    events, _runs = events_of(
        read(1, ledgers=range(30), names=[*attempts(*range(30)), *certificates(29)]), RunsTold(), {}
    )
    assert events[-1].why == (
        "29 ledgers were begun and have no certificate: " + ", ".join(map(str, range(20))) + ", …"
    )


def test_a_run_that_died_fails_by_whoever_closed_it():
    pages = [
        read(1, "open", ledgers=[1, 2]),
        read(2, ledgers=[1, 2], run="poster", for_run="run-1", command="catalogue post"),
    ]
    _first, runs = events_of(pages[0], RunsTold(), {})
    [event], runs = events_of(pages[1], runs, {})
    assert (event.type, event.run, event.command) == ("FAIL", "run-1", "offload")
    assert event.why == "run run-1 died with 2 ledgers in work; run poster closed it"
    assert runs == RunsTold()


def test_a_run_that_only_slept_is_another_run_when_it_wakes():
    """It was closed as dead, and writes its own close page later."""
    pages = [
        read(1, "open", ledgers=[1]),
        read(2, ledgers=[1], run="poster", for_run="run-1"),
        read(3, ledgers=[1], names=certificates(1), at=LATER),
    ]
    assert told(*pages)[0] == [
        "offload START 0",
        "offload FAIL 0",
        "offload START 0",
        "offload COMPLETE 1",
    ]
    ids = {told_run_id("inst", "run-1", at, ToldJob.OFFLOAD) for at in (AT, LATER)}
    assert len(ids) == 2


def test_a_run_that_was_in_work_before_anybody_told_has_its_start_at_its_end():
    runs = RunsTold.of_work([("run-1", AT, [1])])
    events, _runs = events_of(read(9, ledgers=[1], names=certificates(1), at=LATER), runs, {})
    assert [(one.type, one.at) for one in events] == [("START", AT), ("COMPLETE", LATER)]


def published(*ledger_ids, key="publications/aa/0000000001.json"):
    record = Publication(
        ml_name="public/default/persistent/orders",
        ledgers=tuple(
            PublishedLedger(ledger_id=i, uid=UID, certificate_sha256="1" * 64, previous="2" * 64)
            for i in ledger_ids
        ),
        node_version=1,
        node_czxid=1,
        confirmed_by="unload",
        confirmed_at=AT,
        writer=page(1).stored.record.writer,
    )
    return {key: FoundRecord(stored=stored(key, record))}


def test_a_publication_and_a_certificate_of_a_ledger_are_one_line():
    found = published(1, 2)
    names = [*certificates(1), *found]
    closing = read(1, ledgers=[1, 2], names=names)
    assert [one.key for one in publications_on(closing)] == [*found]
    events, _runs = events_of(closing, RunsTold(), found)
    lines = events[-1].lines
    assert [(one.ledger_id, one.certificate is None) for one in lines] == [(1, False), (2, True)]
    assert {one.publication for one in lines} == {*publications_on(closing)}


def test_a_publication_that_is_gone_brings_no_ledger():
    key = "publications/aa/0000000001.json"
    gone = {key: FoundRecord(missing=True, why="nothing lies there")}
    pages = [read(1, "open", ledgers=[1]), read(2, ledgers=[1], names=[key])]
    assert told(*pages, published=gone)[0] == ["offload START 0", "offload COMPLETE 0"]


def test_runs_in_work_are_the_same_after_a_way_through_json():
    _said, runs = told(
        read(1, "open", ledgers=[3, 1]),
        read(2, names=attempts(1)),
        read(3, "open", run="run-2", command="release", ledgers=[7]),
    )
    assert RunsTold.from_json(runs.as_json()) == runs
    assert canonical(RunsTold.from_json(runs.as_json())) == canonical(runs)


@pytest.mark.parametrize(
    "found",
    [
        [],
        {"run": {}},
        {"run": {"since": "yesterday"}},
        {"run": {**RunsTold.of_work([("r", AT, [1])]).as_json()["r"], "since": "2026-01-01"}},
        {"run": {**RunsTold.of_work([("r", AT, [1])]).as_json()["r"], "told": ["dinner"]}},
    ],
)
def test_runs_that_are_none_are_told_by_name(found):
    with pytest.raises(FormatError, match="runs in work"):
        RunsTold.from_json(found)


def test_every_command_that_is_known_is_one():
    known = {job.name for job in define_jobs(CLUSTER)}
    known |= {f"tierkeeper {name}" for name, _function in verbs()}
    assert {*JOB_OF} <= known
