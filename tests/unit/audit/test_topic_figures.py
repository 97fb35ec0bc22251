"""What an audit saw, by topic: every figure stands in one row, and the rows add up."""

import json

import pytest

from tests.support.audited_bucket import ML_NAME, put_chain
from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.audit.audit import audit_store
from tiering_assets.audit.topic_figures import UNKNOWN
from tiering_assets.cli.main import run
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.resources.settings import Settings

ORDERS = "t/ns/persistent/orders"
TOPIC, OTHER = "persistent://public/default/audited", "persistent://t/ns/orders"
SUMMED = ("ledgers", "attempts", "objects", "bytes_read")


@pytest.fixture
def store():
    store = SimulatedObjectStore()
    book = RecordBook(store, "inst")
    for ledger_id in (41, 42):
        put_chain(store, book, ledger_id, ml_name=ML_NAME)
    put_chain(store, book, 43, ml_name=ORDERS)
    put_chain(store, book, 43, ml_name=ORDERS, outcome="abandon")
    return store


def audit(store, **options):
    report = audit_store(store, Settings(), deep=True, **options)
    return report, {one.topic: one for one in report.topics}


def summed(report, name):
    return sum(getattr(one, name) for one in report.topics)


def test_each_ledger_counts_under_its_topic(store):
    report, rows = audit(store)
    assert list(rows) == [TOPIC, OTHER]
    assert (rows[TOPIC].ledgers, rows[TOPIC].attempts, rows[TOPIC].objects) == (2, 2, 4)
    assert (rows[OTHER].ledgers, rows[OTHER].attempts, rows[OTHER].objects) == (1, 2, 2)
    assert rows[TOPIC].records == 2 * 6
    assert rows[OTHER].records == 6 + 3
    assert rows[TOPIC].bytes_read > rows[OTHER].bytes_read > 0
    for name in (*SUMMED, "records"):
        assert summed(report, name) == getattr(report, name)


def test_a_ledger_whose_records_name_no_readable_topic_is_of_an_unknown_one(store):
    for summary in [*store.list_objects()]:
        if "/43/" in summary.key or "/publications/" in summary.key:
            store.overwrite(summary.key, b"{")
    report, rows = audit(store)
    assert list(rows) == [TOPIC, UNKNOWN]
    assert (rows[UNKNOWN].ledgers, rows[UNKNOWN].attempts) == (1, 2)
    assert summed(report, "findings") == len(report.findings)
    assert rows[UNKNOWN].findings >= 9
    for name in SUMMED:
        assert summed(report, name) == getattr(report, name)


def test_a_ledger_without_records_counts_as_asked(store):
    report, rows = audit(store, ledger_ids=[41, 99])
    assert (rows[UNKNOWN].ledgers, rows[UNKNOWN].findings) == (1, 1)
    assert summed(report, "ledgers") == report.ledgers == 2


def test_failures_and_plans_are_in_the_sum_alone(store):
    book = RecordBook(store, "inst")
    store.put(f"{book.prefix}{keys.failure(41)}", b"{")
    report, rows = audit(store)
    assert report.records == summed(report, "records") + 1
    assert rows[TOPIC].findings == 1


def test_the_document_has_the_same_figures(store, capsys, monkeypatch):
    monkeypatch.setattr("tiering_assets.audit.audit.S3ObjectStore", lambda *_a: store)
    words = ["audit", "verify", "--all", "--deep", "--set", "store.endpoint=http://127.0.0.1:1"]
    words += ["--set", "store.access_key=a", "--set", "store.secret_key=b"]
    words += ["--set", "store.bucket=b"]
    assert run([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["report"]
    _report, rows = audit(store)
    assert told["topics"] == [
        {name: getattr(row, name) for name in type(row).__slots__} for row in rows.values()
    ]
    assert "sights" not in told
    assert run(words) == 0
    head, *lines, said = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "TOPIC", "LEDGERS", "ATTEMPTS", "RECORDS", "OBJECTS", "BYTES", "READ", "FINDINGS",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines] == [*rows]
    assert said.startswith("instance inst: 3 ledgers, 4 attempts")
