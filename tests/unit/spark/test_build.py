"""The code of workers: what it is, that its hash is its contents', and that the zip runs alone."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest

from tests.support.rooms import MODULES
from tests.support.spark_cluster import copy_code
from tiering_assets.spark.build import (
    build_hash,
    reader_files,
    reader_hash,
    shipped_zip,
    worker_files,
    zipped,
)
from tiering_assets.spark.carried import SOURCES

ROOT = Path(__file__).parents[3]
ENTRIES = ("tiering_assets.spark.worker_main", "tiering_assets.spark.bootstrap")
IN_DRIVER = {"tiering_assets.spark.runner", "tiering_assets.spark.session"}
READ = "tiering_assets.lineage.in_spark.ledger_frame"
READERS = (READ, *(entry.partition(":")[0] for entry in SOURCES.values()))
HASH = "from tiering_assets.spark.build import {0}; print({0}())"


def modules_reached(*entries):
    """Modules of ours that the entries import, at any depth."""
    reached: set[str] = set()
    todo = [*entries]
    while todo:
        name = todo.pop()
        if name in reached or name not in MODULES or name in IN_DRIVER:
            continue
        reached.add(name)
        for node in ast.walk(ast.parse(MODULES[name].read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                todo += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                todo += [alias.name for alias in node.names]
    return {_in_archive(name) for name in reached}


def _in_archive(name):
    """The path of a module where it is imported from: without the link of a checkout."""
    as_package = "/__init__" if MODULES[name].name == "__init__.py" else ""
    return f"{name.replace('.', '/')}{as_package}.py"


def hash_of(folder, which=build_hash):
    told = f"import sys; sys.path.insert(0, {str(folder)!r}); {HASH.format(which.__name__)}"
    line = [sys.executable, "-S", "-c", told]
    return subprocess.run(line, capture_output=True, text=True, check=True, cwd="/").stdout.strip()


def test_everything_that_a_worker_imports_is_there():
    reached = modules_reached(*ENTRIES)
    assert "tiering_assets/tasks/copy.py" in reached
    assert reached - {path for path, _ in worker_files()} == set()


def test_what_reads_messages_is_there_and_nothing_else():
    reached, listed = modules_reached(*READERS), {path for path, _ in reader_files()}
    assert "tiering_assets/cold/decode.py" in reached
    assert reached - listed == set()
    more = {path for path in listed - reached if not path.endswith(("__init__.py", ".c"))}
    assert more == set()


def test_a_folder_and_a_zip_of_the_same_code_have_the_same_hash_and_changed_code_another(tmp_path):
    copy_code(tmp_path)
    assert hash_of(tmp_path) == hash_of(shipped_zip()) == build_hash()
    command_line = tmp_path / "tiering_assets" / "cli"
    shutil.rmtree(command_line)
    assert hash_of(tmp_path) == build_hash(), "workers have no command line"
    changed = tmp_path / "tiering_assets" / "tasks" / "copy.py"
    changed.write_text(changed.read_text() + "\n")
    assert hash_of(tmp_path) != build_hash()


def test_a_change_of_what_only_readers_run_stops_no_offload(tmp_path):
    copy_code(tmp_path)
    assert hash_of(tmp_path, reader_hash) == hash_of(shipped_zip(), reader_hash) == reader_hash()
    changed = tmp_path / "tiering_assets" / "cold" / "decode.py"
    changed.write_text(changed.read_text() + "\n")
    assert hash_of(tmp_path) == build_hash()
    assert hash_of(tmp_path, reader_hash) != reader_hash()


def test_the_zip_is_named_by_its_bytes_which_are_the_same_every_time():
    written = shipped_zip()
    assert written.read_bytes() == zipped() == zipped()
    assert written.name == f"tierkeeper-{sha256(zipped()).hexdigest()[:12]}.zip"
    assert [x.date_time[0] for x in zipfile.ZipFile(BytesIO(zipped())).infolist()][:1] == [1980]


@pytest.mark.parametrize("entry", [*ENTRIES, *READERS])
def test_the_zip_alone_can_be_imported_with_the_packages_of_an_image(entry, tmp_path):
    line = f"import sys; sys.path.insert(0, {str(shipped_zip())!r}); import {entry} as m; print(m.__file__)"
    command = [sys.executable, "-c", line]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert shipped_zip().name in said
