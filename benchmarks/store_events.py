"""Seconds to store events of no run into an empty SQLite home, by our bulk way and by Dagster's
own.

Run: python benchmarks/store_events.py [--events 300 3000]

docs/decisions/0015 has what it said. Half of the events are materializations, half evaluations of
checks.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime

import dagster as dg

from tests.support.default_cluster import CLUSTER
from tiering_assets.defs.shared.checks import finding
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.defs.shared.preview_api import evaluation_entry, runless_entry
from tiering_assets.defs.shared.preview_store import store_entries

Entries = list[dg.EventLogEntry]
Way = Callable[[dg.DagsterInstance, Entries], None]


def one_by_one(instance: dg.DagsterInstance, entries: Entries) -> None:
    for entry in entries:
        instance.event_log_storage.store_event(entry)


WAYS: dict[str, Way] = {"in bulk": store_entries, "store_event": one_by_one}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.add_argument("--events", type=int, nargs="+", default=[300, 3000])
    for count in options.parse_args().events:
        for name, way in WAYS.items():
            seconds = min(measure(way, count) for _ in range(2))
            print(f"{count} events {name}: {seconds:.2f} s, {count / seconds:.0f} a second")


def measure(way: Way, count: int) -> float:
    with tempfile.TemporaryDirectory() as home, dg.DagsterInstance.local_temp(home) as instance:
        way(instance, entries_of(range(2)))  # what an instance makes when it first stores
        entries = entries_of(range(2, 2 + count // 2))
        began = time.perf_counter()
        way(instance, entries)
        return time.perf_counter() - began


def entries_of(ledger_ids: range) -> Entries:
    now = datetime.now(UTC)
    made = [
        dg.AssetMaterialization(
            CLUSTER.offloaded_objects,
            partition=partition_key(ledger_id),
            description=f"ledger {ledger_id}",
            metadata={"ledger_id": ledger_id, "object": "s3://bucket/" + "x" * 80},
        )
        for ledger_id in ledger_ids
    ]
    judged = [finding(CLUSTER.read_back_equal, ledger_id, "as told") for ledger_id in ledger_ids]
    return [runless_entry(one, at=now) for one in made] + [
        evaluation_entry(one, at=now, target=None) for one in judged
    ]


if __name__ == "__main__":
    main()
