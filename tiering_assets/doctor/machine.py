"""Doctor's questions about this machine: Python, Java, its name, packages."""

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
from tiering_assets.resources.native.loader import this_loop

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
