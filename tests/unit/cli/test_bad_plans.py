"""A plan file of another cluster, version or day, or none at all: one sentence, nothing done."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.trimmed_cluster import TOPIC, TrimmedCluster
from tiering_assets.batch.release_plan import make_plan, write_plan
from tiering_assets.cli.main import run
from tiering_assets.resources.errors import FormatError, RefusedError, SettingsError


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    cluster = TrimmedCluster()
    cluster.serve_commands(monkeypatch, tmp_path)
    return cluster


def as_written(cluster, path, **changes):
    """A plan with these fields, as this version writes it."""
    written = make_plan(cluster.stack, {TOPIC: [1]})
    write_plan(replace(written, plan=replace(written.plan, **changes)), path)


def of_another_cluster(cluster, path):
    as_written(cluster, path, instance="another")


def of_another_bucket(cluster, path):
    as_written(cluster, path, bucket="another")


def of_another_day(cluster, path):
    as_written(cluster, path, planned_at=cluster.stack.now() - timedelta(days=2))


def of_tomorrow(cluster, path):
    as_written(cluster, path, planned_at=cluster.stack.now() + timedelta(days=1))


def of_another_version(cluster, path):
    as_written(cluster, path)
    body = json.loads(path.read_text())
    body["schema"] = body["schema"].replace("/1", "/9")
    path.write_text(json.dumps(body))


def edited(cluster, path):
    as_written(cluster, path)
    path.write_text(path.read_text().replace('"ledger_id": 1', '"ledger_id": 2'))


def cut_off(cluster, path):
    as_written(cluster, path)
    path.write_text(path.read_text()[:200])


def no_plan(_cluster, path):
    path.write_text('{"some": "document"}')


def no_text(_cluster, path):
    path.write_bytes(b"\xff\xfe\x00")


def absent(_cluster, _path):
    """There is no such file."""


REFUSED = {
    of_another_cluster: RefusedError,
    of_another_bucket: RefusedError,
    of_another_day: RefusedError,
    of_tomorrow: RefusedError,
    of_another_version: FormatError,
    edited: FormatError,
    cut_off: FormatError,
    no_plan: FormatError,
    no_text: FormatError,
    absent: SettingsError,
}


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_it_is_refused_in_a_sentence_and_nothing_is_done(cluster, capsys, tmp_path, make):
    path = tmp_path / "plan.json"
    make(cluster, path)
    before = sorted(cluster.world.objects.peek_keys())
    capsys.readouterr()
    assert run(["ledger", "release", "--approved", str(path), "--execute"]) == (
        REFUSED[make].exit_code
    )
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1
    assert "Traceback" not in said[0]
    assert 1 in cluster.stack.ledgers.list_ledger_ids()
    assert sorted(cluster.world.objects.peek_keys()) == before
