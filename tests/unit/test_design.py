"""docs/design.md is the contract: what the code says of it is there, and what it promises has a test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "design.md"
HEADING = re.compile(r"^#+ (\d(?:\.\d)?)\.? ", re.MULTILINE)
MENTION = re.compile(r"design sections? (\d(?:\.\d)?)(?: and (\d(?:\.\d)?))?")
ROW = re.compile(r"^\| I(\d+) \| [^|]+ \| `(test_\w+)` \|$", re.MULTILINE)
INVARIANT = re.compile(r"\bI(\d{1,2})\b")


def sources(*folders):
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_every_section_that_is_mentioned_is_there():
    headings = set(HEADING.findall(PAGE.read_text()))
    assert {"6.1", "6.2", "6.3", "6.4", "6.5"} <= headings
    mentioned = {
        (path.relative_to(ROOT).as_posix(), number)
        for path in sources("tiering_assets", "resources", "tests", "benchmarks", "tools")
        for pair in MENTION.findall(path.read_text())
        for number in pair
        if number
    }
    assert len(mentioned) > 10
    assert {(path, number) for path, number in mentioned if number not in headings} == set()


def test_every_invariant_has_its_number_one_sentence_and_a_test():
    rows = ROW.findall(PAGE.read_text())
    assert [int(number) for number, _test in rows] == list(range(1, 22))
    tests = {
        node.name
        for path in sources("tests")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert {test for _number, test in rows} - tests == set()


def test_no_other_invariant_is_named_anywhere():
    known = {number for number, _test in ROW.findall(PAGE.read_text())}
    named = {
        (path.name, number)
        for path in (
            *sources("tests/support", "tests/unit/simulation"),
            *(ROOT / "docs").glob("*.md"),
        )
        for number in INVARIANT.findall(path.read_text())
    }
    assert {(name, number) for name, number in named if number not in known} == set()


def test_every_page_is_found_from_the_first_one_of_the_docs():
    index = (ROOT / "docs" / "README.md").read_text()
    linked = set(re.findall(r"\]\(([a-z-]+\.md)\)", index))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert linked == pages
