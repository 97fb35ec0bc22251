"""The asset graph's edges: what each asset is made from."""

from __future__ import annotations

import dagster as dg

from tiering_assets.defs.audit_asset import define_topic_audit
from tiering_assets.defs.batch.offload_assets import define_offload_ledgers
from tiering_assets.defs.batch.release_assets import define_release_ledgers
from tiering_assets.defs.explain.catalogue_assets import (
    columns_of_blocks,
    columns_of_ledgers,
    define_catalogue,
)
from tiering_assets.defs.explain.discover_assets import define_discovered
from tiering_assets.defs.scrub_assets import define_scrubbed_ledgers
from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_api import with_lineage
from tiering_assets.defs.sweep_assets import define_swept_leavings

BACKFILL_LEDGERS = 100  # a run of a person's own backfill
COVERAGE_FRESH_S = 3 * 24 * 3600.0  # it is looked at daily


def upstream(cluster: ClusterNames) -> dict[dg.AssetKey, list[dg.AssetKey]]:
    return {
        cluster.sealed_ledgers: [cluster.topics, cluster.bookkeeper_ledgers],
        cluster.offloaded_objects: [cluster.sealed_ledgers],
        cluster.index_objects: [cluster.sealed_ledgers],
        cluster.certificates: [cluster.offloaded_objects, cluster.index_objects],
        cluster.offload_contexts: [cluster.certificates],
        cluster.deleted_bookie_ledgers: [cluster.offload_contexts],
        cluster.tiering_backlog: [cluster.sealed_ledgers],
        cluster.released_ledgers: [cluster.deleted_bookie_ledgers],
        cluster.scrubbed_ledgers: [cluster.offload_contexts, cluster.bucket],
        cluster.swept_leavings: [cluster.offload_contexts, cluster.bucket],
        cluster.catalogue: [*columns_of_ledgers(cluster)],
        cluster.lineage: [*columns_of_blocks(cluster)],
        cluster.topic_audit: [cluster.catalogue, cluster.lineage],
    }


def define_sources(dressing: Dressing) -> list[dg.AssetSpec]:
    """Where the graph begins: what Pulsar and the store have, and nobody here makes."""
    cluster = dressing.cluster
    return [
        dressing.asset_spec(
            cluster.topics,
            "Pulsar's topics: each one's metadata node lists its ledgers and where brokers read "
            "them. tierkeeper changes it by compare-and-set alone.",
            group="sources",
            kinds={"pulsar"},
            page="design.md",
            module=__name__,
            of_ledgers=False,
        ),
        dressing.asset_spec(
            cluster.bookkeeper_ledgers,
            "BookKeeper's ledgers: entries on bookies, in several copies. A closed one is read, "
            "never fenced, and deleted behind the release gate alone.",
            group="sources",
            kinds={"pulsar"},
            page="design.md",
            module=__name__,
            of_ledgers=False,
        ),
        dressing.asset_spec(
            cluster.bucket,
            "The bucket that brokers read offloaded ledgers from, with tierkeeper's records beside "
            "the objects. Others may write to it as well.",
            group="sources",
            kinds={"s3"},
            page="records.md",
            module=__name__,
            of_ledgers=False,
        ),
    ]


def define_assets(
    dressing: Dressing, *, fresh_s: float
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Every asset of a cluster. `fresh_s` is for how long a count of the backlog is no stale
    one.
    """
    edges = upstream(dressing.cluster)
    return [
        *define_sources(dressing),
        *(
            with_lineage(
                definition,
                edges,
                partitions_a_run=1 if dressing.cluster.by_day else BACKFILL_LEDGERS,
            )
            for definition in (
                define_discovered(dressing, fresh_s=fresh_s),
                define_offload_ledgers(dressing),
                define_release_ledgers(dressing),
                define_scrubbed_ledgers(dressing),
                define_swept_leavings(dressing),
                define_catalogue(dressing, fresh_s=COVERAGE_FRESH_S),
                define_topic_audit(dressing),
            )
        ),
    ]
