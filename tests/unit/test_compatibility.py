"""docs/compatibility.md is what the accepted results say, and names tests that exist."""

from __future__ import annotations

import ast

import pytest

from tests.support.compatibility import ACCEPTED, PAGE, ROOT, page, rows
from tests.support.compatibility_record import SCHEMA, read_results

ROWS = [row for _heading, table in rows() for row in table]


def test_the_page_is_current():
    assert PAGE.read_text() == page(read_results(ACCEPTED)), (
        "run `python -m tests.support.compatibility`"
    )


@pytest.mark.parametrize("row", [row for row in ROWS if row.tests], ids=lambda row: row.what)
def test_every_named_test_exists(row):
    for test in row.tests:
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        assert name.partition("[")[0] in {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef)
        }, test


def test_what_is_tried_or_refused_says_how_it_is_known():
    assert [row.what for row in ROWS if row.sign != "◐" and not (row.tests or row.says)] == []


def test_results_of_tests_that_are_gone_are_not_kept():
    named = {test for row in ROWS for test in row.tests}
    assert set(read_results(ACCEPTED)["tests"]) <= named


@pytest.mark.parametrize(
    ("outcome", "sign", "said"),
    [
        (None, "◐", "not tried yet"),
        ("failed", "◐", "its test did not pass"),
        ("passed", "✓", "BookKeeper 4.17.1, ZooKeeper 3.9.3"),
    ],
)
def test_a_release_counts_as_tried_only_once_its_test_passed(outcome, sign, said):
    test = "tests/matrix/test_versions.py::test_the_broker_reads_what_we_released[3.3.6]"
    servers = {
        "pulsar": "3.3.6",
        "offloader": "3.3.6",
        "bookkeeper": "4.17.1",
        "zookeeper": "3.9.3",
    }
    found = {} if outcome is None else {test: {"outcome": outcome, "servers": servers}}
    [line] = [
        line
        for line in page({"schema": SCHEMA, "tests": found}).splitlines()
        if line.startswith("| Pulsar 3.3.6: its broker reads")
    ]
    assert line.startswith(f"| Pulsar 3.3.6: its broker reads what we released | {sign} | {said}")
