"""The written list of failures and the tests of failures are the same list."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.ground.reasons import Reason
from tiering_assets.resources import errors
from tiering_assets.resources.errors import TierkeeperError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "failure-scenarios.md"
ROW = re.compile(
    r"^\| (?P<fault>[^|]+) \| (?P<happens>[^|]+) \| (?P<ends>[^|]+) \| (?P<test>\w+) \|$"
)
NOT_YET = (
    "not the certified version",
    "under a release hold",
    "since it was begun",
    "it moved since it was planned",
    "deletion lag has not elapsed",
    "capped",
    "held by suite",
)  # reasons of the release gate are sentences


def rows():
    lines = [x for x in PAGE.read_text().splitlines() if x.startswith("| ")]
    found = [ROW.match(x) for x in lines if not x.startswith("| fault |")]
    assert None not in found, "a line of the page is not four cells ending with a test's name"
    return [match for match in found if match is not None]


def names_in_files():
    return [
        node.name
        for room in ("fault", "unit/fault")
        for path in sorted((ROOT / "tests" / room).glob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def test_every_line_names_a_test_and_every_test_has_one_line():
    assert Counter(row["test"] for row in rows()) == Counter(names_in_files())


def test_every_exit_code_named_is_one_of_ours():
    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, TierkeeperError)
    }
    codes |= {FINDINGS}
    named = {int(code) for row in rows() for code in re.findall(r"exit (\d+)", row["ends"])}
    assert named
    assert named <= codes


def test_every_wait_named_is_one_of_ours():
    reasons = {reason.value for reason in Reason} | set(NOT_YET)
    named = {text for row in rows() for text in re.findall(r"waits: ([^;]+)", row["ends"])}
    assert named
    assert {text.strip() for text in named} <= reasons
