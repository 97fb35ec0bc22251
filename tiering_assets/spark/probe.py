"""The probe that `doctor --workers` runs in every slot: what a task would need, tried for real.

Owns: nothing is left behind. An upload is created and aborted, objects are only read, and a bookie
gets a connection and no request. Whatever goes wrong is a field of the row, never an exception, so
that one bad worker does not hide the others. Plain functions, callable without Spark.
"""

from __future__ import annotations

import os
import platform
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from tiering_assets.resources.bookkeeper.address_map import AddressMap
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.native.loader import this_loop
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.s3_client import credential_source
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.resources.settings import BookieSettings, Settings
from tiering_assets.resources.settings_of_workers import PlainSettings, worker_settings
from tiering_assets.spark.build import build_hash
from tiering_assets.tasks.worker_rows import (
    Software,
    WorkerOrder,
    WorkerRow,
    decode_order,
    encode_row,
)

if TYPE_CHECKING:
    import pyarrow as pa

PACKAGES = ("boto3", "botocore", "google-crc32c", "protobuf", "pyarrow", "pydantic")
"""What tasks import besides the standard library."""

_DIALS_AT_ONCE = 16
_ATTEMPTS_MAX = 2  # a probe finds out; it does not wait for a server to come back
_STANDALONE = re.compile(r".*/app-[0-9]+-[0-9]+/([0-9]+)")


def run_probes(batches: Iterator[pa.RecordBatch], plain: PlainSettings) -> Iterator[pa.RecordBatch]:
    """Answer every order of a partition: (slot, order as JSON) in, (slot, row as JSON) out."""
    import pyarrow as pa

    for batch in batches:
        for asked in batch.to_pylist():
            order = decode_order(asked["document"])
            row = probe_worker(order, plain, slot=asked["slot"])
            yield pa.RecordBatch.from_pylist([answer_columns(row.slot, encode_row(row))])


def answer_columns(slot: int, document: str) -> dict[str, Any]:
    """The columns that come out; the last two are for a worker whose code is refused."""
    return {"slot": slot, "document": document, "error": "", "error_class": ""}


def probe_worker(order: WorkerOrder, plain: PlainSettings, *, slot: int) -> WorkerRow:
    """Look at this process and what it reaches, and keep the slot for `order.hold_s` seconds."""
    began = time.monotonic()
    row = WorkerRow(
        slot=slot, host=socket.gethostname(), executor=_executor(os.getcwd()), pid=os.getpid()
    )
    try:
        row = probe(order, worker_settings(plain), row)
    except Exception as error:  # noqa: BLE001 - the edge of a process
        row = replace(row, error=f"{type(error).__name__}: {error}")
    time.sleep(max(0.0, began + order.hold_s - time.monotonic()))
    return row


def probe(
    order: WorkerOrder,
    settings: Settings,
    row: WorkerRow,
    *,
    store: ObjectStore | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> WorkerRow:
    """Return the row with all answers, as a process with these settings finds them."""
    row = replace(
        row,
        software=this_software(),
        has_password=bool(settings.bookies.password),
        bookie_errors=_unreachable(order, settings.bookies),
        credentials=credential_source(settings.store),
    )
    if not row.credentials:
        return row
    quick = replace(settings.store, attempts_max=_ATTEMPTS_MAX)
    return _ask_store(order, store or S3ObjectStore(quick), row, clock)


def this_software() -> Software:
    """What tasks of this process are made of."""
    return Software(
        build=build_hash(),
        python=platform.python_version(),
        packages={name: _version(name) for name in PACKAGES},
        loop=this_loop().said,
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _executor(directory: str) -> str:
    """What people find in the cluster manager's pages, or else the process that forked this one."""
    named = os.environ.get("SPARK_EXECUTOR_ID") or os.environ.get("CONTAINER_ID")
    standalone = _STANDALONE.fullmatch(directory)  # a standalone worker starts executors there
    return named or (standalone[1] if standalone else f"daemon-{os.getppid()}")


def _unreachable(order: WorkerOrder, settings: BookieSettings) -> dict[str, str]:
    ways = AddressMap.parse(settings.address_map)

    def dial(address: tuple[str, int]) -> str:
        try:
            dialled = ways.dialled(address)
            socket.create_connection(dialled, timeout=settings.connect_timeout_s).close()
        except OSError as error:
            return f"{ways.told(address)}: {error}"
        return ""

    with ThreadPoolExecutor(_DIALS_AT_ONCE) as pool:
        said = zip(order.bookies, pool.map(dial, order.bookies.values()), strict=True)
        return {bookie: error for bookie, error in said if error}


def _ask_store(
    order: WorkerOrder, store: ObjectStore, row: WorkerRow, clock: Callable[[], datetime]
) -> WorkerRow:
    try:
        row = replace(row, skew_s=(clock() - store.server_time()).total_seconds())
    except TierkeeperError as error:
        row = replace(row, clock_error=str(error))
    if order.marker_key:
        try:
            found = store.get(order.marker_key)
            text = "" if found is None else found.body.decode(errors="replace")
            row = replace(row, marker=text)
        except TierkeeperError as error:
            row = replace(row, marker_error=str(error))
    key = f"{order.upload_prefix}worker-{row.slot}"
    try:
        upload_id = store.create_upload(key, metadata={})
        store.abort_upload(key, upload_id)
        left = [upload for upload in store.list_uploads(key) if upload.key == key]
        row = replace(row, uploads_left=tuple(f"{u.key} {u.upload_id}" for u in left))
    except TierkeeperError as error:
        row = replace(row, upload_error=str(error))
    return row
