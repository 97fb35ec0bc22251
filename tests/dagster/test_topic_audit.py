"""The executed audit as an asset: what it tells of the report, and how it fails.

Whole runs on real servers are in tests/stack/test_notebooks.py: a kernel reaches no simulated ones.
"""

import json
from pathlib import Path

import dagster as dg
import pytest

from tests.support.audit_reports import ReportScene
from tests.support.default_cluster import CLUSTER, TOPIC_AUDIT
from tests.support.notebooks import FOLDER
from tiering_assets.audit.report.report_file import ReportKind
from tiering_assets.definitions import defs
from tiering_assets.defs.audit_asset import REPORT, told_of
from tiering_assets.notebook import executed
from tiering_assets.notebook.executed import Executed
from tiering_assets.offload_format.keys import data_key
from tiering_assets.resources.errors import IntegrityError

TOPIC = "public/default/audited"


@pytest.fixture
def scene():
    return ReportScene()


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def kept(monkeypatch, tmp_path, closed_port):
    """The folder that the setting names; the metadata store of the settings does not answer."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "METADATA_STORE": f"zk:127.0.0.1:{closed_port}",
        "METADATA_CONNECT_TIMEOUT_S": "1",
        "STORE_ENDPOINT": f"http://127.0.0.1:{closed_port}",
        "STORE_BUCKET": "b",
        "STORE_ACCESS_KEY": "ak",
        "STORE_SECRET_KEY": "sk-of-a-test",
        "DAGSTER_NOTEBOOK_DIR": "kept",
    }.items():
        monkeypatch.setenv(f"TIERKEEPER_{name}", value)
    return tmp_path / "kept"


def launch(instance, **config):
    return defs.resolve_job_def("audit").execute_in_process(
        instance=instance,
        raise_on_error=False,
        run_config={"ops": {"pulsar__topic_audit": {"config": {"topic": TOPIC, **config}}}},
    )


def why_failed(result):
    [event] = [one for one in result.all_events if one.is_step_failure]
    return str(event.step_failure_data.error_display_string)


def write(scene, path):
    path.write_text(scene.make(ReportKind.HTML))
    return Executed(notebook=path.with_name("a.ipynb"), page=path.with_name("a.html"))


def test_what_is_told_is_what_the_report_says(scene, tmp_path):
    report = tmp_path / REPORT
    ran = write(scene, report)
    findings, metadata = told_of(ran, report)
    facts = scene.facts()
    assert findings == []
    assert metadata["attempts"].value == len(facts.ledgers) == 3
    assert metadata["bytes_read"].value == sum(one.bytes_read for one in facts.ledgers)
    assert metadata["notebook"] == dg.MetadataValue.notebook(str(ran.notebook))
    assert metadata["signed_by"].value == "not signed"
    assert metadata["facts_sha256"].value in report.read_text()


def test_a_report_that_was_edited_is_told_to_nobody(scene, tmp_path):
    report = tmp_path / REPORT
    ran = write(scene, report)
    report.write_text(report.read_text().replace("3 attempts", "4 attempts", 1) + "\n")
    with pytest.raises(IntegrityError):
        told_of(ran, report)


def test_findings_are_told_and_then_fail_the_run(scene, instance, kept, monkeypatch):
    """What the kernel does is left out: its report is of a simulated bucket."""
    lost = scene.chains[0]
    scene.store.delete(data_key(lost.uid, lost.ledger_id))

    def execute(source, target, parameters):
        assert source == FOLDER / "audit_a_topic.ipynb"
        assert (parameters["topic"], parameters["deep"]) == (TOPIC, False)
        assert parameters["settings_file"] == ""
        return write(scene, Path(parameters["report"]))

    monkeypatch.setattr(executed, "execute", execute)
    result = launch(instance, deep=False)
    assert not result.success
    said = why_failed(result)
    assert f"audit of {TOPIC}: 1 findings: object_missing: ledger 41" in said
    [told] = instance.fetch_materializations(TOPIC_AUDIT, limit=1).records
    metadata = told.asset_materialization.metadata
    assert metadata["findings"].value == 1
    assert metadata["report"].value == str(kept / result.run_id / REPORT)


def test_a_notebook_that_fails_is_kept_and_named(instance, kept):
    result = launch(instance)
    assert not result.success
    said = why_failed(result)
    assert "audit_a_topic.ipynb: " in said
    assert "zk:127.0.0.1" in said or "metadata.store" in said or "ZooKeeper" in said
    ran = json.loads((kept / result.run_id / "audit_a_topic.ipynb").read_text())
    failed = [o for c in ran["cells"] for o in c.get("outputs", ()) if o["output_type"] == "error"]
    assert len(failed) == 1
    assert "sk-of-a-test" not in json.dumps(ran)
    assert instance.fetch_materializations(TOPIC_AUDIT, limit=1).records == []


@pytest.mark.parametrize(
    ("key", "names"),
    [
        (CLUSTER.catalogue, {"audit_a_topic", "query_cold_messages", "where_the_bytes_went"}),
        (CLUSTER.lineage, {"follow_one_ledger", "query_cold_messages"}),
    ],
    ids=["catalogue", "lineage"],
)
def test_tables_and_lineage_link_to_their_notebooks(key, names):
    metadata = defs.resolve_asset_graph().get(key).metadata
    assert metadata["notebooks"] == dg.MetadataValue.path("docs/notebooks.md")
    for name in names:
        link = metadata[name]
        assert isinstance(link, dg.NotebookMetadataValue)
        assert Path(link.value) == FOLDER / f"{name}.ipynb"
        assert Path(link.value).is_file()
