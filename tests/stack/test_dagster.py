"""Dagster's jobs against the real servers: what changes state, what fails by name, what is told
again.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import pytest

from tests.support.default_cluster import (
    CERTIFICATES,
    DELETED_BOOKIE_LEDGERS,
    INDEX_OBJECTS,
    INDEX_SUITE,
    LEDGER_PARTITIONS,
    OFFLOAD_CONTEXTS,
    OFFLOADED_OBJECTS,
    PARTITION_SET,
    READ_BACK_EQUAL,
    RELEASED_SAFELY,
    SEALED_LEDGERS,
    TIERING_BACKLOG,
)
from tests.support.sim_dagster import executing
from tiering_assets.definitions import defs
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.explain.backlog import explain_ledger
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.ground.stack import open_stack
from tiering_assets.look.ledger.survey import survey
from tiering_assets.resources.devstack.bucket import s3_client
from tiering_assets.resources.devstack.probes import http_call
from tiering_assets.resources.devstack.traffic import TopicSpec, consume_all, produce
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings_sources import load_settings

# More than the lag of 1 s by the store's clock, too, which tells whole seconds.
LAG_PASSED_S = 2.2
pytestmark = [pytest.mark.stack, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
OPS = {
    "discover": "discovered",
    "offload": "offload_ledgers",
    "verify": "verify_ledgers",
    "scrub": "pulsar__scrubbed_ledgers",
    "release": "release_ledgers",
}
OFFLOADED = (OFFLOADED_OBJECTS, INDEX_OBJECTS, CERTIFICATES, OFFLOAD_CONTEXTS)
NO_LEDGER = 999_999_999


@pytest.fixture
def environment(stack, monkeypatch):
    """Settings as every edge gets them, with a lag that a test can wait for."""
    variables = stack.environment() | {
        "TIERKEEPER_DAGSTER_RUNNER": "local",
        "TIERKEEPER_RELEASE_DELETION_LAG_S": "1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


def settings_of(environment):
    return load_settings(environ=environment).settings


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def sealed_topic(endpoints, name):
    """A topic with two sealed ledgers and an open one: (spec, full name, their ids in order)."""
    spec = TopicSpec(topic=f"public/default/{name}", messages=4500, payload_bytes=64)
    produce(endpoints, spec)
    port = urlsplit(endpoints.admin_url).port
    deadline = time.monotonic() + 120
    while True:
        ids = ledgers_of(endpoints, spec)
        if len(ids) >= 3 or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert len(ids) == 3, http_call(port, "GET", f"/admin/v2/persistent/{spec.topic}/internalStats")
    return spec, f"persistent://{spec.topic}", ids


def ledgers_of(endpoints, spec):
    port = urlsplit(endpoints.admin_url).port
    path = f"/admin/v2/persistent/{spec.topic}/internalStats"
    return [one["ledgerId"] for one in json.loads(http_call(port, "GET", path)[1])["ledgers"]]


def run(instance, job, **config):
    return defs.resolve_job_def(job).execute_in_process(
        instance=instance,
        raise_on_error=False,
        run_config={"ops": {OPS[job]: {"config": executing(job, config)}}},
    )


def materialized(instance, asset):
    """Metadata of the newest materialization of every partition."""
    newest = {}
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=asset), limit=100, ascending=True
    ).records
    for record in records:
        event = record.asset_materialization
        newest[event.partition] = {name: value.value for name, value in event.metadata.items()}
    return newest


def evaluated(instance, check):
    """Did it pass, of the newest evaluation of every partition."""
    history = instance.event_log_storage.get_asset_check_execution_history(check, limit=100)
    found: dict[str | None, bool] = {}
    for record in history:  # newest first
        evaluation = record.event.dagster_event.event_specific_data
        found.setdefault(evaluation.partition, evaluation.passed)
    return found


def test_a_topic_goes_from_sealed_to_released(environment, stack, endpoints, instance):
    spec, topic, (first, second, open_id) = sealed_topic(endpoints, "dagster-story")
    keys = {partition_key(first), partition_key(second)}

    assert run(instance, "discover", topics=[topic]).success
    assert set(materialized(instance, SEALED_LEDGERS)) == keys
    assert set(instance.get_dynamic_partitions(PARTITION_SET)) == keys
    backlog = materialized(instance, TIERING_BACKLOG)[None]
    states = {row.data["state"]: row.data["ledgers"] for row in backlog["by_state"].records}
    assert (states["sealed"], states["open"]) == (2, 1)

    assert run(instance, "offload", topics=[topic]).success
    for asset in OFFLOADED:
        found = materialized(instance, asset)
        assert set(found) == keys, asset
        assert not any("noop" in one for one in found.values())
    told = materialized(instance, OFFLOADED_OBJECTS)[partition_key(first)]
    assert told["topic"] == topic
    assert told["dagster/partition_row_count"] == 2000
    assert told["object"].startswith(f"s3://{endpoints.s3_bucket}/")
    assert told["object"].endswith(f"-ledger-{first}")
    assert told["object_bytes"] > told["payload_bytes"] > 2000 * 64
    assert told["seconds"] > 0
    assert evaluated(instance, READ_BACK_EQUAL) == dict.fromkeys([*keys, None], True)
    assert evaluated(instance, INDEX_SUITE) == {None: True}

    time.sleep(LAG_PASSED_S)
    plan = run(instance, "release", topics=[topic], dry_run=True)
    assert plan.success
    assert materialized(instance, DELETED_BOOKIE_LEDGERS) == {}
    assert run(instance, "release", topics=[topic]).success
    released = materialized(instance, DELETED_BOOKIE_LEDGERS)
    assert set(released) == keys
    assert {one["deletion_lag_seconds"] for one in released.values()} == {1.0}
    assert evaluated(instance, RELEASED_SAFELY) == dict.fromkeys([*keys, None], True)
    with open_stack(stack.settings()) as steps:
        listed = set(steps.ledgers.list_ledger_ids())
    assert listed & {first, second, open_id} == {open_id}
    consume_all(endpoints, spec)  # raises unless every message is there

    # Everything again: nothing to do, and told as such.
    ids = [first, second]
    for job in ("offload", "release"):
        assert run(instance, job, ledger_ids=ids).success
    for asset in (*OFFLOADED, DELETED_BOOKIE_LEDGERS):
        found = materialized(instance, asset)
        assert {one["noop"] for one in found.values()} == {True}, asset
    again = materialized(instance, OFFLOADED_OBJECTS)[partition_key(first)]
    assert again["sha256"] == told["sha256"]
    assert run(instance, "verify", ledger_ids=ids).success
    for check in (READ_BACK_EQUAL, INDEX_SUITE, RELEASED_SAFELY):
        assert evaluated(instance, check) == dict.fromkeys([*keys, None], True), check

    # A person's own backfill has partitions instead of ids.
    tags = {
        "dagster/asset_partition_range_start": partition_key(first),
        "dagster/asset_partition_range_end": partition_key(second),
    }
    result = defs.resolve_job_def("offload").execute_in_process(instance=instance, tags=tags)
    assert result.success
    told_in = {
        record.event_log_entry.run_id
        for record in instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=CERTIFICATES), limit=2
        ).records
    }
    assert told_in == {result.run_id}


def test_a_bad_ledger_fails_the_run_by_name_after_the_good_one(
    environment, stack, endpoints, instance
):
    _spec, _topic, (good, _other, open_id) = sealed_topic(endpoints, "dagster-bad")
    result = run(instance, "offload", ledger_ids=[NO_LEDGER, good, open_id])
    assert not result.success
    (failure,) = [e for e in result.all_events if e.is_step_failure]
    said = failure.step_failure_data.user_failure_data
    assert f"ledger {NO_LEDGER}: missing from BookKeeper" in said.description
    assert f"ledger {good}" not in said.description
    assert f"| {open_id} | open: " in said.metadata["waiting"].value
    assert result.dagster_run.tags.keys().isdisjoint({"dagster/partition"})
    for asset in OFFLOADED:
        assert set(materialized(instance, asset)) == {partition_key(good)}, asset
    assert instance.get_dynamic_partitions(PARTITION_SET) == [partition_key(good)]
    keys = [partition_key(ledger_id) for ledger_id in (good, open_id, NO_LEDGER)]
    status = instance.get_status_by_partition(OFFLOAD_CONTEXTS, keys, LEDGER_PARTITIONS)
    assert [value and value.value for value in status.values()] == ["MATERIALIZED", None, None]


def test_a_damaged_copy_is_found_and_named(environment, stack, endpoints, instance):
    _spec, topic, (bad, good, _open) = sealed_topic(endpoints, "dagster-damaged")
    assert run(instance, "offload", ledger_ids=[bad, good]).success
    told = materialized(instance, OFFLOADED_OBJECTS)[partition_key(bad)]
    damage(endpoints, told["object"].split("/", 3)[3])

    result = run(instance, "verify", ledger_ids=[bad, good])
    assert not result.success
    (failure,) = [e for e in result.all_events if e.is_step_failure]
    said = failure.step_failure_data.user_failure_data
    assert f"ledger {bad}: damaged: block " in said.description
    assert f"`tierkeeper scrub run --topic {topic} --execute`" in said.description
    assert f"ledger {good}" not in said.description
    found = evaluated(instance, READ_BACK_EQUAL)
    assert found == {partition_key(bad): False, partition_key(good): True, None: False}
    assert run(instance, "verify", ledger_ids=[bad, good]).success  # known by now
    assert evaluated(instance, READ_BACK_EQUAL) == found
    with open_stack(stack.settings()) as steps:
        assert explain_ledger(steps, bad).because.reason is BacklogReason.DAMAGED

    time.sleep(LAG_PASSED_S)
    assert run(instance, "release", ledger_ids=[bad, good]).success
    assert set(materialized(instance, DELETED_BOOKIE_LEDGERS)) == {partition_key(good)}
    with open_stack(stack.settings()) as steps:
        assert bad in set(steps.ledgers.list_ledger_ids())
    assert run(instance, "scrub", topics=[topic]).success
    assert evaluated(instance, READ_BACK_EQUAL)[partition_key(bad)]
    with open_stack(stack.settings()) as steps:
        assert explain_ledger(steps, bad).because.reason is BacklogReason.IN_LAG


def damage(endpoints, key):
    """Change one byte of an object behind our back, as no client of ours would."""
    client = s3_client(endpoints)
    there = client.get_object(Bucket=endpoints.s3_bucket, Key=key)
    body = bytearray(there["Body"].read())
    body[len(body) // 2] ^= 1
    client.put_object(
        Bucket=endpoints.s3_bucket, Key=key, Body=bytes(body), Metadata=there["Metadata"]
    )
    client.close()


def test_no_ledger_waits_for_a_key(environment, endpoints, instance, monkeypatch):
    _spec, topic, (first, second, _open) = sealed_topic(endpoints, "dagster-room")
    monkeypatch.setenv("TIERKEEPER_DAGSTER_PARTITIONS_MAX", "1")
    assert run(instance, "offload", topics=[topic]).success
    assert instance.get_dynamic_partitions(PARTITION_SET) == [partition_key(first)]
    assert set(materialized(instance, OFFLOAD_CONTEXTS)) == {partition_key(first)}
    with open_stack(settings_of(environment)) as steps:
        states = {v.ledger_id: v.state.value for v in survey(steps) if v.topic == topic}
    assert states[first] == states[second] != "sealed"


def test_jobs_run_as_processes_with_their_logs_in_s3(environment, stack, endpoints, tmp_path):
    """`dagster job execute` as a user types it, with deploy/dagster.yaml as the instance."""
    _spec, topic, (first, second, _open) = sealed_topic(endpoints, "dagster-process")
    (tmp_path / "dagster.yaml").write_text((ROOT / "deploy/dagster.yaml").read_text())
    variables = {
        **environment,
        "DAGSTER_HOME": str(tmp_path),
        "DAGSTER_LOGS_BUCKET": endpoints.s3_bucket,
        "DAGSTER_LOGS_ENDPOINT": endpoints.s3_endpoint,
        "DAGSTER_LOGS_REGION": endpoints.s3_region,
        "DAGSTER_LOGS_STAGING": str(tmp_path / "staging"),
        "AWS_ACCESS_KEY_ID": endpoints.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": endpoints.s3_secret_key,
        "AWS_DEFAULT_REGION": endpoints.s3_region,
    }
    for job in ("discover", "offload", "release"):
        config = tmp_path / f"{job}.yaml"
        execute = ", dry_run: false" if job == "release" else ""
        config.write_text(f"ops: {{{OPS[job]}: {{config: {{topics: ['{topic}']{execute}}}}}}}\n")
        done = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("dagster")), "job", "execute"),
                *("-m", "tiering_assets.definitions", "-j", job, "-c", str(config)),
            ],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **variables},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert "tierkeeper: " in done.stderr
        assert endpoints.s3_secret_key not in done.stdout + done.stderr
    objects = S3ObjectStore(stack.settings().store)
    logs = [
        one.key for one in objects.list_objects("dagster-compute-logs/") if one.key.endswith(".err")
    ]
    assert len(logs) == 3
    assert all("-ledger-" not in key for key in logs)
    written = [found.body.decode() for key in logs if (found := objects.get(key)) is not None]
    assert any(f"ledger {first}: released" in text for text in written)
    assert all(endpoints.s3_secret_key not in text for text in written)
    with open_stack(stack.settings()) as steps:
        assert not {first, second} & set(steps.ledgers.list_ledger_ids())
