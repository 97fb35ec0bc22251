"""First start of automation with very many sealed ledgers: seconds, requests and memory of each
tick.

    python benchmarks/first_start.py --topics 1000 --ledgers 500

Topics lie in a real ZooKeeper; their ledgers are in the lists only, as a tick reads no more of
them. Prints one JSON line per sensor with the first and the median tick.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import dagster as dg
import psutil

from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore

TICKS = 6
SENSORS = ("offload_threshold", "release_due", "ledger_rollover", "stuck")


def fill(store: ZooKeeperStore, topics: int, ledgers: int) -> None:
    """Managed ledgers `public/default/persistent/bulk-n`, each with so many closed ledgers."""
    from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2

    closed_ms = int(time.time() * 1000) - 10**8
    number = 10**6
    for topic in range(topics):
        message = ml_pb2.ManagedLedgerInfo()
        for _ in range(ledgers):
            message.ledgerInfo.add(
                ledgerId=number, entries=50_000, size=50 * 1024 * 1024, timestamp=closed_ms
            )
            number += 1
        message.ledgerInfo.add(ledgerId=number)
        number += 1
        path = managed_ledger_path(f"public/default/persistent/bulk-{topic:05d}")
        store.create(path, message.SerializeToString())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--ledgers", type=int, default=500)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        policy = Path(directory) / "tiering.toml"
        policy.write_text("[default]\nmanagedLedgerOffloadThresholdInBytes = 0\n")
        with DevStack.start(Path(directory) / "stack", StackOptions()) as stack:
            os.environ.update(
                stack.environment()
                | {"TIERKEEPER_AUTO_ENABLED": "true", "TIERKEEPER_POLICY_FILE": str(policy)}
            )
            store = ZooKeeperStore(stack.settings().metadata.store)
            fill(store, asked.topics, asked.ledgers)
            store.close()
            home = Path(directory) / "home"
            home.mkdir()
            with dg.DagsterInstance.local_temp(str(home)) as instance:
                for name in SENSORS:
                    sys.stdout.write(json.dumps(measure(instance, name)) + "\n")
                    sys.stdout.flush()
    return 0


def measure(instance: dg.DagsterInstance, name: str) -> dict[str, object]:
    """Ticks of one sensor, each going on from the last one's cursor."""
    from tiering_assets.definitions import defs
    from tiering_assets.defs.shared.resources import TieringStack

    sensor = next(one for one in defs.get_repository_def().sensor_defs if one.name == name)
    cursor, seconds, runs, ledgers, cursors = None, [], 0, 0, []
    for _ in range(TICKS):
        context = dg.build_sensor_context(
            instance=instance,
            cursor=cursor,
            definitions=defs,
            resources={"tiering_stack": TieringStack()},
        )
        began = time.monotonic()
        data = sensor.evaluate_tick(context)
        seconds.append(round(time.monotonic() - began, 2))
        cursor = data.cursor
        cursors.append(len(cursor or ""))
        requests = data.run_requests or []
        runs += len(requests)
        ledgers += sum(int(request.tags["tierkeeper/ledgers"]) for request in requests)
    return {
        "sensor": name,
        "first_s": seconds[0],
        "median_s": statistics.median(seconds),
        "max_s": max(seconds),
        "runs": runs,
        "ledgers_asked_for": ledgers,
        "cursor_bytes_max": max(cursors),
        "rss_mb": round(psutil.Process().memory_info().rss / 1e6),
    }


if __name__ == "__main__":
    sys.exit(main())
