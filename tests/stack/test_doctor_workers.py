"""`doctor --workers` on real servers: a sound worker passes, what is wrong with one is named, with
the next step, and nothing is left in the bucket either way.
"""

import platform
import socket
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

import pytest

from tests.support.cli_shell import Shell
from tests.support.http_proxy import Do, HttpProxy
from tiering_assets.doctor.workers import examine_workers
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.spark_master import parse_master
from tiering_assets.spark import bootstrap, build
from tiering_assets.spark.session import open_session
from tiering_assets.spark.worker_probes import probe_session

pytestmark = [pytest.mark.stack, pytest.mark.spark]


@pytest.fixture(scope="module")
def settings(stack):
    found = stack.settings()
    return replace(found, store=replace(found.store, attempts_max=1))


@pytest.fixture(scope="module")
def session(settings):
    with open_session(settings) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_is_left(settings):
    """What an examination wrote is gone: objects, and uploads that are open."""
    objects = S3ObjectStore(settings.store)
    keys = {summary.key for summary in objects.list_objects()}
    uploads = {upload.upload_id for upload in objects.list_uploads()}
    yield
    assert {summary.key for summary in objects.list_objects()} == keys
    assert {upload.upload_id for upload in objects.list_uploads()} == uploads


@pytest.fixture
def examine(session, settings):
    """Examine the session's workers with settings that may differ."""

    def run(**changes):
        chosen = replace(settings, **changes)
        return examine_workers(chosen, partial(probe_session, session, chosen))

    return run


def named(report, check):
    """That finding of every worker, and nothing else is wrong with them."""
    assert not report.ok
    found = [finding for finding in report.findings if finding.level == "fail"]
    assert {finding.check for finding in found} == {check}
    assert len(found) == len(report.rows) > 0
    assert all(finding.expected and finding.found and finding.next_step for finding in found)
    return found[0]


def test_sound_workers_pass_one_a_slot(examine, settings):
    report = examine()
    slots = parse_master(settings.spark).cores
    assert report.ok, report.findings
    assert Counter(finding.level.value for finding in report.findings) == {"ok": slots + 1}
    assert {(row.slot, row.host) for row in report.rows} == {
        (slot, socket.gethostname()) for slot in range(slots)
    }
    assert len({row.pid for row in report.rows}) == slots, "each slot answers for itself"
    for row in report.rows:
        assert row.software.build == build.build_hash()
        assert row.software.python == platform.python_version()
        assert row.software.loop.startswith("native: core-")
        assert abs(row.skew_s) < 5
        assert (row.bookie_errors, row.uploads_left) == ({}, ())


def test_a_bookie_that_no_worker_reaches_is_named(examine, settings, endpoints, closed_port):
    bookie, (host, port) = sorted(endpoints.bookies.items())[0]
    ways = replace(settings.bookies, address_map=f"{host}:{port}=127.0.0.1:{closed_port}")
    found = named(examine(bookies=ways), f"bookie {bookie}")
    assert f"{host}:{port} (by bookies.address_map 127.0.0.1:{closed_port})" in found.found
    assert "bookies.address_map" in found.next_step


@pytest.mark.parametrize("minutes", [10, -10])
def test_a_clock_ten_minutes_off_is_named(examine, settings, minutes):
    with HttpProxy(settings.store.endpoint) as proxy:
        store_says = datetime.now(UTC) - timedelta(minutes=minutes)
        proxy.replaced = {"date": format_datetime(store_says, usegmt=True)}
        found = named(examine(store=replace(settings.store, endpoint=proxy.url)), "clock")
    assert abs(float(found.found.removesuffix(" s")) - minutes * 60) < 60
    assert "NTP" in found.next_step


def test_credentials_of_another_bucket_are_named(examine, settings):
    """The driver writes the object for comparison; workers may not read it."""

    def rule(method, path):
        return Do.DENY if method == "GET" and path.endswith("/bucket") else Do.PASS

    with HttpProxy(settings.store.endpoint, rule) as proxy:
        found = named(examine(store=replace(settings.store, endpoint=proxy.url)), "bucket")
    assert "AccessDenied" in found.found
    assert "not another's" in found.next_step


def test_another_bucket_of_that_name_is_named(session, settings):
    """As where one host name leads to two stores: for workers the object is not there."""

    def lost(order):
        return probe_session(session, settings, replace(order, marker_key=f"{order.marker_key}-"))

    found = named(examine_workers(settings, lost), "bucket")
    assert "another bucket of that name" in found.found
    assert "store.endpoint" in found.next_step


def refusals(report):
    """What each worker's refusal says; every worker refuses."""
    codes = [finding for finding in report.findings if finding.check == "code"]
    assert not report.ok
    assert len(codes) == len(report.rows) > 0
    assert all("spark.code = ship" in finding.next_step for finding in codes)
    return codes[0]


def test_workers_of_another_build_are_named_and_ask_nothing(examine, monkeypatch):
    theirs, ours = build.build_hash(), "0" * 16
    monkeypatch.setattr(build, "build_hash", lambda: ours)
    monkeypatch.setattr("tiering_assets.spark.probe.build_hash", lambda: ours)
    found = refusals(examine())
    assert f"build {ours}" in found.expected
    assert f"has build {theirs}" in found.found


def test_workers_with_another_python_are_named_and_ask_nothing(examine, monkeypatch):
    checked = bootstrap.checked

    def as_if_older(*args, **kwargs):
        function: Any = checked(*args, **kwargs)
        function.keywords["expected"]["python"] = "3.10"
        return function

    monkeypatch.setattr("tiering_assets.spark.worker_probes.checked", as_if_older)
    found = refusals(examine())
    assert f"has Python {bootstrap.python_minor()}" in found.found
    assert "the driver 3.10" in found.found


@pytest.mark.timeout(1800)
def test_without_credentials_the_command_ends_with_a_finding(stack, tmp_path):
    nowhere = str(tmp_path / "none")
    bare: dict[str, Any] = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": nowhere,
        "AWS_CONFIG_FILE": nowhere,
        "TIERKEEPER_STORE_ACCESS_KEY": "",
        "TIERKEEPER_STORE_SECRET_KEY": "",
    }
    told = Shell(stack, tmp_path).document(
        "doctor",
        "--workers",
        code=1,
        schema="doctor-workers",
        timeout_s=1500,
        alone=True,
        **bare,
    )
    workers = [one for one in told["findings"] if one["worker"] and one["level"] == "fail"]
    assert {one["check"] for one in workers} == {"credentials"}
    assert len(workers) == len(told["workers"]) == 2
    assert all("TIERKEEPER_STORE_ACCESS_KEY" in one["next_step"] for one in workers)
    assert told["ok"] is False
