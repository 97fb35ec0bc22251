"""Deletes that fail half way: what is written says what is gone, and the next run goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from tests.support.default_cluster import SWEPT_LEAVINGS
from tests.support.http_proxy import Do, HttpProxy
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.clean.sweep import sweep
from tiering_assets.definitions import defs
from tiering_assets.look.ledger.quarantine import win_outcome
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Outcome
from tiering_assets.records.sweep_models import Swept
from tiering_assets.resources.devstack.endpoints import environment_of

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture
def abandoned(lab):
    """A topic whose ledger was copied, and the copy given up."""
    topic = lab.topic(lab.namespace("deletes"))
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
        assert outcome.verified
        [attempt] = stack.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))
        assert win_outcome(stack, attempt, "abandon", reason="not wanted") is not None
        lab.older(stack)
    return topic, attempt.record


def of_attempt(leavings, record):
    [found] = [one for one in leavings if one.attempt.record.uid == record.uid]
    return found


def test_a_sweep_that_may_not_delete_all_writes_nothing_and_the_next_one_finishes(lab, abandoned):
    topic, record = abandoned
    swept_key = keys.swept(topic.ledger_id, record.uid)
    with HttpProxy(
        lab.endpoints.s3_endpoint,
        lambda method, path: (
            Do.DENY if method == "DELETE" and record.index_key in path else Do.PASS
        ),
    ) as proxy:
        through = replace(lab.settings, store=replace(lab.settings.store, endpoint=proxy.url))
        with lab.open(through) as stack:
            left = of_attempt(sweep(stack, execute=True), record)
            assert left.done is None
            assert "1 of 2 leavings" in left.error
            assert stack.book.read(Swept, swept_key) is None
            assert stack.objects.head(record.data_key) is None  # what could go went
            assert stack.objects.head(record.index_key) is not None
    with lab.open() as stack:
        done = of_attempt(sweep(stack, execute=True), record).done
        assert done is not None
        assert done.objects == (record.index_key,)
        assert stack.objects.head(record.index_key) is None
        outcome = stack.book.require(Outcome, keys.outcome(topic.ledger_id, record.uid))
        assert stack.book.require(Swept, swept_key).record.previous == outcome.sha256
    lab.readable(topic)


def test_a_sweep_that_deleted_and_died_is_recorded_by_the_next_one(lab, abandoned):
    topic, record = abandoned
    swept_key = keys.swept(topic.ledger_id, record.uid)
    with lab.open() as stack:
        for key in (record.data_key, record.index_key):
            stack.objects.delete(key)
        sweep(stack, execute=False)
        assert stack.book.read(Swept, swept_key) is None
        sweep(stack, execute=True)
        swept = stack.book.require(Swept, swept_key).record
        assert (swept.objects, swept.bytes_freed) == ((), None)
        stack.objects.put(record.data_key, b"sent by a zombie")
        lab.older(stack)
        assert of_attempt(sweep(stack, execute=True), record).done is not None
        swept = stack.book.require(Swept, swept_key).record
        assert (swept.objects, swept.bytes_freed) == ((record.data_key,), 16)
        [again] = offload_batch(stack, [topic.ledger_id])
        assert again.state == "published"
    lab.readable(topic, reloaded=True)


def test_the_sweep_job_says_what_would_go_and_deletes_only_when_told(lab, abandoned, monkeypatch):
    topic, record = abandoned
    for name, value in environment_of(lab.settings).items():
        monkeypatch.setenv(name, value)
    facts: dict[bool, dict[str, Any]] = {}
    with lab.open() as stack, dg.DagsterInstance.ephemeral() as instance:
        for execute in (False, True):
            done = defs.resolve_job_def("sweep").execute_in_process(
                instance=instance,
                run_config={
                    "ops": {SWEPT_LEAVINGS.to_python_identifier(): {"config": {"execute": execute}}}
                },
            )
            assert done.success
            event = instance.get_latest_materialization_event(SWEPT_LEAVINGS)
            assert event is not None
            assert event.asset_materialization is not None
            metadata = event.asset_materialization.metadata
            facts[execute] = {name: one.value for name, one in metadata.items()}
            there = stack.objects.head(record.data_key) is not None
            assert there is not execute
    assert facts[False]["waiting_attempts"] >= 1
    assert facts[False]["swept_attempts"] == facts[True]["waiting_attempts"] == 0
    assert facts[True]["bytes_freed"] >= record.object_bytes
    lab.readable(topic)
