"""Messages of ledgers that no bookie has: as Arrow, as a DataFrame, and through a broker.

    make bench-cold [ACCEPT=1]
    .venv/bin/python -m benchmarks.cold [--batched 10000000] [--single 200000] [--rounds 3]

Starts real servers, fills two topics, offloads and releases them. Then the ways take turns, each in
a process of its own (cold_cell.py) and in an order that changes by round: this project's reader in
one process and in two, Spark's source on one core and on two, `pulsar-perf read` and Pulsar's
client. Ratios are taken within a round. A few columns are asked beside all, and a tenth of the time
beside the bytes of the blocks that hold it. Then entries in memory are decoded (cold_decode.py).
--accept writes benchmarks/results/cold.json and the figures of docs/cold-messages.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.agents import ROOT, say
from benchmarks.cold_decode import NINE, cases
from benchmarks.cold_decode import measured as decoded
from benchmarks.cold_goals import BATCHED, BOTH_CORES, SINGLE, SPARK, THROUGH_BROKER, goals
from benchmarks.cold_page import RESULT, write_page
from benchmarks.speed import turns_of_a_loop
from tests.support.tiered_cluster import TieredCluster, ml_names, post_all, tiered_cluster
from tests.support.untame import pulsar_perf
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.cold.columns import COLUMNS
from tiering_assets.lineage.find import OF_BLOCKS
from tiering_assets.resources.devstack.endpoints import environment_of
from tiering_assets.resources.devstack.options import MIB, StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.resources.sql import sql_text

_PLACES: Final = ("ledger_id", "entry_id")
_CELL_S: Final = 1200.0
_PERF: Final = re.compile(r"Aggregated throughput stats --- (\d+) records received --- ([\d.]+)")
Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Shape:
    """What one topic holds."""

    name: str
    topic: str
    messages: int
    payload_bytes: int
    batch: int


def shapes(batched: int, single: int) -> list[Shape]:
    return [
        Shape(BATCHED, "public/default/cold-batched", batched, 100, 500),
        Shape(SINGLE, "public/default/cold-single", single, 1024, 1),
    ]


def fill(cluster: TieredCluster, shape: Shape) -> None:
    """Send, offload, release. Half of a payload compresses."""
    import pulsar

    source, half = random.Random(shape.topic), shape.payload_bytes // 2
    some = [source.randbytes(half) + b"a" * (shape.payload_bytes - half) for _ in range(1000)]
    refused: list[str] = []

    def on_answer(result: Any, _message_id: Any) -> None:
        if result != pulsar.Result.Ok:
            refused.append(str(result))

    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(cluster.endpoints.service_url, logger=logger)
    try:
        producer = client.create_producer(
            f"persistent://{shape.topic}",
            batching_enabled=shape.batch > 1,
            batching_max_messages=max(2, shape.batch),
            batching_max_publish_delay_ms=1000,
            compression_type=pulsar.CompressionType.LZ4
            if shape.batch > 1
            else pulsar.CompressionType.NONE,
            max_pending_messages=20_000 if shape.batch > 1 else 1000,
            block_if_queue_full=True,
        )
        for number in range(shape.messages):
            producer.send_async(some[number % 1000], on_answer, partition_key=f"key-{number % 50}")
        producer.flush()
    finally:
        client.close()
    if refused:
        raise RuntimeError(f"{shape.topic}: {len(refused)} messages were refused: {refused[0]}")
    spec = _spec(shape)
    cluster.seal(spec)
    ledger_ids = cluster.ledger_ids(spec)
    cluster.offload(ledger_ids)
    cluster.release(spec, ledger_ids)
    post_all(cluster.steps)


def _spec(shape: Shape) -> TopicSpec:
    return TopicSpec(topic=shape.topic, messages=shape.messages, payload_bytes=shape.payload_bytes)


def blocks_of(cluster: TieredCluster, shape: Shape) -> list[dict[str, Any]]:
    [ml_name] = ml_names(_spec(shape))
    tables = Catalogue.of(cluster.steps).opened(OF_BLOCKS)
    found = answer(
        tables,
        "select length, publish_min, publish_max from blocks "
        f"where topic = {sql_text(ml_name)} order by ledger_id, part",
    )
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


class Bench:
    """Cells over one stack; `environment` has its settings."""

    def __init__(self, cluster: TieredCluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        known = environment_of(cluster.steps.settings)
        self._environment = {**os.environ, **known, "PYTHONPATH": str(ROOT)}

    def cell(self, *words: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.cold_cell", *words],
            env=self._environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=_CELL_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def messages(
        self, shape: Shape, columns: Sequence[str], begin: str = "", until: str = ""
    ) -> dict[str, Any]:
        times = [f"--{n}={one}" for n, one in (("begin", begin), ("until", until)) if one]
        return self.cell("messages", shape.topic, "--columns", ",".join(columns), *times)

    def two_processes(self, shape: Shape, columns: Sequence[str], middle: str) -> dict[str, Any]:
        """Halves of the time, side by side; the slower one's time counts."""
        halves = ((shape, columns, "", _before(middle)), (shape, columns, middle, ""))
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda half: self.messages(*half), halves))
        return {
            "rows": sum(one["rows"] for one in both),
            "wall_s": max(one["wall_s"] for one in both),
            "cpu_s": sum(one["cpu_s"] for one in both),
        }

    def spark(self, shape: Shape, columns: Sequence[str], cores: int) -> dict[str, Any]:
        words = ("--columns", ",".join(columns), "--cores", str(cores))
        return self.cell("spark", shape.topic, *words)

    def client(self, shape: Shape) -> dict[str, Any]:
        url = self._cluster.endpoints.service_url
        return self.cell("client", shape.topic, "--service-url", url)

    def perf(self, shape: Shape) -> dict[str, Any]:
        """`pulsar-perf read` by its own figure, which leaves out its start."""
        done = pulsar_perf(
            self._cluster.running,
            self._folder,
            # From the earliest, by default: said as an option it is refused.
            *("read", "-n", str(shape.messages), f"persistent://{shape.topic}"),
            timeout_s=_CELL_S,
            memory="512m",
        )
        found = _PERF.search(done.stdout)
        if found is None:
            raise RuntimeError(f"pulsar-perf: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        rows, rate = int(found[1]), float(found[2])
        return {"rows": rows, "wall_s": round(rows / rate, 3)}


def measured(bench: Bench, cluster: TieredCluster, shape: Shape, rounds: int) -> dict[str, Any]:
    blocks = blocks_of(cluster, shape)
    middle = blocks[len(blocks) // 2]["publish_min"].isoformat()
    ways: dict[str, Callable[[], dict[str, Any]]] = {
        "messages": lambda: bench.messages(shape, NINE),
        BOTH_CORES: lambda: bench.two_processes(shape, NINE, middle),
        SPARK: lambda: bench.spark(shape, NINE, 1),
        "Spark local[2]": lambda: bench.spark(shape, NINE, 2),
        THROUGH_BROKER[0]: lambda: bench.perf(shape),
        THROUGH_BROKER[1]: lambda: bench.client(shape),
    }
    turns: list[dict[str, Cell]] = []
    orders = itertools.cycle((tuple(ways), tuple(reversed(ways))))
    for number, order in zip(range(1, rounds + 1), orders, strict=False):
        turn: dict[str, Cell] = {}
        for way in order:
            turn[way] = ways[way]()
            say(f"{shape.name}, round {number}, {way}: {json.dumps(turn[way])}")
            if turn[way]["rows"] != shape.messages:
                raise RuntimeError(f"{way}: {turn[way]['rows']} of {shape.messages} messages")
        turns.append(turn)
    return {
        "messages": shape.messages,
        "blocks": len(blocks),
        "object_bytes": sum(one["length"] for one in blocks),
        "payload_bytes": shape.payload_bytes,
        **summary(turns),
        **_columns(bench, shape),
        **_part_of_time(bench, shape, blocks),
    }


def summary(turns: Sequence[Mapping[str, Cell]]) -> dict[str, Any]:
    """Medians of each way, and of what a round's ways are to each other."""
    ways = {
        way: {
            "rows_per_s": round(
                statistics.median(t[way]["rows"] / t[way]["wall_s"] for t in turns)
            ),
            **{
                name: statistics.median(t[way][name] for t in turns)
                for name in ("cpu_s", "rss_mb", "worker_rss_mb")
                if name in turns[0][way]
            },
        }
        for way in turns[0]
    }
    ratios = [
        min(turn[way]["wall_s"] for way in THROUGH_BROKER) / turn[BOTH_CORES]["wall_s"]
        for turn in turns
    ]
    return {"ways": ways, "times_broker": round(statistics.median(ratios), 2)}


def _columns(bench: Bench, shape: Shape) -> dict[str, Any]:
    few, every = bench.messages(shape, _PLACES), bench.messages(shape, COLUMNS.names)
    say(f"{shape.name}: {_PLACES} {few}, all {every}")
    return {"all_times_places": round(every["cpu_s"] / few["cpu_s"], 1)}


def _part_of_time(
    bench: Bench, shape: Shape, blocks: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A tenth of the time, from the middle on: bytes read, beside blocks that overlap it."""
    first = min(one["publish_min"] for one in blocks)
    last = max(one["publish_max"] for one in blocks)
    begin = first + (last - first) / 2
    until = begin + (last - first) / 10
    holding = [one for one in blocks if one["publish_min"] <= until and one["publish_max"] >= begin]
    found = bench.messages(shape, NINE, begin.isoformat(), until.isoformat())
    say(f"{shape.name}: a tenth of the time: {found}, {len(holding)} blocks hold it")
    return {
        "read_times_blocks": round(found["read_bytes"] / sum(one["length"] for one in holding), 3)
    }


def _before(moment: str) -> str:
    """The millisecond before it: `until` belongs to a span."""
    at = datetime.fromisoformat(moment)
    return datetime.fromtimestamp(at.timestamp() - 0.001, UTC).isoformat()


@contextmanager
def _running(folder: Path) -> Iterator[TieredCluster]:
    options = StackOptions(
        block_bytes=64 * MIB, ledger_entries_max=10_000_000, ledger_megabytes_max=64
    )
    with DevStack.start(folder / "stack", options) as dev:
        root = f"s3://{dev.endpoints.s3_bucket}/tables"
        with tiered_cluster(dev, catalogue_root=root) as cluster:
            yield cluster


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--batched", type=int, default=10_000_000)
    parser.add_argument("--single", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--accept", action="store_true")
    asked = parser.parse_args()
    load, speed, found = round(os.getloadavg()[0], 2), turns_of_a_loop(), {}
    random.seed(1)
    with tempfile.TemporaryDirectory(prefix="cold-") as name, _running(Path(name)) as cluster:
        bench = Bench(cluster, Path(name))
        for shape in shapes(asked.batched, asked.single):
            began = time.monotonic()
            fill(cluster, shape)
            say(f"{shape.name}: filled, offloaded and released in {time.monotonic() - began:.0f} s")
            found[shape.name] = measured(bench, cluster, shape, asked.rounds)
            say(json.dumps(found[shape.name]))
    document = {
        "schema": "tierkeeper/cold/1",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "load": load, **speed},
        "shapes": found,
        "decode": {case.name: decoded(case, 5) for case in cases()},
    }
    for goal in goals(document):
        say(f"{goal.what}: {goal.said}")
    if asked.accept:
        RESULT.write_text(json.dumps(document, indent=1) + "\n")
        write_page(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
