"""The code that workers run: which files it is, their hash, and the zip that carries them.

Owns: the hash is of the files' contents, so that a checkout, an installed wheel and a shipped zip
of the same code have the same one, and another code has another. Only the rooms that workers need
count: a change of the command line makes no image of workers stale. Those that read messages run
more modules (reader_rooms.py) and have a hash of their own: a change there stops no offload. The
libraries built from core.c travel in the zip, too, and do not count: where one is missing, Python
does the same.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from pathlib import Path

from tiering_assets.resources.native.build import BUILT
from tiering_assets.spark.reader_rooms import READER_ROOMS

NATIVE = "tiering_assets.resources.native"

# Rooms whose modules reach workers; tests/unit/spark/test_build.py follows the imports.
WORKER_ROOMS = (
    "tiering_assets.resources",
    "tiering_assets.resources._proto",
    "tiering_assets.resources.bookkeeper",
    "tiering_assets.resources.devstack",
    NATIVE,
    "tiering_assets.resources.metastore",
    "tiering_assets.resources.object_store",
    "tiering_assets",
    "tiering_assets.catalogue",
    "tiering_assets.catalogue.facts",
    "tiering_assets.catalogue.upkeep",
    "tiering_assets.ground",
    "tiering_assets.look",
    "tiering_assets.look.ledger",
    "tiering_assets.offload_format",
    "tiering_assets.offload_format.segments",
    "tiering_assets.records",
    "tiering_assets.spark",
    "tiering_assets.tasks",
)
# Of these, a few modules only; the rest is for other processes.
ONLY = {
    "tiering_assets.resources": (
        "__init__",
        "ending",
        "errors",
        "garbage",
        "lots",
        "proto_text",
        "quantity",
        "settings",
        "settings_engines",
        "settings_kinds",
        "settings_lineage",
        "settings_of_workers",
        "settings_places",
        "settings_protocol",
        "settings_reading",
        "settings_stream",
        "spark_master",
        "sql",
        "table_files",
    ),
    "tiering_assets.resources.devstack": ("__init__", "prerequisites"),
    "tiering_assets.resources.metastore": (
        "__init__",
        "envelope",
        "ledger_info",
        "offload_context",
        "topic_names",
    ),
    "tiering_assets": ("__init__",),
    "tiering_assets.catalogue": ("__init__", "columns", "named"),
    "tiering_assets.catalogue.upkeep": (
        "__init__",
        "shard",
        "shard_bytes",
        "shard_worker",
        "spans",
    ),
    "tiering_assets.ground": (
        "__init__",
        "day_book",
        "effects",
        "named_records",
        "record_book",
    ),
    "tiering_assets.look": ("__init__",),
    "tiering_assets.offload_format.segments": ("__init__", "block"),
    "tiering_assets.look.ledger": ("__init__", "states"),
}
_READER = {room: ("__init__", *names.split()) for room, names in READER_ROOMS.items()}
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # the first a zip can hold: the bytes must not tell the time


@cache
def worker_files() -> tuple[tuple[str, bytes], ...]:
    """Return path and contents of every file, from a folder or from a zip.

    Read once, so that what is hashed is what is shipped while somebody edits.
    """
    return tuple(_found({room: ONLY.get(room) for room in WORKER_ROOMS}))


@cache
def reader_files() -> tuple[tuple[str, bytes], ...]:
    """The same of those that sources of messages need."""
    return tuple(_found(_READER))


def _found(rooms: Mapping[str, Collection[str] | None]) -> Iterator[tuple[str, bytes]]:
    for room, names in rooms.items():
        folder = room.replace(".", "/")
        for file in sorted(files(room).iterdir(), key=lambda found: found.name):
            stem, dot, kind = file.name.rpartition(".")
            if dot and kind in ("py", "c") and (names is None or stem in names):
                yield f"{folder}/{file.name}", file.read_bytes()


@cache
def _libraries() -> tuple[tuple[str, bytes], ...]:
    built = files(NATIVE) / BUILT
    if not built.is_dir():
        return ()
    folder = f"{NATIVE.replace('.', '/')}/{BUILT}"
    found = sorted(built.iterdir(), key=lambda file: file.name)
    return tuple((f"{folder}/{file.name}", file.read_bytes()) for file in found)


@cache
def build_hash() -> str:
    """Return the first 16 hex digits of SHA-256 over the files' paths, lengths and contents."""
    return _hash_of(worker_files())


@cache
def reader_hash() -> str:
    """The same of `reader_files`."""
    return _hash_of(reader_files())


def _hash_of(found: tuple[tuple[str, bytes], ...]) -> str:
    digest = sha256()
    for path, contents in found:
        digest.update(f"{path}\0{len(contents)}\0".encode())
        digest.update(contents)
    return digest.hexdigest()[:16]


def zipped() -> bytes:
    """Return all of them as one zip, the same bytes whenever the files are the same."""
    written, every = BytesIO(), dict((*worker_files(), *reader_files(), *_libraries()))
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        for path, contents in every.items():
            info = zipfile.ZipInfo(path, _ZIP_DATE)
            info.create_system = 3  # Unix, whatever wrote it
            info.external_attr = 0o644 << 16
            archive.writestr(info, contents)
    return written.getvalue()


@cache
def shipped_zip() -> Path:
    """Write the zip into a folder that ends with this process, named by its bytes; its path.

    The name matters: Spark refuses, or does not notice, other contents under a name it knows.
    """
    contents = zipped()
    name = f"tierkeeper-{sha256(contents).hexdigest()[:12]}.zip"
    folder = Path(tempfile.mkdtemp(prefix="tierkeeper-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / name
    path.write_bytes(contents)
    return path
