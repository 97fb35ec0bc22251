"""The six jobs over assets; pause_job.py is the seventh.

Each may run again at any time; `verify` and `discover` change no ledger.
Runs get their ledgers in run config and no partition tags; see batches.py.
"""

from __future__ import annotations

import dagster as dg

from tiering_assets.defs.explain.figures import OBJECTIVES_MET
from tiering_assets.defs.shared.checks import INDEX_SUITE, READ_BACK_EQUAL, RELEASED_SAFELY
from tiering_assets.defs.shared.partitions import (
    CERTIFICATES,
    CLUSTER,
    CLUSTER_TAG,
    DELETED_BOOKIE_LEDGERS,
    INDEX_OBJECTS,
    OFFLOAD_CONTEXTS,
    OFFLOADED_OBJECTS,
    RELEASED_LEDGERS,
    SCRUBBED_LEDGERS,
    SEALED_LEDGERS,
    SWEPT_LEAVINGS,
    TIERING_BACKLOG,
)
from tiering_assets.defs.shared.preview_api import AssetJob
from tiering_assets.defs.shared.run_history import JOB_TAG, RELEASE_TAG


def _job(name: str, selection: dg.AssetSelection, description: str) -> AssetJob:
    tags = {JOB_TAG: name, CLUSTER_TAG: CLUSTER}
    if name == "release":
        tags[RELEASE_TAG] = CLUSTER
    return dg.define_asset_job(name, selection, description=description, tags=tags)


JOBS = [
    _job(
        "discover",
        dg.AssetSelection.assets(SEALED_LEDGERS, TIERING_BACKLOG).without_checks()
        | dg.AssetSelection.checks(OBJECTIVES_MET),
        "Survey all topics: admit sealed ledgers, count the backlog. Loads no topic.",
    ),
    _job(
        "offload",
        dg.AssetSelection.assets(
            OFFLOADED_OBJECTS, INDEX_OBJECTS, CERTIFICATES, OFFLOAD_CONTEXTS
        ).without_checks(),
        "Copy, verify and publish a batch of sealed ledgers; by default all, up to a hundred.",
    ),
    _job(
        "verify",
        dg.AssetSelection.checks(READ_BACK_EQUAL, INDEX_SUITE, RELEASED_SAFELY),
        "Read certified ledgers again and check them. Changes nothing.",
    ),
    _job(
        "release",
        dg.AssetSelection.assets(DELETED_BOOKIE_LEDGERS, RELEASED_LEDGERS).without_checks(),
        "Delete the bookie copies that are due, behind the release gate; or with dry_run say which.",
    ),
    _job(
        "scrub",
        dg.AssetSelection.assets(SCRUBBED_LEDGERS).without_checks(),
        "Look again at what brokers read from the bucket, within budgets, and heal what is broken.",
    ),
    _job(
        "sweep",
        dg.AssetSelection.assets(SWEPT_LEAVINGS).without_checks(),
        "Say what abandoned attempts, ours and brokers', left in the bucket; with execute delete it.",
    ),
]
