"""The asset graph's edges: what each asset is made from."""

from __future__ import annotations

from tiering_assets.defs.batch.offload_assets import offload_ledgers
from tiering_assets.defs.batch.release_assets import release_ledgers
from tiering_assets.defs.explain.discover_assets import discovered
from tiering_assets.defs.scrub_assets import scrubbed_ledgers
from tiering_assets.defs.shared.partitions import (
    CERTIFICATES,
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
from tiering_assets.defs.shared.preview_api import with_lineage
from tiering_assets.defs.sweep_assets import swept_leavings

UPSTREAM = {
    OFFLOADED_OBJECTS: [SEALED_LEDGERS],
    INDEX_OBJECTS: [SEALED_LEDGERS],
    CERTIFICATES: [OFFLOADED_OBJECTS, INDEX_OBJECTS],
    OFFLOAD_CONTEXTS: [CERTIFICATES],
    DELETED_BOOKIE_LEDGERS: [OFFLOAD_CONTEXTS],
    TIERING_BACKLOG: [SEALED_LEDGERS],
    RELEASED_LEDGERS: [DELETED_BOOKIE_LEDGERS],
    SCRUBBED_LEDGERS: [OFFLOAD_CONTEXTS],
    SWEPT_LEAVINGS: [OFFLOAD_CONTEXTS],
}
ASSETS = [
    with_lineage(definition, UPSTREAM)
    for definition in (
        discovered,
        offload_ledgers,
        release_ledgers,
        scrubbed_ledgers,
        swept_leavings,
    )
]
