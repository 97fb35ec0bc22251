"""The first thing that runs in a worker: is our code there, is it this build, is it this Python?

Owns: whatever is wrong with a worker's code is a row that names it, never an exception. This module
alone travels by value (`by_value`), because a function of a module that a worker lacks fails before
its first line. So it imports nothing of ours at its top, and its functions use the standard
library.

A frame that goes through `checked` needs a column `refusal`: one row of the output as JSON, written
by the driver, into which a refused worker puts `error` and `error_class`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Batches = Iterator["pa.RecordBatch"]
REFUSAL = "refusal"
ERROR_CLASS = "PrerequisiteError"  # resources/errors.py


def checked(
    entry: str, arguments: Mapping[str, Any], *, packages: str = ""
) -> Callable[[Batches], Batches]:
    """Return what to give to mapInArrow so that `entry` runs where this very code is installed.

    Args:
        entry: `module:function`, called with the batches and `arguments` by name.
        arguments: plain values; they are pickled with the function.
        packages: name of the archive that was sent with Python packages, empty for none.
    """
    from tiering_assets.spark.build import build_hash

    by_value()
    expected = {"build": build_hash(), "python": python_minor(), "packages": packages}
    return partial(_run, entry=entry, arguments=dict(arguments), expected=expected)


def by_value() -> None:
    """Have this module pickled with its functions instead of by its name."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def python_minor() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _run(
    batches: Batches, entry: str, arguments: Mapping[str, Any], expected: Mapping[str, str]
) -> Batches:
    if expected["packages"]:
        add_packages(expected["packages"])
    found = loaded(entry, expected)
    if not isinstance(found, str):
        yield from found(batches, **arguments)
        return
    for batch in batches:
        for row in batch.column(REFUSAL).to_pylist():
            yield _refused(str(row), found)


def loaded(entry: str, expected: Mapping[str, str]) -> Callable[..., Any] | str:
    """What is named so, or a sentence that says why this worker must not run it.

    `expected` has the driver's build and Python, and as `of` the function of spark/build.py that
    tells which build it is; without one it is that of tasks.
    """
    import importlib
    import socket

    worker = f"the Spark worker on {socket.gethostname()}"
    if python_minor() != expected["python"]:
        return (
            f"{worker} has Python {python_minor()} ({sys.executable}), the driver"
            f" {expected['python']}: run both with the same minor version (spark.python names the"
            " workers' Python of spark://)"
        )
    try:
        told_by = importlib.import_module("tiering_assets.spark.build")
        build = getattr(told_by, expected.get("of", "build_hash"))()
    except Exception as error:  # noqa: BLE001 - anything may be installed under our name
        return (
            f"{worker} has no code of tierkeeper, build {expected['build']} is expected"
            f" ({type(error).__name__}: {error}): set spark.code = ship, or install this version"
            f" for {sys.executable} there"
        )
    if build != expected["build"]:
        return (
            f"{worker} has build {build} of tierkeeper, the driver {expected['build']}: set"
            f" spark.code = ship, or install the driver's version for {sys.executable} there"
        )
    module, _, name = entry.partition(":")
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except ImportError as error:
        return (
            f"{worker} cannot load {module} ({error}): install tierkeeper's dependencies for"
            f" {sys.executable} there, or send them with spark.archive"
        )
    return function


def add_packages(name: str) -> None:
    """Put an archive of packages behind what the image has: its own versions are the tried ones."""
    import os

    from pyspark import SparkFiles  # type: ignore[attr-defined, unused-ignore]

    for root in (SparkFiles.getRootDirectory(), os.getcwd()):
        path = os.path.join(root, name)
        if os.path.isdir(path) and path not in sys.path:
            sys.path.append(path)


def _refused(row: str, reason: str) -> pa.RecordBatch:
    import json

    import pyarrow as pa

    columns = json.loads(row) | {"error": reason, "error_class": ERROR_CLASS}
    return pa.RecordBatch.from_pylist([columns])
