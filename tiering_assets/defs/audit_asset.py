"""The notebook `audit_a_topic`, run and kept: an asset that a person launches for a topic and a
time.

Reads only. Owns: each run has a folder of its own below `dagster.notebook_dir`, with the notebook
as it ran, a page of it, and the report. What is told of it is read back from that report.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.failures import as_failures, failure
from tiering_assets.defs.shared.metadata import Metadata
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.resources import TieringStack, narrate
from tiering_assets.defs.telling.batch_summary import tag_result

if TYPE_CHECKING:
    from tiering_assets.notebook.executed import Executed

NAME = "audit_a_topic"
REPORT = "report.html"
_DESCRIPTION = (
    "The audit of a topic for a period: the notebook `audit_a_topic` as it ran, and a report that "
    "`tierkeeper audit verify` compares with the bucket (option --check-report). Launch the job by "
    "hand, with a topic. Changes nothing."
)


class AuditChoice(dg.Config):
    topic: str = Field(description="tenant/namespace/topic, with all its partitions")
    since: str = Field(default="2000-01-01", description="a day or a time, UTC if no zone is said")
    until: str = Field(default="2100-01-01", description="the end, which belongs to it")
    deep: bool = Field(default=True, description="read every byte of these ledgers' objects, too")


def define_topic_audit(dressing: Dressing) -> dg.AssetsDefinition:
    cluster = dressing.cluster

    @dg.asset(
        key=cluster.topic_audit,
        description=_DESCRIPTION,
        metadata={**dressing.links("notebooks.md", __name__)},
        group_name="integrity",
        kinds={"jupyter"},
        owners=dressing.owners,
    )
    def topic_audit(
        context: dg.AssetExecutionContext, config: AuditChoice, tiering_stack: TieringStack
    ) -> Iterator[dg.MaterializeResult[None]]:
        with as_failures("audit"):
            yield from _audit(context, cluster, config, tiering_stack)

    return topic_audit


def _audit(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    config: AuditChoice,
    tiering_stack: TieringStack,
) -> Iterator[dg.MaterializeResult[None]]:
    """Run the notebook in a kernel of this Python. Findings fail the run, once they are told."""
    from tiering_assets.notebook.executed import execute, source_of_notebook

    own = tiering_stack.load_for_cluster(cluster).dagster.notebook_dir
    folder = Path(own or f"{context.instance.storage_directory()}/notebooks").absolute()
    target = folder / context.op_execution_context.run_id / f"{NAME}.ipynb"
    report = target.with_name(REPORT)
    source = source_of_notebook(NAME)
    target.parent.mkdir(parents=True)  # a run's own: a second step of it would write over the first
    narrate(context, f"{source.name} of {config.topic} runs; it is kept in {target.parent}")
    file = tiering_stack.settings_file
    executed = execute(
        source,
        target,
        {
            **config.model_dump(),
            "report": str(report),
            "settings_file": str(Path(file).absolute()) if file else "",
        },
    )
    findings, metadata = told_of(executed, report)
    said = f"{len(findings)} findings" if findings else "nothing wrong"
    tag_result(context, said, {config.topic})
    yield dg.MaterializeResult(
        asset_key=cluster.topic_audit,
        metadata={"topic": config.topic, "since": config.since, "until": config.until, **metadata},
    )
    if findings:
        raise failure(
            f"audit of {config.topic}: {said}: {'; '.join(findings[:10])}",
            next_step=f"docs/audit.md says what each means; all are in {report}",
        )


def told_of(executed: "Executed", report: Path) -> tuple[list[str], Metadata]:
    """The findings of the report that a notebook wrote, and what Dagster shows.

    FormatError or IntegrityError where it is no report, or another than was written.
    """
    from tiering_assets.audit.report.report_file import read_report

    written = read_report(report.read_bytes(), name=str(report))
    facts = written.facts
    metadata = {
        "notebook": dg.MetadataValue.notebook(str(executed.notebook)),
        "page": dg.MetadataValue.path(str(executed.page)),
        "report": dg.MetadataValue.path(str(report)),
        "facts_sha256": dg.MetadataValue.text(written.seal.facts_sha256),
        "signed_by": dg.MetadataValue.text(written.seal.signed_by or "not signed"),
        "attempts": dg.MetadataValue.int(len(facts.ledgers)),
        "bytes_read": dg.MetadataValue.int(sum(one.bytes_read for one in facts.ledgers)),
        "findings": dg.MetadataValue.int(len(facts.findings)),
    }
    return [str(one) for one in facts.findings], metadata
