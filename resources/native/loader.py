"""Which loop over entries this process has: the library of core.c, or else the Python reference.

Owns: whatever keeps the library from loading is a sentence, never an error. A file is used only if
it was built from the very source that lies beside it, and has the SHA-256 that the list of its
build names. One that lies in an archive is loaded from memory: no folder has to be writable,
and nobody else's file can take its place.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from tiering_assets.resources.native.build import BUILT, LIST, SOURCE
from tiering_assets.resources.native.core import Core

SWITCH: Final = "TIERKEEPER_NATIVE"
"""Environment variable: `off` keeps the library out of a process and of all that it starts."""

_MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_C_LIBRARIES: Final = {"glibc": "gnu"}


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop that runs: `core` is None for Python's, and `said` says which, and why."""

    core: Core | None
    said: str


@cache
def this_loop() -> Loop:
    """The loop of this process; looked for once."""
    if os.environ.get(SWITCH, "").lower() in ("off", "0", "false", "no"):
        return Loop(None, f"Python's: {SWITCH} is off")
    return load(files(__package__), target())


def core() -> Core | None:
    """The library, where this process has it."""
    return this_loop().core


def target(machine: str = "", c_library: str = "") -> str:
    """The kind of machine that libraries are built for, such as `x86_64-gnu`."""
    machine = machine or platform.machine().lower()
    c_library = c_library or platform.libc_ver(sys.executable)[0] or "musl"
    return f"{_MACHINES.get(machine, machine)}-{_C_LIBRARIES.get(c_library, c_library)}"


def load(folder: Traversable, wanted: str) -> Loop:
    """Load the library for a kind of machine from a folder, or from one within an archive."""
    name = f"core-{wanted}.so"
    try:
        listed = json.loads((folder / BUILT / LIST).read_text())
        source = sha256((folder / SOURCE).read_bytes()).hexdigest()
        if listed["source"] != source:
            return Loop(None, f"Python's: {BUILT}/{LIST} is of another {SOURCE}; build it again")
        if name not in listed["files"]:
            return Loop(None, f"Python's: there is no library for {wanted}")
        file = folder / BUILT / name
        contents = file.read_bytes()
        if sha256(contents).hexdigest() != listed["files"][name]:
            return Loop(None, f"Python's: {BUILT}/{name} is not what was built; build it again")
        library = _opened(str(file)) if isinstance(file, Path) else _unpacked(name, contents)
        return Loop(Core(library), f"native: {name}, {listed['files'][name][:12]}")
    except FileNotFoundError:
        return Loop(None, "Python's: no library was built with this code")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Loop(None, f"Python's: {name} does not load: {error}")


def _opened(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def _unpacked(name: str, contents: bytes) -> ctypes.CDLL:
    """By way of memory, or else of a folder that nobody else can write and that is gone at once."""
    try:
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        with tempfile.TemporaryDirectory(prefix="tierkeeper-native-") as folder:
            path = Path(folder, name)
            path.write_bytes(contents)
            return _opened(str(path))
    with os.fdopen(descriptor, "wb") as memory:
        memory.write(contents)
        memory.flush()
        return _opened(f"/proc/self/fd/{descriptor}")
