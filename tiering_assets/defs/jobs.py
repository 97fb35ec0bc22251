"""The eight jobs over assets; pause_job.py is the ninth.

Each may run again at any time; `verify`, `discover`, `coverage` and `audit` change no ledger.
Runs get their ledgers in run config and no partition tags; see batches.py.
"""

from __future__ import annotations

import dagster as dg

from tiering_assets.defs.shared.names import CLUSTER_TAG, ClusterNames
from tiering_assets.defs.shared.preview_api import AssetJob, without_partitions
from tiering_assets.defs.shared.run_history import JOB_TAG, RELEASE_TAG

_TAKES_PARTITIONS = {"offload", "release"}  # a person's own backfill; others look at everything


def _job(
    cluster: ClusterNames, name: str, selection: dg.AssetSelection, description: str
) -> AssetJob:
    tags = {JOB_TAG: name, CLUSTER_TAG: cluster.name}
    if name == "release":
        tags[RELEASE_TAG] = cluster.name
    job = dg.define_asset_job(name, selection, description=description, tags=tags)
    return job if name in _TAKES_PARTITIONS else without_partitions(job)


def define_jobs(cluster: ClusterNames) -> list[AssetJob]:
    """The jobs of one cluster, by the assets and checks that each makes."""
    return [
        _job(
            cluster,
            "discover",
            dg.AssetSelection.assets(
                cluster.sealed_ledgers, cluster.tiering_backlog
            ).without_checks()
            | dg.AssetSelection.checks(cluster.objectives_met),
            "Survey all topics: admit sealed ledgers, count the backlog. Loads no topic.",
        ),
        _job(
            cluster,
            "offload",
            dg.AssetSelection.assets(
                cluster.offloaded_objects,
                cluster.index_objects,
                cluster.certificates,
                cluster.offload_contexts,
            ).without_checks(),
            "Copy, verify and publish a batch of sealed ledgers; by default all, up to a hundred.",
        ),
        _job(
            cluster,
            "verify",
            dg.AssetSelection.checks(
                cluster.read_back_equal, cluster.index_suite, cluster.released_safely
            ),
            "Read certified ledgers again and check them. Changes nothing.",
        ),
        _job(
            cluster,
            "release",
            dg.AssetSelection.assets(
                cluster.deleted_bookie_ledgers, cluster.released_ledgers
            ).without_checks(),
            "Say which bookie copies are due, and why others are not; with `dry_run: false` delete "
            "them, behind the release gate.",
        ),
        _job(
            cluster,
            "scrub",
            dg.AssetSelection.assets(cluster.scrubbed_ledgers).without_checks(),
            "Look again at what brokers read from the bucket, within budgets, and heal what is broken.",
        ),
        _job(
            cluster,
            "sweep",
            dg.AssetSelection.assets(cluster.swept_leavings).without_checks(),
            "Say what abandoned attempts, ours and brokers', left in the bucket; with execute delete it.",
        ),
        _job(
            cluster,
            "coverage",
            dg.AssetSelection.assets(cluster.catalogue, cluster.lineage).without_checks()
            | dg.AssetSelection.checks(cluster.covered),
            "Compare the catalogue's blocks with what topics list: no gap, no overlap. Changes nothing.",
        ),
        _job(
            cluster,
            "audit",
            dg.AssetSelection.assets(cluster.topic_audit).without_checks(),
            "Audit a topic for a period: run the notebook, keep it with its report. Changes nothing.",
        ),
    ]
