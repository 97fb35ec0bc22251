"""What runs in a Python worker of Spark: descriptors in, one Arrow batch of rows a task out.

Owns: a worker finds its credentials itself, in its environment or settings file, and gets only the
other settings from the driver, so that no secret is in a task. Whatever goes wrong with a task is a
row, not an exception: an exception would run every task of the partition again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tiering_assets.resources.garbage import freeze_once
from tiering_assets.resources.settings import KNOWN, Settings
from tiering_assets.resources.settings_places import own_credentials, variable_of
from tiering_assets.spark.schemas import rows_to_arrow
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, decode_task, failure_row
from tiering_assets.tasks.worker import Worker, run_task

if TYPE_CHECKING:
    import pyarrow as pa

PlainSettings = Mapping[str, Mapping[str, Any]]
# The master tells with how many others a worker shares its budgets.
SECTIONS_OF_WORKERS = (
    "bookies",
    "store",
    "offload",
    "budget",
    "spark",
)  # a worker opens no ZooKeeper and no broker


def plain_settings(settings: Settings) -> PlainSettings:
    """Return the settings that travel with a task: what workers use, credentials left out."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in _used(settings).items():
        if not KNOWN[name].secret:
            section, _, key = name.partition(".")
            found.setdefault(section, {})[key] = value
    return found


def credentials(settings: Settings) -> dict[str, str]:
    """Return what `plain_settings` leaves out, as the environment variables that workers read."""
    return {
        variable_of(name): value
        for name, value in _used(settings).items()
        if KNOWN[name].secret and value
    }


def worker_settings(plain: PlainSettings) -> Settings:
    """Return the driver's settings with this worker's own credentials. Raises SettingsError."""
    bare = Settings()
    wanted = [name for name in _used(bare) if KNOWN[name].secret]
    own = own_credentials(wanted, os.environ)
    sections: dict[str, Any] = {}
    for section in SECTIONS_OF_WORKERS:
        secrets = {n.partition(".")[2]: v for n, v in own.items() if n.startswith(f"{section}.")}
        sections[section] = type(getattr(bare, section))(**plain[section], **secrets)
    return Settings(**sections)


def run_batches(
    batches: Iterator[pa.RecordBatch], plain: PlainSettings
) -> Iterator[pa.RecordBatch]:
    """Run every task of a partition with one Worker and yield the rows of each as one batch."""
    freeze_once("worker")
    with ExitStack() as opened:
        worker: Worker | None = None
        for batch in batches:
            for text in batch.column("descriptor").to_pylist():
                task = decode_task(str(text))
                started = time.perf_counter()
                rows: list[BlockRow] = []
                try:
                    if worker is None:
                        worker = opened.enter_context(Worker(worker_settings(plain)))
                    rows.extend(run_task(task, worker))
                except Exception as error:  # noqa: BLE001 - the edge of a process
                    rows.append(_unexpected(task, rows, error, time.perf_counter() - started))
                yield rows_to_arrow(rows)


def _unexpected(
    task: BlockTask, rows: list[BlockRow], error: Exception, seconds: float
) -> BlockRow:
    done = {row.part_number for row in rows}
    block = next((b for b in task.blocks if b.part_number not in done), task.blocks[-1])
    return failure_row(task, block, error, seconds)


def _used(settings: Settings) -> dict[str, Any]:
    """By `section.field`, what a worker uses. Half a key pair from each side would be a riddle, so
    the access key is a secret, too.
    """
    return {
        name: attrgetter(name)(settings)
        for name in KNOWN
        if name.partition(".")[0] in SECTIONS_OF_WORKERS
    }
