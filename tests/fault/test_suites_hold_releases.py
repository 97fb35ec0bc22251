"""A user's expectation suite keeps a bookie copy that it speaks against, and gives none away."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.fault_lab import certificate_of
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.models import Release
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import SettingsError

pytestmark = [pytest.mark.stack, pytest.mark.fault]


def suite_file(directory, name, **kwargs):
    expectation = {"type": "expect_column_values_to_be_between", "kwargs": kwargs}
    path = directory / f"{name}.json"
    path.write_text(json.dumps({"name": name, "expectations": [expectation]}))
    return str(path)


def test_a_users_suite_holds_a_ledger_and_never_lets_one_go(lab, tmp_path):
    topic = lab.topic(lab.namespace("suites"))
    holds = suite_file(tmp_path, "large-only", column="certified_entries", min_value=1000)
    passes = suite_file(tmp_path, "small-only", column="certified_entries", max_value=1000)
    breaks = suite_file(tmp_path, "misspelt", column="certified_entrys", max_value=1000)

    def release(stack):
        return release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]

    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        uid = certificate_of(outcome).uid
        lab.older(stack)
    with lab.open(lab.with_section("quality", suites=f"{passes},{holds},{breaks}")) as stack:
        held = release(stack)
        assert isinstance(held, NotNow)
        failed, broken = held.reasons
        assert failed == (
            "held by suite user/large-only: expect_column_values_to_be_between:certified_entries"
        )
        assert broken.startswith("held by suite user/misspelt: ")
        assert "not evaluated" in broken
        assert "certified_entrys" in broken
    settings = lab.with_section("quality", suites=passes)
    lag = replace(settings.release, deletion_lag_s=3600.0)
    with lab.open(replace(settings, release=lag)) as stack:
        refused = release(stack)  # it passes, and changes nothing
        assert isinstance(refused, NotNow)
        assert [reason.partition(":")[0] for reason in refused.reasons] == [
            "deletion lag has not elapsed"
        ]
        assert stack.ledgers.read(topic.ledger_id) is not None
        assert stack.book.read(Release, keys.release(topic.ledger_id, uid)) is None
    with lab.open(settings) as stack:
        assert isinstance(release(stack), Released)
    lab.readable(topic, reloaded=True)


def test_a_suite_that_is_not_there_stops_the_run_before_it_begins(lab, tmp_path):
    settings = lab.with_section("quality", suites=str(tmp_path / "gone.json"))
    with pytest.raises(SettingsError, match=r"quality\.suites: .*gone\.json"), lab.open(settings):
        pytest.fail("opened without its suite")
