"""What a server receives, judged by the standard's own schemas, and what it costs."""

import json
import re
from dataclasses import replace
from datetime import datetime

import pytest

from tests.support.lineage_spec import ROOT, facets_of, problems
from tests.unit.catalogue.desk import asked, example
from tests.unit.catalogue.openlineage.outbox import ML_NAME, RELEASE, uid_of
from tiering_assets.catalogue.openlineage.event_json import OWN
from tiering_assets.catalogue.post import post
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, Release
from tiering_assets.resources.settings_lineage import OpenLineageSettings


def of_job(server, name):
    return [one for one in server.events if one["job"]["name"] == f"pulsar.{name}"]


def ids(events):
    return {one["run"]["runId"] for one in events}


@pytest.fixture
def every_kind(outbox, server):
    """Events of each kind that there is."""
    outbox.offload([1, 2])
    outbox.release([1])
    failing = outbox.book("fails")
    failing.take_up([5])
    outbox.attempt(failing, 5)
    failing.close_page()
    died = outbox.book("dies", RELEASE)
    died.take_up([6])
    outbox.stack.book.close_page_for("dies", [6])
    gone = outbox.offload([7], run="gone")[0]
    outbox.desk.drop(gone.key)
    outbox.desk.chain(42, ml_name="public/default/persistent/part-partition-3")
    outbox.desk.chain(43, ml_name="none of Pulsar's", block_digest="entries")  # an older version
    outbox.desk.book.close_page()
    outbox.tell_all()
    return server.events


def test_every_event_is_right_by_the_schemas_that_it_names(every_kind):
    assert len(every_kind) > 12
    assert [why for event in every_kind for why in problems(event)] == []
    kinds = {one["eventType"] for one in every_kind}
    assert kinds == {"START", "COMPLETE", "FAIL"}
    names = {name.partition(".")[2] for one in every_kind for name, _facet in facets_of(one)}
    standard = {"errorMessage", "inputStatistics", "jobType", "outputStatistics"}
    assert names == {*OWN, *standard, "processing_engine", "storage"}


def test_an_event_that_is_wrong_is_noticed(every_kind):
    """The judge of the test above sees what a server would."""
    event = json.loads(json.dumps(every_kind[-1]))
    for path, value in (
        (("run", "runId"), "7"),
        (("eventType",), "END"),
        (("eventTime",), "noon"),
        (("run", "facets", "tierkeeper_run", "page"), "first"),
        (("run", "facets", "tierkeeper_run", "more"), 1),
        (("run", "facets", "processing_engine", "version"), 4),
    ):
        wrong = json.loads(json.dumps(event))
        *way, last = path
        holder = wrong
        for name in way:
            holder = holder[name]
        holder[last] = value
        assert problems(wrong) != [], path


def test_an_offload_reads_a_topic_and_writes_an_object_for_each_ledger(outbox, server):
    [first, _second] = outbox.offload([1, 2])
    outbox.tell_all()
    start, end = of_job(server, "offload")
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert ids([start, end]) == {end["run"]["runId"]}
    assert (start["inputs"], start["outputs"]) == ([], [])
    [topic] = end["inputs"]
    assert (topic["namespace"], topic["name"]) == (
        "pulsar://pulsar",
        "persistent://public/default/orders",
    )
    assert topic["inputFacets"]["inputStatistics"]["size"] == 2 * first.record.payload_bytes
    certificate = first.record
    output = end["outputs"][0]
    assert (output["namespace"], output["name"]) == ("s3://tiered", f"{uid_of(1)}-ledger-1")
    statistics = output["outputFacets"]["outputStatistics"]
    assert (statistics["size"], statistics["fileCount"]) == (certificate.data.size, 1)
    assert "rowCount" not in statistics  # this certificate does not know its messages
    assert output["facets"]["storage"]["storageLayer"] == "s3"
    own = output["facets"]["tierkeeper_ledger"]
    assert own["ledgerId"] == 1
    assert own["uid"] == str(uid_of(1))
    assert own["certificateSha256"] == first.sha256
    assert own["page"] == 2
    assert output["facets"]["tierkeeper_publication"]["certificateSha256"] == first.sha256
    run = end["run"]["facets"]["tierkeeper_run"]
    assert (run["run"], run["instance"], run["page"], run["ledgers"]) == ("offload-1", "inst", 2, 2)
    assert run["command"] == "tierkeeper ledger offload"


def test_a_release_says_what_it_freed(outbox, server):
    outbox.release([1])
    outbox.tell_all()
    [_start, end] = of_job(server, "release")
    [output] = end["outputs"]
    assert output["name"] == f"{uid_of(1)}-ledger-1"
    assert output["namespace"] == "s3://sim-bucket"
    facet = output["facets"]["tierkeeper_release"]
    assert facet["bytesReleased"] == example(Release).bytes_released
    assert "tierkeeper_ledger" not in output["facets"]
    assert output["outputFacets"] == end["inputs"][0]["inputFacets"] == {}


def test_messages_are_counted_where_every_block_tells(outbox, server):
    book = outbox.book("counts")
    plain = example(Certificate)
    blocks = tuple(replace(plain.blocks[0], part_number=i, messages=i) for i in (1, 2))
    book.create(keys.certificate(42, plain.uid), replace(plain, blocks=blocks))
    book.close_page()
    outbox.tell_all()
    [_start, end] = of_job(server, "offload")
    assert end["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert end["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 3


def test_a_version_of_an_object_is_told(outbox, server):
    book = outbox.book("versions")
    plain = example(Certificate)
    record = replace(plain, data=replace(plain.data, version_id="v7"))
    book.create(keys.certificate(42, plain.uid), record)
    book.close_page()
    outbox.tell_all()
    [output] = of_job(server, "offload")[1]["outputs"]
    assert output["facets"]["version"]["datasetVersion"] == "v7"


def test_partitions_of_a_topic_are_one_input(outbox, server):
    book = outbox.book("parts")
    book.take_up([1, 2, 3])
    for ledger_id, name in ((1, "p-partition-0"), (2, "p-partition-1"), (3, "alone")):
        outbox.certify(book, ledger_id, f"public/default/persistent/{name}")
    book.close_page()
    outbox.tell_all()
    [_start, end] = of_job(server, "offload")
    assert [one["name"] for one in end["inputs"]] == [
        "persistent://public/default/p",
        "persistent://public/default/alone",
    ]
    topics = [one["facets"]["tierkeeper_ledger"]["topic"] for one in end["outputs"]]
    assert topics[:2] == [f"persistent://public/default/p-partition-{n}" for n in (0, 1)]


def test_a_publication_by_a_later_run_is_told_of_the_same_object(outbox, server):
    certified = outbox.offload([1], publish=False)
    book = outbox.book("later")
    book.take_up([1])
    outbox.publish(book, certified)
    book.close_page()
    outbox.tell_all()
    first, second = (one for one in of_job(server, "offload") if one["outputs"])
    assert first["outputs"][0]["name"] == second["outputs"][0]["name"]
    assert {*second["outputs"][0]["facets"]} == {"storage", "tierkeeper_publication"}
    assert ids([first]) != ids([second])


def test_names_and_namespaces_are_those_of_the_settings(outbox, server):
    settings = outbox.stack.settings
    events = OpenLineageSettings(url=server.url, namespace="prod", topics="pulsar://broker:6650")
    outbox.stack.settings = replace(settings, openlineage=events)
    outbox.offload([1])
    outbox.tell_all()
    [_start, end] = of_job(server, "offload")
    assert end["job"]["namespace"] == "prod"
    assert end["inputs"][0]["namespace"] == "pulsar://broker:6650"


def test_a_posting_reads_records_and_writes_tables(outbox, server, tmp_path):
    outbox.offload([1])
    outbox.tell_all()
    start, end = of_job(server, "catalogue-post")
    assert ids([start, end]) == {start["run"]["runId"]}
    assert [one["name"] for one in end["inputs"]] == ["tierkeeper/inst"]
    assert [one["namespace"] for one in end["outputs"]] == ["file"] * 3
    assert end["outputs"][0]["name"] == f"{tmp_path}/catalogue/blocks"
    assert end["outputs"][0]["facets"]["storage"]["storageLayer"] == "delta"
    run = end["run"]["facets"]["tierkeeper_run"]
    assert (run["afterPage"], run["page"]) == (0, 2)


def test_tables_in_a_bucket_are_named_by_it(outbox, server):
    outbox.catalogue.place = replace(outbox.catalogue.place, root="s3://lake/a/b")
    outbox.offload([1])
    outbox.tell_all()
    output = of_job(server, "catalogue-post")[1]["outputs"][0]
    assert (output["namespace"], output["name"]) == ("s3://lake", "a/b/blocks")


def test_a_failed_run_says_why(outbox, server):
    book = outbox.book("fails")
    book.take_up([5])
    outbox.attempt(book, 5)
    book.close_page()
    outbox.tell_all()
    [_start, end] = of_job(server, "offload")
    assert end["eventType"] == "FAIL"
    assert end["run"]["facets"]["errorMessage"]["message"] == (
        "1 ledgers were begun and have no certificate: 5"
    )


def test_what_a_run_does_later_is_another_run(outbox, server):
    """As of a command that works on batch after batch."""
    outbox.offload([1], run="same")
    outbox.pass_by(10)
    outbox.offload([2], run="same")
    outbox.tell_all()
    events = of_job(server, "offload")
    assert [one["eventType"] for one in events] == ["START", "COMPLETE"] * 2
    assert len(ids(events)) == 2


def test_times_are_those_of_the_pages(outbox, server):
    book = outbox.book("slow")
    book.take_up([1])
    began = outbox.desk.objects.now
    outbox.pass_by(60)
    outbox.certify(book, 1)
    book.close_page()
    ended = outbox.desk.objects.now
    outbox.pass_by(3600)
    outbox.tell_all()
    times = [datetime.fromisoformat(one["eventTime"]) for one in of_job(server, "offload")]
    assert times == [began, ended]


@pytest.mark.parametrize(("ledgers", "events"), [(10, 2), (200, 2), (201, 3)])
def test_a_run_is_a_few_events_and_each_ledger_a_request(outbox, server, ledgers, events):
    outbox.offload(range(ledgers))
    calls = outbox.desk.objects.calls
    calls.clear()
    outbox.tell_all()
    assert len(of_job(server, "offload")) == events
    assert len(server.events) == len(server.asked) == events + 2
    made = [name for name, _key in calls]
    # Of the store: each certificate, a publication, two pages, the mark; the newest page is ours.
    assert made.count("get") == ledgers + 1 + 2 + 1
    assert made.count("put") == 2


def test_nothing_new_costs_one_request_and_no_event(outbox, server):
    outbox.offload([1])
    outbox.tell_all()
    before = len(server.asked)
    outbox.desk.objects.calls.clear()
    outbox.tell()
    assert [name for name, _key in outbox.desk.objects.calls] == ["list_objects", "get"]
    assert len(server.asked) == before


def test_events_of_one_connection_share_it(outbox, server):
    outbox.offload(range(10))
    outbox.tell_all()
    assert len(server.asked) == 4
    assert len(server.connections) == 1


@pytest.mark.slow
def test_ten_thousand_ledgers_of_a_run(outbox, server):
    book = outbox.book("large")
    book.take_up(range(10_000))
    certified = [outbox.certify(book, ledger_id) for ledger_id in range(10_000)]
    for first in range(0, 10_000, 1000):
        outbox.publish(book, certified[first : first + 1000])
    book.close_page()
    assert outbox.tell(seconds=600).why == "told up to page 30"
    events = of_job(server, "offload")
    assert [one["eventType"] for one in events].count("START") == 1
    assert [events[0]["eventType"], events[-1]["eventType"]] == ["START", "COMPLETE"]
    told = [one["name"] for event in events for one in event["outputs"]]
    assert len({*told}) == 10_000
    # Each ledger by its certificate, then by its publication; the end names none.
    assert len(events) == 1 + 50 + 50 + 1
    assert max(len(one["outputs"]) for one in events) == 200
    assert [why for one in (events[0], events[1], events[-1]) for why in problems(one)] == []


def test_the_event_that_the_page_shows_is_right():
    text = (ROOT / "docs" / "lineage.md").read_text()
    [shown] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert problems(json.loads(shown)) == []


def test_what_is_posted_is_what_is_told(outbox, server):
    """By the tables: what events say of a block's ledger, the catalogue says."""
    outbox.desk.chain(42)
    outbox.desk.book.close_page()
    post(outbox.stack, outbox.catalogue)
    outbox.tell_all()
    [output] = of_job(server, "offload")[1]["outputs"]
    rows = asked(outbox.catalogue, "select * from blocks order by part")
    assert {row["data_key"] for row in rows} == {output["name"]}
    assert sum(row["length"] for row in rows) == output["outputFacets"]["outputStatistics"]["size"]
    own = output["facets"]["tierkeeper_ledger"]
    assert {(row["certificate_sha256"], row["page"]) for row in rows} == {
        (own["certificateSha256"], own["page"])
    }


def test_a_publication_of_many_topics_is_read_once(outbox, server):
    certified = outbox.offload([1, 2, 3], publish=False)
    book = outbox.book("publishes")
    book.take_up([1, 2, 3])
    outbox.publish(book, certified)
    book.close_page()
    outbox.desk.objects.calls.clear()
    outbox.tell_all()
    key = book.prefix + keys.publication(ML_NAME, 1)
    assert outbox.desk.objects.calls.count(("get", key)) == 1
