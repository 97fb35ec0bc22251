"""Ledgers that Spark's workers copy, and what became of them in the store."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.support.sim_ledger import SimBookies, SimLedger
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.store import Part
from tiering_assets.tasks.descriptors import BlockRow, BlockTask
from tiering_assets.tasks.runner import split_task

BLOCK = 5 * 1024 * 1024  # the smallest part S3 takes


def ledger_of(bookies: SimBookies, ledger_id: int, *, megabytes: int) -> SimLedger:
    """Entries of random sizes, the same for the same id."""
    source = random.Random(ledger_id)
    payloads = [source.randbytes(source.randint(1, 128 * 1024)) for _ in range(megabytes * 16)]
    ledger = SimLedger.store(bookies, ledger_id, payloads, block_bytes=BLOCK)
    return replace(ledger, key=f"{uuid.uuid4()}-ledger-{ledger_id}")


def copy_tasks(objects: S3ObjectStore, ledger: SimLedger) -> list[BlockTask]:
    """One task a block, as an upload that is open."""
    upload_id = objects.create_upload(ledger.key, metadata={"role": "data"})
    return split_task(ledger.task(upload_id=upload_id), bytes_max=1)


def completed(
    objects: S3ObjectStore, tasks: Sequence[BlockTask], rows: Sequence[BlockRow]
) -> bytes:
    """Complete the upload with the parts that the rows tell of, and return the object's bytes."""
    upload_id, key, attempt = tasks[0].upload_id, tasks[0].data_key, tasks[0].attempt
    assert upload_id is not None
    parts = [
        Part(
            part_number=row.part_number,
            size=row.block_length,
            etag=row.etag,
            sha256=bytes.fromhex(row.sha256),
        )
        for row in sorted(rows, key=lambda row: row.part_number)
        if row.attempt == attempt
    ]
    objects.complete_upload(key, upload_id, parts)
    found = objects.get(key)
    assert found is not None
    return found.body


def wait_for(condition: Callable[[], bool], *, what: str, seconds: float = 60.0) -> None:
    """Look fifty times a second: what is to be seen may last no longer than a part's upload."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)


def errors_of(rows: Sequence[BlockRow]) -> set[tuple[str, bool, str]]:
    """How each row's task ended: its error's class, whether it may be tried again, and the
    error.
    """
    return {(row.error_class, row.retryable, row.error) for row in rows}
