"""Spark's workers under a budget that lies in the bucket, judged by a wiretap before the store."""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from tests.support.sim_ledger import SimBookies, SimLedger
from tests.support.wiretap import Wiretap, most_in
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import Budget
from tiering_assets.records.writer import Writer
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.spark.runner import open_spark_runner

pytestmark = [pytest.mark.stack, pytest.mark.spark]

MIB = 1024 * 1024
RATE = 3 * MIB  # split into three parts: two tasks at once and their driver


def test_two_workers_together_stay_below_the_budget(stack, spark_runner):
    del spark_runner  # the process has one session; it stays for other tests
    settings = stack.settings()
    endpoint = urlsplit(settings.store.endpoint)
    with ExitStack() as exits:
        tap = exits.enter_context(Wiretap((endpoint.hostname, endpoint.port)))
        tapped = replace(
            settings,
            store=replace(settings.store, endpoint=tap.url),
            spark=replace(settings.spark, master="local[2,4]"),
            budget=replace(settings.budget, runs_max=1),
        )
        objects = S3ObjectStore(settings.store)
        book = RecordBook(objects, f"budget-{uuid.uuid4().hex[:8]}")
        book.create(
            keys.BUDGET,
            Budget(
                author="test",
                set_at=datetime.now(UTC),
                writer=Writer(tool_version="0", host="h", run_id="r"),
                upload_bytes_per_s=RATE,
            ),
        )
        # A second instance in the bucket that other tests audit.
        exits.callback(objects.delete, book.prefix + keys.BUDGET)
        bookies = SimBookies(exits)
        payloads = [bytes([n % 251]) * 64 * 1024 for n in range(14 * 16)]  # 14 MiB
        ledgers = [
            replace(
                SimLedger.store(bookies, number, payloads, block_bytes=16 * MIB),
                key=f"{uuid.uuid4()}-ledger-{number}",
            )
            for number in (41, 42)
        ]
        runner = exits.enter_context(open_spark_runner(tapped))
        key = book.prefix + keys.BUDGET
        tasks = [replace(ledger.task(), budget_key=key, topic="t/n/p/x") for ledger in ledgers]
        began = time.monotonic()
        rows = runner.run(tasks)
        assert [row.error for row in rows] == ["", ""]
        assert time.monotonic() - began > 14
        assert [found.size for ledger in ledgers if (found := objects.head(ledger.key))] == [
            len(ledger.object_bytes()) for ledger in ledgers
        ]
    assert sum(seen.size for seen in tap.sent) > 28 * MIB
    assert most_in(tap.sent) <= 10 * RATE * 2 / 3
    assert most_in(tap.sent) > 10 * RATE / 3  # two workers, and not one after the other
