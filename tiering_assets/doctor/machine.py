"""Doctor's questions about this machine: Python, Java, its name, packages, its index cache."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from tiering_assets.ground.finding import Finding, fail, ok, warn
from tiering_assets.resources.devstack.prerequisites import (
    name_problem,
    require_java,
    require_python,
)
from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.resources.kept_files import BYTES_LEAST, kept_files
from tiering_assets.resources.native.loader import this_loop
from tiering_assets.resources.quantity import size_text
from tiering_assets.resources.settings import CacheSettings

_PACKAGES = ("tierkeeper", "boto3", "kazoo", "protobuf", "pyarrow", "pyspark", "dagster")


def check_machine() -> Iterator[Finding]:
    try:
        require_python()
        yield ok("python", f"Python {platform.python_version()}")
    except PrerequisiteError as error:
        yield fail("python", str(error), "")
    try:
        yield ok("java", f"{require_java()} is Java 17 or 21")
    except PrerequisiteError as error:  # only Spark and the local stack need it
        yield warn("java", str(error), "until then use --runner local")
    loop = this_loop()
    if loop.core is not None:
        yield ok("loop over entries", loop.said)
    else:  # the same bytes, at more CPU
        yield warn("loop over entries", loop.said, "docs/performance.md says what it costs")
    problem = name_problem()
    if problem:
        yield warn("machine name", problem, "until then Spark's JVM may not start")
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        yield fail("packages", f"not installed: {', '.join(missing)}", "make setup")
    else:
        yield ok("packages", ", ".join(found))


def check_cache(settings: CacheSettings) -> Iterator[Finding]:
    """Where it lies and how full it is. Looks at each of its files, and writes none."""
    check, price = "index cache", "until then a single message costs its block up to it each time"
    if settings.bytes_max < BYTES_LEAST:
        yield ok(check, f"none: cache.bytes_max is {size_text(settings.bytes_max)}")
        return
    files = kept_files(settings.root, settings.bytes_max)
    if files is None:
        yield warn(check, "nowhere: no home folder is known, set cache.root", price)
        return
    try:
        held = files.held()
    except OSError as error:
        yield warn(check, f"{files.root}: {error.strerror}", price)
        return
    said = f"{files.root}: {held.files} blocks, {size_text(held.bytes)} of {size_text(files.bytes_max)}"
    if files.can_keep():
        yield ok(check, said)
    else:
        yield warn(check, f"{said}; it cannot be written, or its disk is full", price)
