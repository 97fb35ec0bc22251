"""All four notebooks, run headless on what real servers hold, beside what others say of it.

A consumer of Pulsar's and the listing of the bucket by boto3 are the others; neither is asked by a
proof of ours.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from bs4 import BeautifulSoup
from pyarrow import parquet

from tests.stack.test_lineage import consumed
from tests.support.cli_shell import Shell
from tests.support.default_cluster import TOPIC_AUDIT
from tests.support.notebooks import source_of
from tests.support.tiered_cluster import post_all, tables_apart, tiered_cluster
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.definitions import defs
from tiering_assets.notebook.executed import execute, source_of_notebook
from tiering_assets.resources.devstack.bucket import s3_client
from tiering_assets.resources.devstack.traffic import TopicSpec

pytestmark = [pytest.mark.stack, pytest.mark.slow]
NAME = "notebooks"
RELEASED = TopicSpec(
    topic="public/default/notebook-released",
    messages=120,
    payload_bytes=300,
    batched=True,
    compression="LZ4",
    keys=5,
)
PUBLISHED = TopicSpec(
    topic="public/default/notebook-published", messages=40, payload_bytes=700, keys=5
)
EDITED, INTEGRITY = "audit.report.sights.attempts.pop()\n", 14


@dataclass(frozen=True)
class Ledgers:
    """Ids of the closed ledgers of both topics."""

    released: list[int]
    published: list[int]


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack, catalogue_root=tables_apart(stack, NAME)) as connected:
        yield connected


@pytest.fixture(scope="module")
def ledgers(cluster):
    """One topic is released, another one published; the catalogue has both."""
    for spec in (RELEASED, PUBLISHED):
        cluster.fill(spec)
    found = Ledgers(cluster.ledger_ids(RELEASED), cluster.ledger_ids(PUBLISHED))
    cluster.offload([*found.released, *found.published])
    cluster.release(RELEASED, found.released)
    catalogue = Catalogue.of(cluster.steps)
    post_all(cluster.steps)
    scan(cluster.steps, catalogue)
    prove(cluster.steps, catalogue)
    return found


@pytest.fixture(scope="module")
def variables(stack):
    return {**stack.environment(), "TIERKEEPER_CATALOGUE_ROOT": tables_apart(stack, NAME)}


@pytest.fixture
def environment(variables, monkeypatch):
    """What a kernel is started with: settings as every edge gets them."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(ledgers, environment, tmp_path):
    """Run a notebook with parameters: each cell's shown data by the cell's id."""

    def headless(source, **parameters):
        target = tmp_path / f"{Path(source).stem}-ran.ipynb"
        execute(source, target, parameters)
        return shown(target)

    return headless


def shown(notebook):
    """By cell: what it shows last, as text and as a table's cells."""
    found = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        data = [one["data"] for one in cell.get("outputs", ()) if "data" in one]
        if data:
            found[cell["id"]] = {kind: "".join(said) for kind, said in data[-1].items()}
    return found


def rows(data):
    """Of a frame's table: dictionaries of texts, and of numbers."""
    table: Any = BeautifulSoup(data["text/html"], "html.parser").table
    names = [one.text for one in table.thead.find_all("th")][1:]
    return [
        dict(zip(names, map(value, row.find_all("td")), strict=True))
        for row in table.tbody.find_all("tr")
    ]


def value(cell):
    return int(cell.text) if cell.text.isdecimal() else cell.text


def listed(stack):
    """Size of every object in the bucket by its key, by boto3 alone."""
    client, ends = s3_client(stack.endpoints), stack.endpoints
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=ends.s3_bucket)
    return {one["Key"]: one["Size"] for page in pages for one in page.get("Contents", ())}


def test_one_ledger_is_followed_to_its_release(run, ledgers, cluster, stack):
    [ledger_id] = ledgers.released
    found = run(source_of_notebook("follow_one_ledger"), ledger_id=ledger_id)
    assert cluster.steps.ledgers.read(ledger_id) is None
    assert rows(found["bookies"]) == []
    key = f"{cluster.context_uid(RELEASED, ledger_id)}-ledger-{ledger_id}"
    blocks = rows(found["blocks"])
    assert {one["data_key"] for one in blocks} == {key}
    assert max(one["offset"] + one["length"] for one in blocks) == listed(stack)[key]
    places = consumed(stack.endpoints.service_url, RELEASED)
    assert sum(one["messages"] for one in blocks) == len(places)
    for proof in ("rows-proof", "bytes-proof", "records-proof", "release-proof"):
        assert {one["agrees"] for one in rows(found[proof])} == {"True"}
    assert "released" in found["steps"]["image/svg+xml"]


def test_a_published_ledger_is_compared_with_its_bookies(run, ledgers, cluster):
    [ledger_id] = ledgers.published
    found = run(source_of_notebook("follow_one_ledger"), ledger_id=ledger_id)
    [row] = rows(found["bookies"])
    entries = [*cluster.bookie_entries(ledger_id)]
    assert (row["entries"], row["bytes"]) == (len(entries), sum(len(one) for _id, one in entries))
    assert "equal its certificate and the bookies" in found["bytes-proof"]["text/html"]


@pytest.fixture
def shell(stack, variables, tmp_path):
    root = variables["TIERKEEPER_CATALOGUE_ROOT"]
    return Shell(stack, tmp_path, TIERKEEPER_CATALOGUE_ROOT=root)


def test_an_audit_holds_until_a_figure_is_edited(run, ledgers, shell, stack, tmp_path):
    report = tmp_path / "audit.html"
    found = run(source_of_notebook("audit_a_topic"), topic=RELEASED.topic, report=str(report))
    [proof] = rows(found["proofs"])
    assert proof["verdict"] == "equal"
    sizes = [
        size
        for key, size in listed(stack).items()
        if key.startswith(f"{proof['attempt']}-ledger-{proof['ledger_id']}")
    ]
    assert len(sizes) == 2
    assert proof["object_bytes"] == proof["bytes_read"] == sum(sizes)
    [release] = rows(found["releases"])
    assert [release["ledger_id"]] == ledgers.released
    assert {"attempts", "certificates", "publications", "releases"} <= {
        one["kind"] for one in rows(found["acts"])
    }
    [covered] = rows(found["coverage"])
    assert (covered["covered"], covered["findings"]) == (1, 0)
    checked = shell.document("audit", "verify", "--check-report", report)
    assert (checked["result"], checked["report_check"]["attempts"]) == ("ok", 1)
    text, edited = report.read_text(), tmp_path / "edited.html"
    assert str(sum(sizes)) in text
    edited.write_text(text.replace(str(sum(sizes)), str(sum(sizes) + 1), 1))
    said = shell("audit", "verify", "--check-report", edited, code=INTEGRITY)
    assert "edited" in said.stderr


def test_an_audit_with_an_edited_cell_is_not_what_the_bucket_says(run, ledgers, shell, tmp_path):
    document = json.loads(source_of_notebook("audit_a_topic").read_text())
    [cell] = [one for one in document["cells"] if one["id"] == "report"]
    cell["source"] = EDITED + source_of(cell)
    source, report = tmp_path / "edited.ipynb", tmp_path / "audit.md"
    source.write_text(json.dumps(document))
    run(source, topic=RELEASED.topic, deep=False, report=str(report))
    found = shell.document("audit", "verify", "--check-report", report, code=1)
    [ledger_id] = ledgers.released
    assert found["result"] == "findings"
    assert all(f"ledger {ledger_id}, " in one for one in found["findings"])


def test_cold_messages_are_those_that_a_consumer_gets(run, ledgers, stack, tmp_path):
    export = tmp_path / "cold.parquet"
    found = run(
        source_of_notebook("query_cold_messages"),
        topic="public/default/notebook-*",
        since="2020-01-01",
        until="2100-01-01",
        export=str(export),
    )
    table = parquet.read_table(export)
    names = [table[name].to_pylist() for name in ("ledger_id", "entry_id", "batch_index")]
    cold = dict(zip(zip(*names, strict=True), table["payload"].to_pylist(), strict=True))
    got = {spec: consumed(stack.endpoints.service_url, spec) for spec in (RELEASED, PUBLISHED)}
    assert cold == {
        place: said["payload"] for places in got.values() for place, said in places.items()
    }
    messages = Counter[str]()
    for row in rows(found["year"]):
        messages[row["topic"]] += row["messages"]
    assert messages == {spec.topic: len(places) for spec, places in got.items()}
    figures = ("equal", "different", "cold_only", "consumer_only")
    assert {row["topic"]: [row[one] for one in figures] for row in rows(found["consumer"])} == {
        spec.topic: [len(places), 0, 0, 0] for spec, places in got.items()
    }


def test_the_bytes_are_where_the_bucket_lists_them(run, ledgers, cluster, stack):
    sizes = listed(stack)
    found = run(source_of_notebook("where_the_bytes_went"), topics=100_000)
    by_topic = {row["topic"].replace("persistent/", ""): row for row in rows(found["topic"])}
    for spec, ids in ((RELEASED, ledgers.released), (PUBLISHED, ledgers.published)):
        keys = [f"{cluster.context_uid(spec, one)}-ledger-{one}" for one in ids]
        assert by_topic[spec.topic]["object_bytes"] == sum(sizes[key] for key in keys)
    assert by_topic[RELEASED.topic]["bookie_bytes"] == 0
    on_bookies = sum(cluster.ledger(one).length for one in ledgers.published)
    assert by_topic[PUBLISHED.topic]["bookie_bytes"] == on_bookies
    data = {row["kind"]: row for row in rows(found["bucket"])}["data objects"]
    theirs = [size for key, size in sizes.items() if re.fullmatch(r"[0-9a-f-]{36}-ledger-\d+", key)]
    assert (data["objects"], data["bytes"]) == (len(theirs), sum(theirs))


def test_the_job_keeps_the_notebook_that_it_ran(ledgers, environment, shell, monkeypatch, tmp_path):
    monkeypatch.setenv("TIERKEEPER_DAGSTER_NOTEBOOK_DIR", str(tmp_path / "kept"))
    with dg.DagsterInstance.ephemeral() as instance:
        result = defs.resolve_job_def("audit").execute_in_process(
            instance=instance,
            run_config={
                "ops": {"pulsar__topic_audit": {"config": {"topic": RELEASED.topic, "deep": True}}}
            },
        )
        [told] = instance.fetch_materializations(TOPIC_AUDIT, limit=1).records
    event: Any = told.asset_materialization
    metadata = {name: one.value for name, one in event.metadata.items()}
    folder = tmp_path / "kept" / result.run_id
    assert metadata["notebook"] == str(folder / "audit_a_topic.ipynb")
    assert (metadata["attempts"], metadata["findings"]) == (1, 0)
    assert metadata["topic"] == RELEASED.topic
    [proof] = rows(shown(folder / "audit_a_topic.ipynb")["proofs"])
    assert metadata["bytes_read"] == proof["bytes_read"] > 0
    assert str(proof["ledger_id"]) in Path(metadata["page"]).read_text()
    checked = shell.document("audit", "verify", "--check-report", metadata["report"])
    assert checked["report_check"]["facts_sha256"] == metadata["facts_sha256"]
