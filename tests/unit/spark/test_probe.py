"""The probe as a plain function: what it tells of a worker, and that it leaves nothing behind.

Judged at once: what is wrong is named with the worker, what was expected, what was found and the
next step.
"""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.doctor.worker_check import Expected, Grade, judge_workers
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.settings import BookieSettings, Settings
from tiering_assets.resources.settings import StoreSettings as Store
from tiering_assets.resources.settings_of_workers import plain_settings
from tiering_assets.spark.probe import probe, probe_worker, run_probes, this_software
from tiering_assets.tasks.worker_rows import WorkerOrder, WorkerRow, decode_row, encode_order

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MARKER = "what the driver wrote"
ROW = WorkerRow(slot=0, host="worker-7", executor="2", pid=4711)
SETTINGS = Settings(
    store=Store(endpoint="http://127.0.0.1:9", bucket="b", access_key="ak", secret_key="sk")
)
PREFIX = "tierkeeper/i/probe/x/"


@pytest.fixture
def store():
    made = SimulatedObjectStore("b", now=NOW)
    made.put("marker", MARKER.encode())
    return made


@pytest.fixture
def bookie():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """A process to which nobody gave credentials."""
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


def order_of(**bookies):
    return WorkerOrder(bookies=bookies, upload_prefix=PREFIX, marker_key="marker")


def judged(order, row, **changes):
    expected = Expected(
        software=this_software(),
        has_password=False,
        marker=MARKER,
        bucket="b",
        skew_max_s=60,
        slots=1,
    )
    *found, slots = judge_workers(order, replace(expected, **changes), [row])
    assert slots.check == "slots"
    return found


def problem(order, row, **changes):
    """The one thing that is wrong."""
    [found] = judged(order, row, **changes)
    assert found.worker == "worker-7/2/4711"
    assert found.next_step
    return found


def test_a_sound_worker_is_told_in_one_line_and_nothing_is_left(store, bookie):
    order = order_of(bk=bookie)
    row = probe(order, SETTINGS, ROW, store=store, clock=lambda: NOW)
    [found] = judged(order, row)
    assert (found.level, found.worker) == (Grade.OK, "worker-7/2/4711")
    assert row.software == this_software()
    assert set(row.software.packages) >= {"pyarrow", "boto3", "google-crc32c", "protobuf"}
    assert all(row.software.packages.values())
    assert ("create_upload", f"{PREFIX}worker-0") in store.calls
    assert store.peek_uploads() == []
    assert store.peek_keys() == ["marker"]
    assert {name for name, _ in store.calls} == {
        "put", "server_time", "get", "create_upload", "abort_upload", "list_uploads",
    }  # fmt: skip


def test_a_bookie_that_cannot_be_reached_is_named_with_both_addresses(store, bookie, closed_port):
    mapped = BookieSettings(
        address_map=f"bookie-2.invalid=127.0.0.1, 10.0.0.9:1=127.0.0.1:{closed_port}"
    )
    order = order_of(good=bookie, bad=("bookie-2.invalid", closed_port))
    found = problem(
        order, probe(order, replace(SETTINGS, bookies=mapped), ROW, store=store, clock=lambda: NOW)
    )
    assert (found.level, found.check) == (Grade.FAIL, "bookie bad")
    assert (
        f"bookie-2.invalid:{closed_port} (by bookies.address_map 127.0.0.1:{closed_port})"
        in found.found
    )
    assert "refused" in found.found
    assert "bookies.address_map" in found.next_step


@pytest.mark.parametrize(
    ("off_s", "level"), [(600, Grade.FAIL), (-600, Grade.FAIL), (61, Grade.FAIL), (6, Grade.WARN)]
)
def test_a_clock_that_is_off_is_named(store, off_s, level):
    clock = NOW + timedelta(seconds=off_s)
    row = probe(order_of(), SETTINGS, ROW, store=store, clock=lambda: clock)
    found = judged(order_of(), row)[0]
    assert (found.level, found.check, found.found) == (level, "clock", f"{off_s:+d} s")
    assert "NTP" in found.next_step


def test_a_clock_a_few_seconds_off_is_no_problem(store):
    row = probe(order_of(), SETTINGS, ROW, store=store, clock=lambda: NOW + timedelta(seconds=4))
    assert [found.level for found in judged(order_of(), row)] == [Grade.OK]


def test_without_credentials_the_store_is_not_asked(store, nobody):
    settings = replace(SETTINGS, store=Store(endpoint="http://127.0.0.1:9", bucket="b"))
    before = len(store.calls)
    found = problem(order_of(), probe(order_of(), settings, ROW, store=store))
    assert (found.check, found.found) == ("credentials", "none")
    assert "TIERKEEPER_STORE_ACCESS_KEY" in found.next_step
    assert len(store.calls) == before


def test_where_credentials_were_found_is_told_and_never_what_they_are(store, nobody, tmp_path):
    settings = replace(SETTINGS, store=Store(endpoint="http://127.0.0.1:9", bucket="b"))

    def told():
        return probe(order_of(), settings, ROW, store=store, clock=lambda: NOW)

    shared = tmp_path / "credentials"
    shared.write_text(
        "[default]\naws_access_key_id = AKPLANTED\naws_secret_access_key = SKPLANTED\n"
    )
    nobody.setenv("AWS_SHARED_CREDENTIALS_FILE", str(shared))
    assert told().credentials == "shared-credentials-file"
    nobody.setenv("AWS_ACCESS_KEY_ID", "AKPLANTED")
    nobody.setenv("AWS_SECRET_ACCESS_KEY", "SKPLANTED")
    assert told().credentials == "env"
    assert "PLANTED" not in repr(told())


def test_another_buckets_credentials_are_named(store):
    denied = ObjectStoreError("bucket 'b': GET of 'marker' was refused (AccessDenied)")
    store.fail("get", error=denied)
    store.fail("create_upload", error=denied)
    row = probe(order_of(), SETTINGS, ROW, store=store, clock=lambda: NOW)
    bucket, upload = judged(order_of(), row)
    assert (bucket.check, bucket.level) == ("bucket", Grade.FAIL)
    assert "credentials from tierkeeper's settings" in bucket.found
    assert "AccessDenied" in bucket.found
    assert "not another's" in bucket.next_step
    assert (upload.check, upload.level) == ("upload", Grade.FAIL)
    assert "s3:PutObject" in upload.next_step


@pytest.mark.parametrize("there", [None, b"another text"])
def test_another_bucket_of_that_name_is_told_from_ours(there):
    other = SimulatedObjectStore("b", now=NOW)
    if there is not None:
        other.put("marker", there)
    found = problem(order_of(), probe(order_of(), SETTINGS, ROW, store=other, clock=lambda: NOW))
    assert found.check == "bucket"
    assert "another bucket of that name" in found.found
    assert "store.endpoint" in found.next_step


def test_an_upload_that_stays_is_named(store, monkeypatch):
    monkeypatch.setattr(SimulatedObjectStore, "abort_upload", lambda *_args: None)
    row = probe(order_of(), SETTINGS, ROW, store=store, clock=lambda: NOW)
    [(key, upload_id)] = store.peek_uploads()
    found = problem(order_of(), row)
    assert found.found == f"still listed: {key} {upload_id}"


def test_a_store_that_does_not_answer_is_no_pass(store):
    store.fail("server_time", error=ObjectStoreError("bucket 'b': cannot reach the endpoint"))
    row = probe(order_of(), SETTINGS, ROW, store=store, clock=lambda: NOW)
    found = judged(order_of(), row)[0]
    assert (found.level, found.check) == (Grade.FAIL, "store")
    assert "cannot reach" in found.found


def test_a_worker_without_the_ledger_password_is_named_where_the_driver_has_it(store):
    row = probe(order_of(), SETTINGS, ROW, store=store, clock=lambda: NOW)
    found = judged(order_of(), row, has_password=True)[0]
    assert (found.level, found.check) == (Grade.FAIL, "ledger password")
    assert "TIERKEEPER_BOOKIES_PASSWORD_FILE" in found.next_step


@pytest.mark.parametrize(
    ("software", "check", "level"),
    [
        (replace(this_software(), build="0" * 16), "build", Grade.FAIL),
        (replace(this_software(), python="3.9.1"), "python", Grade.FAIL),
        (
            replace(this_software(), packages=this_software().packages | {"pyarrow": "9.9"}),
            "package pyarrow",
            Grade.WARN,
        ),
        (
            replace(this_software(), packages=this_software().packages | {"google-crc32c": ""}),
            "package google-crc32c",
            Grade.FAIL,
        ),
        (
            replace(this_software(), loop="Python's: no library was built with this code"),
            "loop over entries",
            Grade.WARN,
        ),
    ],
)
def test_other_software_than_the_drivers_is_named(store, software, check, level):
    row = probe(order_of(), SETTINGS, ROW, store=store, clock=lambda: NOW)
    found = judged(order_of(), replace(row, software=software))[0]
    assert (found.check, found.level) == (check, level)
    assert found.expected != found.found
    assert found.next_step


def test_another_patch_release_of_python_is_the_same_python(store):
    row = probe(order_of(), SETTINGS, ROW, store=store, clock=lambda: NOW)
    minor = ".".join(this_software().python.split(".")[:2])
    other = replace(this_software(), python=f"{minor}.99")
    assert [found.level for found in judged(order_of(), replace(row, software=other))] == ["ok"]


def test_a_slot_without_an_answer_is_a_failure(store):
    row = probe(order_of(), SETTINGS, ROW, store=store, clock=lambda: NOW)
    _good, lost, slots = judged_of_two(row)
    assert (lost.worker, lost.found, lost.level) == ("of slot 1", "none", Grade.FAIL)
    assert slots.found == "1 from 1 executors on 1 hosts"
    assert slots.level is Grade.FAIL


def judged_of_two(row):
    expected = Expected(
        software=this_software(),
        has_password=False,
        marker=MARKER,
        bucket="b",
        skew_max_s=60,
        slots=2,
    )
    return judge_workers(order_of(), expected, [row])


def test_orders_and_rows_travel_as_arrow_and_whatever_goes_wrong_is_a_row(nobody):
    nobody.setenv("TIERKEEPER_BOOKIES_PASSWORD_FILE", "not-mounted")
    document = encode_order(order_of())
    batch = pa.RecordBatch.from_pylist([{"slot": n, "document": document} for n in (3, 4)])
    answers = list(run_probes(iter([batch]), plain_settings(SETTINGS)))
    rows = [decode_row(answer.to_pylist()[0]["document"]) for answer in answers]
    assert [row.slot for row in rows] == [3, 4]
    for row in rows:
        assert row.host == socket.gethostname()
        assert row.error.startswith("SettingsError: TIERKEEPER_BOOKIES_PASSWORD_FILE: not-mounted")
    found = judged(order_of(), replace(rows[0], slot=0))[0]
    assert (found.check, found.found) == ("code", rows[0].error)


def test_a_probe_keeps_its_slot(nobody, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    nobody.setenv("TIERKEEPER_BOOKIES_PASSWORD_FILE", "not-mounted")
    probe_worker(replace(order_of(), hold_s=1000.0), plain_settings(SETTINGS), slot=0)
    assert 900 < slept[0] <= 1000


def test_no_answer_at_the_endpoint_is_told_by_the_real_client(closed_port):
    endpoint = f"http://127.0.0.1:{closed_port}"
    settings = replace(SETTINGS, store=replace(SETTINGS.store, endpoint=endpoint))
    row = probe(order_of(), settings, ROW)
    for said in (row.clock_error, row.marker_error, row.upload_error):
        assert "cannot reach the endpoint" in said
