"""The names of one cluster in a Dagster instance: its assets, checks, partitions, pools and
sensors.

Owns: asset keys and the partition set carry the cluster's name, because ledger ids repeat from
cluster to cluster; so do the tags of runs, and where the instance has a cluster already, sensors
and pools. The names are a value that whoever builds definitions hands on, so that one process may
build those of two clusters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from string import Formatter

import dagster as dg

from tiering_assets.defs.shared.partitions import FIRST_DAY
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import DagsterSettings

CLUSTER_TAG = "tierkeeper/cluster"
_CLUSTER = re.compile(r"[A-Za-z0-9_]+", re.ASCII)


def check_cluster(name: str) -> str:
    """Return a name that asset keys can carry. SettingsError for any other."""
    if _CLUSTER.fullmatch(name) is None:
        raise SettingsError(
            f"dagster.cluster is {name!r}, expected letters, digits and underscores: "
            "it becomes a part of every asset key"
        )
    return name


def check_partition_by(by: str) -> bool:
    """Whether partitions are days. SettingsError for what is neither `ledger` nor `day`."""
    if by not in ("ledger", "day"):
        raise SettingsError(f"dagster.partition_by is {by!r}, expected ledger or day")
    return by == "day"


def check_console(url: str) -> str:
    """Return a page that names bucket and key, or nothing. SettingsError for any other."""
    try:
        places = {name for _text, name, _spec, _how in Formatter().parse(url) if name is not None}
    except ValueError:  # a brace alone
        places = set()
    if url and places != {"bucket", "key"}:
        raise SettingsError(
            f"store.console_url is {url!r}, expected {{bucket}} and {{key}} in it, such as "
            "https://console.example.com/{bucket}/{key}"
        )
    return url


@dataclass(frozen=True)
class ClusterNames:
    """`is_first`: the instance has no other cluster that was there before. `by_day`: partitions are
    days, and else ledgers. `console_url`: where objects are looked at, empty for nowhere.
    """

    name: str
    is_first: bool = True
    by_day: bool = False
    console_url: str = ""

    @classmethod
    def of(cls, settings: DagsterSettings, *, console_url: str = "") -> ClusterNames:
        """SettingsError for a cluster's name that no asset key can carry, and a page without its
        places.
        """
        return cls(
            check_cluster(settings.cluster),
            settings.first_of_instance,
            check_partition_by(settings.partition_by),
            check_console(console_url),
        )

    def named(self, name: str) -> str:
        """The name of a sensor or pool in an instance that other clusters share.

        A first cluster's stay what they are: a renamed pool loses its limit, a renamed sensor its
        cursor.
        """
        return name if self.is_first else f"{name}_{self.name}"

    def key_of(self, asset: str) -> dg.AssetKey:
        return dg.AssetKey([self.name, asset])

    @cached_property
    def partition_set(self) -> str:
        """The keys of ledgers; empty while partitions are days."""
        return f"ledgers_{self.name}"

    @cached_property
    def ledger_partitions(self) -> dg.DynamicPartitionsDefinition:
        return dg.DynamicPartitionsDefinition(name=self.partition_set)

    @cached_property
    def partitions(self) -> dg.PartitionsDefinition[str]:
        """Of every asset about ledgers: one a ledger, or one a day in UTC up to today's."""
        if not self.by_day:
            return self.ledger_partitions
        return dg.DailyPartitionsDefinition(FIRST_DAY.isoformat(), timezone="UTC", end_offset=1)

    @cached_property
    def bookie_read_pool(self) -> str:
        """A pool bounds the runs that do one costly thing, however they were launched.

        A job's tag only bounds runs of that job, and materializing an asset by hand is none. How
        many is the instance's to say (`concurrency.pools` of dagster.yaml).
        """
        return self.named("bookie_read")

    @cached_property
    def release_pool(self) -> str:
        return self.named("release")

    @cached_property
    def topics(self) -> dg.AssetKey:
        return self.key_of("topics")

    @cached_property
    def bookkeeper_ledgers(self) -> dg.AssetKey:
        return self.key_of("bookkeeper_ledgers")

    @cached_property
    def bucket(self) -> dg.AssetKey:
        return self.key_of("bucket")

    @cached_property
    def sealed_ledgers(self) -> dg.AssetKey:
        return self.key_of("sealed_ledgers")

    @cached_property
    def offloaded_objects(self) -> dg.AssetKey:
        return self.key_of("offloaded_objects")

    @cached_property
    def index_objects(self) -> dg.AssetKey:
        return self.key_of("index_objects")

    @cached_property
    def certificates(self) -> dg.AssetKey:
        return self.key_of("certificates")

    @cached_property
    def offload_contexts(self) -> dg.AssetKey:
        return self.key_of("offload_contexts")

    @cached_property
    def deleted_bookie_ledgers(self) -> dg.AssetKey:
        return self.key_of("deleted_bookie_ledgers")

    @cached_property
    def tiering_backlog(self) -> dg.AssetKey:
        return self.key_of("tiering_backlog")

    @cached_property
    def released_ledgers(self) -> dg.AssetKey:
        return self.key_of("released_ledgers")

    @cached_property
    def scrubbed_ledgers(self) -> dg.AssetKey:
        return self.key_of("scrubbed_ledgers")

    @cached_property
    def swept_leavings(self) -> dg.AssetKey:
        return self.key_of("swept_leavings")

    @cached_property
    def catalogue(self) -> dg.AssetKey:
        return self.key_of("catalogue")

    @cached_property
    def lineage(self) -> dg.AssetKey:
        return self.key_of("lineage")

    @cached_property
    def topic_audit(self) -> dg.AssetKey:
        return self.key_of("topic_audit")

    @cached_property
    def covered(self) -> dg.AssetCheckKey:
        return dg.AssetCheckKey(self.lineage, "covered")

    @cached_property
    def read_back_equal(self) -> dg.AssetCheckKey:
        return dg.AssetCheckKey(self.offloaded_objects, "read_back_equal")

    @cached_property
    def index_suite(self) -> dg.AssetCheckKey:
        return dg.AssetCheckKey(self.index_objects, "index_suite")

    @cached_property
    def expectation_suites(self) -> dg.AssetCheckKey:
        return dg.AssetCheckKey(self.deleted_bookie_ledgers, "expectation_suites")

    @cached_property
    def released_safely(self) -> dg.AssetCheckKey:
        return dg.AssetCheckKey(self.deleted_bookie_ledgers, "released_safely")

    @cached_property
    def objectives_met(self) -> dg.AssetCheckKey:
        return dg.AssetCheckKey(self.tiering_backlog, "objectives_met")
