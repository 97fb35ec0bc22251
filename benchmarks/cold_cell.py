"""One way to read all messages of a topic, in a process of its own; a line of JSON tells what it
took.

    python -m benchmarks.cold_cell messages|client|spark TOPIC [...]

Time begins once everything is loaded, and one small reading is done. `read_bytes` are those of
objects. Spark's is the second of two readings, as its workers start with the first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tiering_assets.resources.object_store.s3 import S3ObjectStore

_POLL_S = 0.05


def by_messages(topic: str, columns: list[str], begin: str, until: str) -> dict[str, Any]:
    from tiering_assets.lineage.messages.as_arrow import messages

    def read(begin: str, until: str) -> int:
        reader = messages(topic, begin=begin, until=until, columns=columns)
        return sum(batch.num_rows for batch in reader)

    read("2100-01-01", "2100-01-02")
    with _bytes_counted() as counted:
        found = _timed(lambda: read(begin, until))
    return {**found, "read_bytes": sum(counted)}


def by_client(topic: str, service_url: str) -> dict[str, Any]:
    import pulsar

    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(service_url, logger=logger)

    def read() -> int:
        count = 0
        reader = client.create_reader(
            f"persistent://{topic}", pulsar.MessageId.earliest, receiver_queue_size=10_000
        )
        while reader.has_message_available():
            reader.read_next(60_000)
            count += 1
        reader.close()
        return count

    try:
        return _timed(read)
    finally:
        client.close()


def by_spark(topic: str, columns: list[str], cores: int) -> dict[str, Any]:
    from pyspark.sql import functions as f

    from tiering_assets.lineage.in_spark.registered import register
    from tiering_assets.resources.settings_sources import load_settings
    from tiering_assets.spark.session import open_session

    settings = load_settings({"spark.master": f"local[{cores},4]"}).settings
    with open_session(settings) as session:
        register(session)
        reader = session.read.format("pulsar_ledgers").option("topic", topic)
        frame = reader.option("columns", ",".join(columns)).load()
        # A sum over each column has all of it computed, and next to nothing moved to the driver.
        sums = [f.sum(f.length(f.col(name).cast("string"))).alias(name) for name in columns]

        def read() -> int:
            return int(frame.agg(f.count("*").alias("rows"), *sums).collect()[0]["rows"])

        read()
        with _most_of_workers() as most:
            found = _timed(read)
    return {**found, "worker_rss_mb": round(max(most, default=0) / 1e6)}


def _timed(read: Callable[[], int]) -> dict[str, Any]:
    began, cpu = time.monotonic(), _cpu()
    rows = read()
    return {
        "rows": rows,
        "wall_s": round(time.monotonic() - began, 3),
        "cpu_s": round(_cpu() - cpu, 3),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _cpu() -> float:
    """Of this process and of all below it, also while they run."""
    import psutil

    me = psutil.Process()
    total = sum(os.times()[2:4])  # of those that have ended
    for one in (me, *me.children(recursive=True)):
        try:
            took = one.cpu_times()
        except psutil.Error:
            continue
        total += took.user + took.system
    return total


@contextmanager
def _bytes_counted() -> Iterator[list[int]]:
    counted: list[int] = []
    really = S3ObjectStore.get_range

    def get_range(self: S3ObjectStore, key: str, **asked: Any) -> bytes:
        found = really(self, key, **asked)
        counted.append(len(found))
        return found

    S3ObjectStore.get_range = get_range  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        S3ObjectStore.get_range = really  # type: ignore[method-assign]


@contextmanager
def _most_of_workers() -> Iterator[list[int]]:
    """Bytes in memory of Spark's Python workers, looked at again and again."""
    import psutil

    seen: list[int] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_POLL_S):
            for one in psutil.Process().children(recursive=True):
                try:
                    if "pyspark.daemon" in " ".join(one.cmdline()):
                        seen.append(one.memory_info().rss)
                except psutil.Error:
                    continue

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=("messages", "client", "spark"))
    parser.add_argument("topic")
    parser.add_argument("--columns", default="")
    parser.add_argument("--begin", default="")
    parser.add_argument("--until", default="")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--service-url", default="")
    asked = parser.parse_args()
    columns = asked.columns.split(",")
    if asked.way == "messages":
        found = by_messages(asked.topic, columns, asked.begin, asked.until)
    elif asked.way == "client":
        found = by_client(asked.topic, asked.service_url)
    else:
        found = by_spark(asked.topic, columns, asked.cores)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
