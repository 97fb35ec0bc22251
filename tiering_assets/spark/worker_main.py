"""What runs in a Python worker of Spark: descriptors in, one Arrow batch of rows a task out.

Owns: a worker finds its credentials itself, in its environment or settings file, and gets only the
other settings from the driver, so that no secret is in a task. Whatever goes wrong with a task is a
row, not an exception: an exception would run every task of the partition again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import Field, fields, replace
from typing import TYPE_CHECKING, Any

from tiering_assets.resources.garbage import freeze_once
from tiering_assets.resources.settings import Settings
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
    return {
        section: {
            item.name: getattr(chosen, item.name)
            for item in fields(chosen)
            if not _is_credential(section, item)
        }
        for section, chosen in _used(settings)
    }


def credentials(settings: Settings) -> dict[str, str]:
    """Return what `plain_settings` leaves out, as the environment variables that workers read."""
    return {
        f"TIERKEEPER_{section}_{item.name}".upper(): getattr(chosen, item.name)
        for section, chosen in _used(settings)
        for item in fields(chosen)
        if _is_credential(section, item) and getattr(chosen, item.name)
    }


def worker_settings(plain: PlainSettings) -> Settings:
    """Return the driver's settings with this worker's own credentials. Raises SettingsError."""
    from tiering_assets.resources.settings_sources import load_settings

    own = load_settings().settings
    changed: dict[str, Any] = {
        section: replace(chosen, **plain[section]) for section, chosen in _used(own)
    }
    return replace(own, **changed)


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


def _used(settings: Settings) -> list[tuple[str, Any]]:
    return [(section, getattr(settings, section)) for section in SECTIONS_OF_WORKERS]


def _is_credential(section: str, item: Field[Any]) -> bool:
    # The access key, too: half a key pair from each side would be a riddle.
    return bool(item.metadata["secret"]) or (section, item.name) == ("store", "access_key")
