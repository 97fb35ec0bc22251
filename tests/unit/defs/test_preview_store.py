"""What we write into Dagster's own tables was tried with these versions, and of these columns.

tests/dagster/test_preview_api.py compares every row with the one that Dagster itself writes; this
is what fails first, and without a server, when another Dagster is installed. docs/decisions/0015.
"""

import tomllib
from pathlib import Path

import dagster
import pytest
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetKeyTable,
    SqlEventLogStorageTable,
)
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[3]
TRIED = ">=1.13.27,<1.14"
COLUMNS = {
    "event_logs": [
        "id BIGINT",
        "run_id VARCHAR(255)",
        "event TEXT",
        "dagster_event_type TEXT",
        "timestamp TIMESTAMP",
        "step_key TEXT",
        "asset_key TEXT",
        "partition TEXT",
    ],
    "asset_keys": [
        "id BIGINT",
        "asset_key VARCHAR(512)",
        "last_materialization TEXT",
        "last_run_id VARCHAR(255)",
        "asset_details TEXT",
        "wipe_timestamp TIMESTAMP",
        "last_materialization_timestamp TIMESTAMP",
        "tags TEXT",
        "create_timestamp DATETIME",
        "cached_status_data TEXT",
    ],
    "asset_check_executions": [
        "id BIGINT",
        "asset_key TEXT",
        "check_name TEXT",
        "partition TEXT",
        "run_id VARCHAR(255)",
        "execution_status VARCHAR(255)",
        "evaluation_event TEXT",
        "evaluation_event_timestamp DATETIME",
        "evaluation_event_storage_id BIGINT",
        "materialization_event_storage_id BIGINT",
        "create_timestamp DATETIME",
    ],
}


def test_the_installed_dagster_is_one_that_it_was_tried_with():
    assert Requirement(f"dagster{TRIED}").specifier.contains(Version(dagster.__version__))


def test_no_other_dagster_can_be_installed_beside_us():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [wanted] = [one for one in project["dependencies"] if Requirement(one).name == "dagster"]
    assert Requirement(wanted).specifier == Requirement(f"dagster{TRIED}").specifier


@pytest.mark.parametrize(
    "table",
    [SqlEventLogStorageTable, AssetKeyTable, AssetCheckExecutionsTable],
    ids=lambda t: t.name,
)
def test_its_tables_have_the_columns_that_we_fill(table):
    assert [f"{one.name} {one.type}" for one in table.columns] == COLUMNS[table.name]
