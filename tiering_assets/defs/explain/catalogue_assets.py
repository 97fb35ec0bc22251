"""The catalogue's tables and the lineage of bytes as assets: columns, rows, how far they go.

Owns: the check `covered` compares what topics list now with the catalogue's blocks. One that nobody
has proven is not judged: unknown is not covered.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.failures import as_failures, failure
from tiering_assets.defs.shared.metadata import Metadata
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.resources import TieringStack, narrate
from tiering_assets.defs.telling.batch_summary import tag_result

if TYPE_CHECKING:
    from tiering_assets.catalogue.status import Status
    from tiering_assets.ground.stack import Stack
    from tiering_assets.lineage.coverage_rules import CoverageFinding

_SHOWN = 50
_TELL_EVERY = 2000  # topics
_BLOCKS = "blocks"
_FROM_OBJECTS = ("offset", "length", "payload_bytes", "data_key", "version_id", "bucket", "part")
_FROM_CERTIFICATES = (
    *("topic", "ledger_id", "sha256", "uid", "certificate_sha256", "run_id"),
    *("messages", "publish_min", "publish_max", "first_entry_id", "last_entry_id"),
)


def define_catalogue(dressing: Dressing, *, fresh_s: float) -> dg.AssetsDefinition:
    """`fresh_s`: without a new look for so long, Dagster calls them stale."""
    cluster = dressing.cluster
    fresh = dg.FreshnessPolicy.time_window(fail_window=timedelta(seconds=fresh_s))

    @dg.multi_asset(
        name="compared_blocks",
        specs=[
            dressing.asset_spec(
                cluster.catalogue,
                "Tables of every ledger, topic, block and record, for questions of any size. The "
                "sensor `catalogue` posts to them; `tierkeeper catalogue sql` and notebooks ask them.",
                group="integrity",
                kinds={"deltalake"},
                page="catalogue.md",
                module=__name__,
                of_ledgers=False,
                metadata=dressing.notebook_links(
                    "audit_a_topic", "query_cold_messages", "where_the_bytes_went"
                ),
                freshness_policy=fresh,
            ),
            dressing.asset_spec(
                cluster.lineage,
                "Where each byte went: blocks of objects, by ledger, entry and publish time. "
                "`tierkeeper lineage` follows one message, one time or one byte, and a notebook one "
                "ledger.",
                group="integrity",
                kinds={"deltalake"},
                page="lineage.md",
                module=__name__,
                of_ledgers=False,
                metadata=dressing.notebook_links("follow_one_ledger", "query_cold_messages"),
                freshness_policy=fresh,
            ),
        ],
        check_specs=[
            dg.AssetCheckSpec(
                cluster.covered.name,
                asset=cluster.lineage,
                description=(
                    "From its first retained position to its last sealed entry each topic has blocks "
                    "without a gap, an overlap, a swap or a duplicate (docs/lineage.md)."
                ),
            )
        ],
        can_subset=True,
        description="Compares the catalogue with what topics list now. Changes nothing.",
    )
    def compared_blocks(
        context: dg.AssetExecutionContext, tiering_stack: TieringStack
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        with as_failures("coverage"):
            yield from _cover(context, cluster, tiering_stack)

    return compared_blocks


def _cover(
    context: dg.AssetExecutionContext, cluster: ClusterNames, tiering_stack: TieringStack
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    from tiering_assets.catalogue.status import catalogue_status
    from tiering_assets.catalogue.view import Catalogue

    chosen = context.selected_asset_keys
    with tiering_stack.connect(context, cluster) as stack:
        status = catalogue_status(stack, Catalogue.of(stack))
        if status.as_of.proven_at is None:
            raise failure(
                "coverage: nobody has proven yet that everything is in the catalogue",
                next_step="`tierkeeper catalogue prove`, then launch this again",
            )
        if cluster.catalogue in chosen:
            yield dg.MaterializeResult(
                asset_key=cluster.catalogue, metadata=_of_tables(cluster, status)
            )
        said = f"{sum(status.ledgers.values())} ledgers"
        if cluster.covered in context.selected_asset_check_keys:
            judged = _covered(context, cluster, stack)
            said = judged.description or said
            yield judged
        if cluster.lineage in chosen:
            yield dg.MaterializeResult(
                asset_key=cluster.lineage, metadata=_of_blocks(cluster, status)
            )
        tag_result(context, said)


def _covered(
    context: dg.AssetExecutionContext, cluster: ClusterNames, stack: "Stack"
) -> dg.AssetCheckResult:
    from tiering_assets.catalogue.view import Catalogue, least
    from tiering_assets.lineage.coverage import ReadLists, coverage_of

    catalogue = Catalogue.of(stack)
    tables = catalogue.opened()
    as_of = least(catalogue, tables)
    counts = dict.fromkeys(("covered", "on_bookies", "by_brokers", "in_work"), 0)
    findings: list[tuple[str, CoverageFinding]] = []
    topics = found = 0
    for one in coverage_of(stack, tables, as_of, stack.topics.read_all(), ReadLists()):
        topics += 1
        for name in counts:
            counts[name] += getattr(one, name)
        found += len(one.findings)
        findings += [(one.topic, it) for it in one.findings[: _SHOWN - len(findings)]]
        if topics % _TELL_EVERY == 0:
            narrate(context, f"{topics} topics compared, {found} findings")
    whole = f"{counts['covered']} ledgers of {topics} topics are whole"
    return dg.AssetCheckResult(
        asset_key=cluster.covered.asset_key,
        check_name=cluster.covered.name,
        passed=not found,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{found} findings; {whole}" if found else whole,
        metadata={
            "as_of": str(as_of),
            "topics": topics,
            **counts,
            "findings": found,
            "what": _table(findings),
        },
    )


def _table(findings: "list[tuple[str, CoverageFinding]]") -> dg.MetadataValue:
    columns = [
        dg.TableColumn("topic", "string"),
        dg.TableColumn("ledger", "string"),
        dg.TableColumn("kind", "string"),
        dg.TableColumn("what", "string"),
    ]
    rows = [
        dg.TableRecord(
            {
                "topic": topic,
                "ledger": "" if one.ledger_id is None else str(one.ledger_id),
                "kind": str(one.kind),
                "what": one.what,
            }
        )
        for topic, one in findings
    ]
    return dg.MetadataValue.table(rows, schema=dg.TableSchema(columns=columns))


def columns_of_ledgers(cluster: ClusterNames) -> dict[dg.AssetKey, tuple[str, ...]]:
    """By asset, the columns of a ledger's row that come from it, under the same names there."""
    return {
        cluster.sealed_ledgers: ("ledger_id", "topic", "entries", "bytes", "closed_at"),
        cluster.offloaded_objects: ("object_bytes", "attempted_at"),
        cluster.certificates: ("uid", "certified_at", "certificate_sha256"),
        cluster.offload_contexts: ("listed_as", "context_uid", "published_at", "withdrawn_at"),
        cluster.deleted_bookie_ledgers: ("intended_at", "released_at", "bookie_copy"),
        cluster.scrubbed_ledgers: ("verified_at", "verified_depth", "deep_at", "damaged_at"),
    }


def columns_of_blocks(cluster: ClusterNames) -> dict[dg.AssetKey, tuple[str, ...]]:
    """The same of a block's row."""
    return {
        cluster.offloaded_objects: _FROM_OBJECTS,
        cluster.certificates: _FROM_CERTIFICATES,
    }


def _column_lineage(made_of: Mapping[dg.AssetKey, tuple[str, ...]]) -> dg.MetadataValue:
    deps = {
        name: [dg.TableColumnDep(asset_key=key, column_name=name)]
        for key, names in made_of.items()
        for name in names
    }
    return dg.MetadataValue.column_lineage(dg.TableColumnLineage(deps_by_column=deps))


def _of_tables(cluster: ClusterNames, status: "Status") -> Metadata:
    from tiering_assets.catalogue.columns import TABLES

    rows = [dg.TableRecord({"table": name, "rows": n}) for name, n in sorted(status.rows.items())]
    return {
        "dagster/column_schema": _columns(TABLES["ledger_changes"]),
        "dagster/column_lineage": _column_lineage(columns_of_ledgers(cluster)),
        "dagster/row_count": dg.MetadataValue.int(sum(status.ledgers.values())),
        "tables": dg.MetadataValue.table(rows),
        "states": dg.MetadataValue.table(
            [dg.TableRecord({"state": name, "ledgers": n}) for name, n in status.ledgers.items()]
        ),
        "place": dg.MetadataValue.text(status.root),
        "newest_page": dg.MetadataValue.int(status.newest_page),
        "lag_seconds": dg.MetadataValue.float(round(status.lag_s, 1)),
        "wrong_nominations": dg.MetadataValue.int(status.wrong_nominations),
        "doubts": dg.MetadataValue.int(sum(status.doubts.values())),
        **_times(proven_at=status.as_of.proven_at, scanned_at=status.scanned_at),
    }


def _times(**moments: datetime | None) -> Metadata:
    return {name: dg.MetadataValue.timestamp(at) for name, at in moments.items() if at is not None}


def _of_blocks(cluster: ClusterNames, status: "Status") -> Metadata:
    from tiering_assets.catalogue.columns import BLOCKS

    return {
        "dagster/column_schema": _columns(BLOCKS),
        "dagster/column_lineage": _column_lineage(columns_of_blocks(cluster)),
        "dagster/row_count": dg.MetadataValue.int(status.rows[_BLOCKS]),
        "follow": dg.MetadataValue.md(
            "`tierkeeper lineage message 4711:250`, `lineage topic NAME --at TIME`, "
            "`lineage object KEY --offset N`, `lineage coverage --all`"
        ),
        "place": dg.MetadataValue.text(f"{status.root}/{_BLOCKS}"),
    }


def _columns(schema: Any) -> dg.MetadataValue:
    columns = [dg.TableColumn(one.name, str(one.type)) for one in schema]
    return dg.MetadataValue.table_schema(dg.TableSchema(columns=columns))
