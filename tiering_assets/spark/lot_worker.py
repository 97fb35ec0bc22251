"""Lots of bytes in a Python worker of Spark: each goes to a function that is named, and comes back.

Owns: whatever goes wrong is a row, as with blocks (spark/worker_main.py). An exception would make
Spark do the lot again, and again.
"""

from __future__ import annotations

import importlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tiering_assets.resources.garbage import freeze_once
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_of_workers import PlainSettings, worker_settings

if TYPE_CHECKING:
    import pyarrow as pa

Opened = Callable[..., Callable[[bytes], bytes]]


def run_lots(
    batches: Iterator[pa.RecordBatch],
    plain: PlainSettings,
    entry: str,
    arguments: Mapping[str, Any],
) -> Iterator[pa.RecordBatch]:
    """Answer every lot of a partition by what `entry` opens with this worker's settings."""
    import pyarrow as pa

    freeze_once("worker")
    work: Callable[[bytes], bytes] | None = None
    for batch in batches:
        lots: list[Any] = batch.column("lot").to_pylist()
        for lot in lots:
            columns = answer_columns()
            try:
                work = work or _opened(entry, worker_settings(plain), arguments)
                columns["lot"] = b64encode(work(lot)).decode()
            except Exception as error:  # noqa: BLE001 - the edge of a process
                columns |= {"error": str(error), "error_class": type(error).__name__}
            yield pa.RecordBatch.from_pylist([columns])


def answer_columns() -> dict[str, Any]:
    """The columns that come out, as text: of a worker without our code, types are what JSON has."""
    return {"lot": "", "error": "", "error_class": ""}


def _opened(
    entry: str, settings: Settings, arguments: Mapping[str, Any]
) -> Callable[[bytes], bytes]:
    module, _, name = entry.partition(":")
    open_: Opened = getattr(importlib.import_module(module), name)
    return open_(settings, **arguments)
