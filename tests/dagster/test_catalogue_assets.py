"""The catalogue and the lineage as assets, and the check of blocks by what topics list."""

from contextlib import contextmanager

import dagster as dg
import pyarrow as pa
import pytest

from tests.dagster.test_nominations import catch_up, run
from tests.dagster.test_sensors import (  # noqa: F401 - a fixture
    TOPIC,
    site,
)
from tests.support.default_cluster import CLUSTER
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.catalogue.columns import BLOCKS, TABLES
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.view import Catalogue, answer, carried
from tiering_assets.definitions import defs
from tiering_assets.defs.shared.resources import TieringStack


@pytest.fixture
def launch(site, monkeypatch):  # noqa: F811
    @contextmanager
    def connect(_self, _context, _cluster, *, with_tasks=False):
        yield site.stack

    monkeypatch.setattr(TieringStack, "connect", connect)

    def go():
        job = defs.resolve_job_def("coverage")
        return job.execute_in_process(instance=site.instance, raise_on_error=False)

    return go


@pytest.fixture
def proven(site):  # noqa: F811
    catch_up(site)
    run(site, lambda stack: offload_batch(stack, [0]))
    prove(site.stack, Catalogue.of(site.stack))
    return site


def told(instance, key):
    [record] = instance.fetch_materializations(key, limit=1).records
    return record.asset_materialization.metadata


def verdict(site):  # noqa: F811
    [newest, *_] = site.instance.event_log_storage.get_asset_check_execution_history(
        CLUSTER.covered, limit=1
    )
    return newest.event.dagster_event.event_specific_data


def test_one_that_nobody_has_proven_is_not_judged(site, launch):  # noqa: F811
    catch_up(site)
    result = launch()
    assert not result.success
    [failure] = [event for event in result.all_events if event.is_step_failure]
    assert "catalogue prove" in failure.step_failure_data.user_failure_data.description
    assert site.instance.fetch_materializations(CLUSTER.lineage, limit=1).records == []


def test_tables_tell_their_columns_their_rows_and_how_far_they_go(proven, launch):
    assert launch().success
    tables = told(proven.instance, CLUSTER.catalogue)
    [counted] = answer(
        Catalogue.of(proven.stack).opened(), "select count(*) as n from ledgers"
    ).to_pylist()
    assert tables["dagster/row_count"].value == counted["n"] > 1
    columns = tables["dagster/column_schema"].value.columns
    assert [one.name for one in columns] == TABLES["ledger_changes"].names
    assert tables["lag_seconds"].value == 0.0
    lineage = told(proven.instance, CLUSTER.lineage)
    assert lineage["dagster/row_count"].value == 1
    assert [one.name for one in lineage["dagster/column_schema"].value.columns] == BLOCKS.names
    deps = lineage["dagster/column_lineage"].value.deps_by_column
    assert {*deps} < {*BLOCKS.names}
    assert [one.asset_key for one in deps["sha256"]] == [CLUSTER.certificates]


@pytest.mark.parametrize("asset", [CLUSTER.catalogue, CLUSTER.lineage])
def test_tables_tell_what_their_columns_are_made_of(proven, launch, asset):
    """Of columns that are there, and of assets that the graph shows above them."""
    assert launch().success
    found = told(proven.instance, asset)
    columns = {one.name for one in found["dagster/column_schema"].value.columns}
    deps = found["dagster/column_lineage"].value.deps_by_column
    assert {*deps} <= columns
    assert {"topic", "ledger_id", "uid", "certificate_sha256"} <= {*deps}
    above = defs.resolve_asset_graph().get(asset).parent_keys
    assert {one.asset_key for some in deps.values() for one in some} == above


def test_a_ledgers_row_says_which_asset_each_fact_comes_from(proven, launch):
    assert launch().success
    deps = told(proven.instance, CLUSTER.catalogue)["dagster/column_lineage"].value.deps_by_column
    by_column = {name: one.asset_key for name, [one] in deps.items()}
    assert by_column["closed_at"] == CLUSTER.sealed_ledgers
    assert by_column["certified_at"] == CLUSTER.certificates
    assert by_column["published_at"] == CLUSTER.offload_contexts
    assert by_column["released_at"] == CLUSTER.deleted_bookie_ledgers
    assert by_column["deep_at"] == CLUSTER.scrubbed_ledgers


def test_what_topics_list_is_covered_until_a_block_is_missing(proven, launch):
    assert launch().success
    found = verdict(proven)
    assert (found.passed, found.metadata["covered"].value) == (True, 1)
    tables = Catalogue.of(proven.stack).opened(make=True)
    [row] = answer(tables, "select * from blocks").to_pylist()
    again = pa.Table.from_pylist([row], schema=BLOCKS)
    assert tables["blocks"].append(again, told=carried(tables["blocks"]))
    assert launch().success
    found = verdict(proven)
    assert not found.passed
    assert found.severity is dg.AssetCheckSeverity.ERROR
    [finding] = found.metadata["what"].records
    assert finding.data["topic"] == TOPIC
    assert finding.data["ledger"] == "0"


def test_the_sensor_asks_for_a_run_a_day_once_it_is_proven(site):  # noqa: F811
    assert "nobody has proven" in site.tick("coverage_due").skip_message
    catch_up(site)
    prove(site.stack, Catalogue.of(site.stack))
    [request] = site.tick("coverage_due").run_requests
    assert request.job_name == "coverage"
