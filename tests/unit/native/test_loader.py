"""A library is used only if it was built from this source for this machine; else Python is."""

from __future__ import annotations

import _struct
import json
import os
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

from tiering_assets.resources.native import loader
from tiering_assets.resources.native.build import BUILT, HERE, LIST, SOURCE, TARGETS, build
from tiering_assets.resources.native.core import ABI, Core
from tiering_assets.spark.build import shipped_zip

ROOT = Path(__file__).parents[3]
THIS = loader.target()
NAME = f"core-{THIS}.so"
SAID = "from tiering_assets.resources.native.loader import this_loop; print(this_loop().said)"


@pytest.fixture
def folder(tmp_path):
    """What a checkout has after its set-up."""
    shutil.copytree(HERE / BUILT, tmp_path / BUILT)
    shutil.copy(HERE / SOURCE, tmp_path / SOURCE)
    return tmp_path


def listed(folder, **values):
    path = folder / BUILT / LIST
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_checkout_that_was_set_up_has_the_library(folder):
    assert loader.this_loop().core is not None, loader.this_loop().said
    found = loader.load(folder, THIS)
    assert found.core is not None
    assert found.said.startswith(f"native: {NAME}")


def test_the_same_source_gives_the_same_bytes(folder, tmp_path):
    (tmp_path / "again").mkdir()
    shutil.copy(HERE / SOURCE, tmp_path / "again" / SOURCE)
    for path in build(tmp_path / "again"):
        assert path.read_bytes() == (folder / BUILT / path.name).read_bytes(), path.name


def without_any(folder):
    shutil.rmtree(folder / BUILT)


def of_another_source(folder):
    (folder / SOURCE).write_text((folder / SOURCE).read_text() + "\n")


def with_a_byte_changed(folder):
    data = bytearray((folder / BUILT / NAME).read_bytes())
    data[1000] ^= 1
    (folder / BUILT / NAME).write_bytes(data)


def cut_short(folder):
    """As an interrupted copy leaves it."""
    data = (folder / BUILT / NAME).read_bytes()
    (folder / BUILT / NAME).write_bytes(data[:700])


def of_another_architecture(folder):
    """Listed under this machine's name."""
    [other] = [p for p in (folder / BUILT).glob("*.so") if p.name != NAME]
    shutil.copy(other, folder / BUILT / NAME)
    listed(folder, files={NAME: sha256(other.read_bytes()).hexdigest()})


def another_library(folder):
    """One that has none of the functions."""
    shutil.copy(_struct.__file__, folder / BUILT / NAME)
    data = (folder / BUILT / NAME).read_bytes()
    listed(folder, files={NAME: sha256(data).hexdigest()})


def with_a_list_that_is_none(folder):
    (folder / BUILT / LIST).write_text("[]")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (without_any, "no library was built with this code"),
        (of_another_source, f"{BUILT}/{LIST} is of another {SOURCE}; build it again"),
        (with_a_byte_changed, f"{BUILT}/{NAME} is not what was built; build it again"),
        (cut_short, f"{BUILT}/{NAME} is not what was built; build it again"),
        (of_another_architecture, f"{NAME} does not load: "),
        (another_library, f"{NAME} does not load: "),
        (with_a_list_that_is_none, f"{NAME} does not load: "),
    ],
)
def test_whatever_is_wrong_with_it_is_a_sentence(folder, damage, said):
    damage(folder)
    found = loader.load(folder, THIS)
    assert found.core is None
    assert found.said.startswith(f"Python's: {said}")


@pytest.mark.parametrize("machine", ["x86_64-musl", "s390x-gnu", "aarch64-musl"])
def test_another_kind_of_machine_has_none(folder, machine):
    assert loader.load(folder, machine).said == f"Python's: there is no library for {machine}"


def test_kinds_of_machines_have_one_name_each():
    assert loader.target("amd64", "glibc") == loader.target("x86_64", "glibc") == "x86_64-gnu"
    assert loader.target("arm64", "glibc") == "aarch64-gnu"
    assert loader.target("x86_64", "musl") == "x86_64-musl"


@pytest.mark.parametrize(
    ("version", "said"),
    [(0, "no instruction for CRC32C"), (1, f"version 1 of its functions, expected {ABI}")],
    ids=["no instruction", "another version"],
)
def test_another_version_or_processor_is_refused(version, said):
    class Library:
        def __getattr__(self, name):
            function = lambda *_arguments: version  # noqa: E731
            setattr(self, name, function)
            return function

    with pytest.raises(OSError, match=said):
        Core(Library())  # type: ignore[arg-type]


def run(code, **environment):
    """In a process of its own, from the archive that workers get, with packages but without us."""
    line = f"import sys; sys.path.insert(0, {str(shipped_zip())!r}); {code}"
    ended = subprocess.run(
        [sys.executable, "-c", line],
        capture_output=True,
        text=True,
        cwd="/",
        env=os.environ | environment,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_an_archive_of_code_carries_the_libraries_and_loads_its_own():
    with zipfile.ZipFile(shipped_zip()) as archive:
        names = [name for name in archive.namelist() if name.endswith(".so")]
    assert len(names) == len(TARGETS)
    assert run(SAID).startswith(f"native: {NAME}")


def test_an_archives_library_needs_no_folder_to_write_in(tmp_path):
    readonly = tmp_path / "home"
    readonly.mkdir()
    readonly.chmod(0o500)
    everywhere = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(readonly))
    assert run(SAID, **everywhere).startswith(f"native: {NAME}")
    assert list(readonly.iterdir()) == []


def test_where_memory_cannot_be_a_file_a_folder_is_made_and_goes(tmp_path):
    code = f"import os; del os.memfd_create; {SAID}"
    assert run(code, TMPDIR=str(tmp_path)).startswith(f"native: {NAME}")
    assert list(tmp_path.iterdir()) == []


def test_where_neither_can_be_python_does_it(tmp_path):
    code = (
        "import os, tempfile; del os.memfd_create; "
        f"tempfile.TemporaryDirectory = lambda **_: open({str(tmp_path)!r}); {SAID}"
    )
    assert run(code).startswith(f"Python's: {NAME} does not load: ")


@pytest.mark.parametrize("word", ["off", "OFF", "0", "false", "no"])
def test_it_can_be_switched_off(word):
    assert run(SAID, TIERKEEPER_NATIVE=word) == "Python's: TIERKEEPER_NATIVE is off"


def test_it_is_looked_for_once():
    assert loader.this_loop() is loader.this_loop()
    assert loader.core() is loader.this_loop().core
    assert isinstance(files(loader.__package__), Path)
