"""Names: the cluster, asset keys, and the partition key of a ledger.

Owns: one partition per admitted ledger, its key the ledger id with 19 digits, so that keys sort as
ids do and no topic name ever becomes a key. Set and asset keys carry the cluster's name, because
ledger ids repeat from cluster to cluster; so do the tags of runs, and where a Dagster instance has a
cluster already, sensors and pools. The name is read once, when definitions are loaded.
"""

from __future__ import annotations

import re

import dagster as dg

from resources.errors import SettingsError
from resources.settings_sources import load_settings

KEY_DIGITS = 19  # of the largest 64-bit ledger id
_CLUSTER = re.compile(r"[A-Za-z0-9_]+", re.ASCII)


def check_cluster(name: str) -> str:
    """Return a name that asset keys can carry. SettingsError for any other."""
    if _CLUSTER.fullmatch(name) is None:
        raise SettingsError(
            f"dagster.cluster is {name!r}, expected letters, digits and underscores: "
            "it becomes a part of every asset key"
        )
    return name


_SETTINGS = load_settings().settings.dagster
CLUSTER = check_cluster(_SETTINGS.cluster)
IS_FIRST = _SETTINGS.first_of_instance
CLUSTER_TAG = "tierkeeper/cluster"
PARTITION_SET = f"ledgers_{CLUSTER}"
ledger_partitions = dg.DynamicPartitionsDefinition(name=PARTITION_SET)


def named(name: str) -> str:
    """The name of a sensor or pool in an instance that other clusters share.

    A first cluster's stay what they are: a renamed pool loses its limit, a renamed sensor its cursor.
    """
    return name if IS_FIRST else f"{name}_{CLUSTER}"


def key_of(asset: str) -> dg.AssetKey:
    return dg.AssetKey([CLUSTER, asset])


SEALED_LEDGERS = key_of("sealed_ledgers")
OFFLOADED_OBJECTS = key_of("offloaded_objects")
INDEX_OBJECTS = key_of("index_objects")
CERTIFICATES = key_of("certificates")
OFFLOAD_CONTEXTS = key_of("offload_contexts")
DELETED_BOOKIE_LEDGERS = key_of("deleted_bookie_ledgers")
TIERING_BACKLOG = key_of("tiering_backlog")
RELEASED_LEDGERS = key_of("released_ledgers")
SCRUBBED_LEDGERS = key_of("scrubbed_ledgers")
SWEPT_LEAVINGS = key_of("swept_leavings")


def partition_key(ledger_id: int) -> str:
    """`0000000000000000042`. ValueError for what is no ledger id."""
    if not 0 <= ledger_id < 1 << 63:
        raise ValueError(f"no ledger id: {ledger_id}")
    return f"{ledger_id:0{KEY_DIGITS}d}"


def ledger_id_of(key: str) -> int:
    """Undo partition_key. ValueError for any other text."""
    if len(key) != KEY_DIGITS or not (key.isascii() and key.isdecimal()):
        raise ValueError(f"no ledger partition key: {key!r}")
    return int(key)
