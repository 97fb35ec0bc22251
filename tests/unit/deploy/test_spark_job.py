"""The example job and asset: what they report, how they end, and what EMR would be asked for."""

from __future__ import annotations

import importlib.util
import json
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from dagster_pipes import encode_param

from tiering_assets.batch.pipeline import LedgerOutcome
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.resources.errors import EntryUnavailableError
from tiering_assets.resources.spark_master import MIB, memory_overhead_mib

FOLDER = Path(__file__).parents[3] / "deploy" / "spark"
OUTCOMES = [
    LedgerOutcome(ledger_id=4711, parts_sent=3, wait=Wait(Reason.CLAIMED, "run x")),
    LedgerOutcome(ledger_id=4712, error=EntryUnavailableError(4712, 5, {})),
]


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where annotations are looked up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def job(monkeypatch, tmp_path):
    """The job without cluster and JVM: its outcomes are given."""
    monkeypatch.chdir(tmp_path)
    module = loaded("offload_job")
    asked = []

    @contextmanager
    def opened(_settings):
        yield "a stack"

    def offload_batch(stack, ledger_ids, *, publish):
        asked.append((stack, ledger_ids, publish))
        return OUTCOMES

    monkeypatch.setattr(module, "opened", opened)
    monkeypatch.setattr(module, "offload_batch", offload_batch)
    monkeypatch.setattr(module, "with_cores_of_session", lambda settings: settings)
    module.asked = asked
    return module


def test_every_ledger_is_a_line_and_the_worst_failure_the_exit_code(job, capsys):
    assert job.main(["4711", "4712"]) == EntryUnavailableError.exit_code
    assert job.asked == [("a stack", [4711, 4712], False)]
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["ledger_id"], one["parts_sent"]) for one in said] == [(4711, 3), (4712, 0)]
    assert "run x" in said[0]["wait"]
    assert "ledger 4712 entry 5" in said[1]["error"]


def test_launched_by_pipes_it_reports_to_its_run(job, monkeypatch, tmp_path):
    messages = tmp_path / "messages"
    context: dict[str, object] = {
        "asset_keys": None, "code_version_by_asset_key": None,
        "provenance_by_asset_key": None, "partition_key": None, "partition_key_range": None,
        "partition_time_window": None, "run_id": "r", "job_name": None, "retry_number": 0,
        "extras": {},
    }  # fmt: skip
    monkeypatch.setenv("DAGSTER_PIPES_CONTEXT", encode_param({"data": context}))
    monkeypatch.setenv("DAGSTER_PIPES_MESSAGES", encode_param({"path": str(messages)}))
    job.main(["4711", "4712"])
    lines = [json.loads(line) for line in messages.read_text().splitlines()]
    reported = [x["params"]["payload"] for x in lines if x["method"] == "report_custom_message"]
    assert [one["ledger_id"] for one in reported] == [4711, 4712]


def test_the_asset_asks_emr_for_the_memory_that_tasks_need():
    example = loaded("emr_asset")
    assert memory_overhead_mib(block_bytes=64 * MIB, cores=4) == example.MEMORY_OVERHEAD_MIB
    places = {"job": "s3://b/offload_job.py", "logs": "s3://b/logs/"}
    flow = example.job_flow([4711], **places, release="emr-8.1.0")
    [step] = flow["Steps"]
    words = step["HadoopJarStep"]["Args"]
    assert words[0] == "spark-submit"
    assert words[-2:] == ["s3://b/offload_job.py", "4711"]
    assert "spark.executor.memoryOverhead=1488m" in words
    assert [key.to_user_string() for key in example.defs.resolve_all_asset_keys()] == [
        "emr_offload"
    ]
    with pytest.raises(ValueError, match=r"emr-7\.9\.0.*Spark 4\.1"):
        example.job_flow([4711], **places, release="emr-7.9.0")
