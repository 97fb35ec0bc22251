"""DAGSTER_HOME is lost, and `tierkeeper dagster rebuild` shows the same ledgers again. Real
servers.
"""

import json
import os
import shutil
import subprocess
import time

import dagster as dg
import pytest

from tests.stack.test_dagster import LAG_PASSED_S, environment, run, sealed_topic
from tests.support.cli_shell import COMMAND
from tests.support.default_cluster import (
    CERTIFICATES,
    DELETED_BOOKIE_LEDGERS,
    INDEX_OBJECTS,
    OFFLOAD_CONTEXTS,
    OFFLOADED_OBJECTS,
    PARTITION_SET,
    READ_BACK_EQUAL,
    RELEASED_SAFELY,
    SEALED_LEDGERS,
)
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.defs.shared.run_history import JOB_TAG

__all__ = ["environment"]  # a fixture
pytestmark = [pytest.mark.stack, pytest.mark.slow]

ASSETS = (
    *(OFFLOADED_OBJECTS, INDEX_OBJECTS, CERTIFICATES),
    *(OFFLOAD_CONTEXTS, DELETED_BOOKIE_LEDGERS),
)
CHECKS = (READ_BACK_EQUAL, RELEASED_SAFELY)
NO_HOME, UNREADABLE, REFUSED = 11, 13, 26


def rebuild(variables, *words, code=None):
    """The command as a process. Records that other tests spoiled on these servers are named
    only.
    """
    done = subprocess.run(
        [*COMMAND, "dagster", "rebuild", "--json", *words],
        env=dict(os.environ) | variables,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in ((0, UNREADABLE) if code is None else (code,)), done.stderr
    return json.loads(done.stdout) if code is None else done.stderr


def shown(instance, keys):
    """What the pages show of these partitions: metadata by asset, verdicts by check."""
    found = {}
    for asset in ASSETS:
        records = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=asset, asset_partitions=keys), 100, ascending=True
        ).records
        for record in records:
            event = record.asset_materialization
            metadata = {name: value.value for name, value in event.metadata.items()}
            metadata.pop("rebuilt", None)
            found[asset.path[-1], event.partition] = (event.description, metadata)
    for check in CHECKS:
        history = instance.event_log_storage.get_asset_check_execution_history(check, limit=100)
        for record in reversed(history):  # newest first
            evaluation = record.event.dagster_event.event_specific_data
            if record.partition in keys:
                found[check.name, record.partition] = (evaluation.passed, evaluation.description)
    return found


def test_a_lost_home_is_rebuilt_from_the_records(environment, stack, endpoints, tmp_path):
    _spec, topic, (first, second, open_id) = sealed_topic(endpoints, "dagster-lost")
    keys = [partition_key(first), partition_key(second)]
    home = tmp_path / "home"
    home.mkdir()
    variables = environment | {"DAGSTER_HOME": str(home)}

    with dg.DagsterInstance.local_temp(str(home)) as instance:
        assert run(instance, "discover", topics=[topic]).success
        assert run(instance, "offload", ledger_ids=[first, second]).success
        time.sleep(LAG_PASSED_S)
        assert run(instance, "release", ledger_ids=[first]).success
        for job, ids in (("offload", [first, second]), ("release", [first])):
            assert run(instance, job, ledger_ids=ids).success  # done, and told again
        before = shown(instance, keys)
    assert len(before) == 4 * 2 + 1 + 2 + 1
    shutil.rmtree(home)

    assert f"DAGSTER_HOME={home} is no folder" in rebuild(variables, code=NO_HOME)
    home.mkdir()
    planned = rebuild(variables, "--plan")
    found = rebuild(variables)
    assert planned["partitions_added"] == found["partitions_added"] >= 2
    assert found["materializations"]["certificates"] >= 2
    again = rebuild(variables)
    assert (again["partitions_added"], again["materializations"]) == (0, {})

    with dg.DagsterInstance.local_temp(str(home)) as instance:
        assert set(keys) <= set(instance.get_dynamic_partitions(PARTITION_SET))
        assert partition_key(open_id) not in instance.get_dynamic_partitions(PARTITION_SET)
        assert shown(instance, keys) == before
        sealed = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=SEALED_LEDGERS, asset_partitions=keys), 100
        ).records
        assert {record.partition_key for record in sealed} == set(keys)
        # A rebuilt home is one to go on with.
        assert run(instance, "release", ledger_ids=[second]).success
        assert (DELETED_BOOKIE_LEDGERS.path[-1], keys[1]) in shown(instance, keys)
        instance.add_run(
            dg.DagsterRun(
                job_name="offload",
                status=dg.DagsterRunStatus.STARTED,
                tags={JOB_TAG: "offload"},
            )
        )
    assert "1 runs of this cluster are unfinished" in rebuild(variables, code=REFUSED)
