"""What Spark says when it gives a job up, as an error of ours with the next step.

Owns: what fails before the first line of our code runs in a worker (spark/bootstrap.py) is known by
Spark's words. Anything else is a job that was lost and may be tried again.
"""

from __future__ import annotations

import re

from tiering_assets.resources.errors import PrerequisiteError, TierkeeperError

_MESSAGE_MAX = 500  # characters of Spark's own words; stack traces are longer
_OTHER_PYTHON = re.compile(
    r"Python in worker has different version:? \(?'?([\d.]+|\d+, ?\d+)'?\)? than that in driver:?"
    r" \(?'?([\d.]+|\d+, ?\d+)'?\)?"
)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_NO_PACKAGE = re.compile(
    r"No module named '?([\w.]+)|PACKAGE_NOT_INSTALLED\] (\w+)|(PyArrow) >= \S+ must be installed"
)


def explain(said: str) -> TierkeeperError:
    """Return the error that Spark's words mean. A PrerequisiteError is not worth a second try."""
    if found := _OTHER_PYTHON.search(said):
        return PrerequisiteError(
            f"Spark's workers have Python {_version(found[1])}, the driver {_version(found[2])}. "
            "Run both with the same minor version: spark.python names the workers' Python of "
            "spark://, PYSPARK_PYTHON of its server that of sc://"
        )
    if found := _NO_PROGRAM.search(said):
        return PrerequisiteError(
            f"Spark's workers have no program {found[1]}: install Python there, or name it with"
            " spark.python"
        )
    if found := _NO_PACKAGE.search(said):
        package = found[1] or found[2] or found[3]
        return PrerequisiteError(
            f"Spark's workers lack the Python package {package}: install it in their image"
            " (docs/spark.md)"
        )
    short = re.sub(r"\s+", " ", said)[:_MESSAGE_MAX]
    return TierkeeperError(f"Spark gave the job up: {short}")


def _version(text: str) -> str:
    return ".".join(re.findall(r"\d+", text))
