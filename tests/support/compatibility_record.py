"""pytest plugin: `-p tests.support.compatibility_record` writes what came out to a file.

build/compatibility.json has each test of the untame stack and the matrix by its node id, with its
outcome and what its servers said they are; other tests that were run with it, too. A run adds to
what is there and replaces only its own tests. No date: the same outcome gives the same bytes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).parents[2] / "build" / "compatibility.json"
SCHEMA = "tierkeeper.compatibility/1"

_found: dict[str, dict[str, Any]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the worst of set-up, call and tear-down."""
    if report.when != "call" and report.passed:
        return
    before = _found.get(report.nodeid)
    if before is not None and before["outcome"] != "passed":
        return
    _found[report.nodeid] = {"outcome": report.outcome, **dict(report.user_properties)}


def pytest_sessionfinish() -> None:
    """Write it, tests sorted."""
    document = read_results(RESULTS)
    document["tests"] = dict(sorted({**document["tests"], **_found}.items()))
    RESULTS.parent.mkdir(exist_ok=True)
    write_results(RESULTS, document)


def read_results(path: Path) -> dict[str, Any]:
    """The document, empty if there is none."""
    if not path.exists():
        return {"schema": SCHEMA, "tests": {}}
    found: dict[str, Any] = json.loads(path.read_text())
    if found.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema {found.get('schema')!r}, not {SCHEMA}")
    return found


def write_results(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
