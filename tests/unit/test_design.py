"""docs/design.md is the contract: what the code says of it is there, and what it promises has a
test.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "design.md"
HEADING = re.compile(r"^#+ (\d(?:\.\d)?)\.? ", re.MULTILINE)
MENTION = re.compile(r"design sections? (\d(?:\.\d)?)(?: and (\d(?:\.\d)?))?")
BOOK_ROW = re.compile(r"^\| K(\d+) \| [^|]+ \| `(test_\w+)` \|$", re.MULTILINE)
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
    rows, of_book = (pattern.findall(PAGE.read_text()) for pattern in (ROW, BOOK_ROW))
    assert [int(number) for number, _test in rows] == list(range(1, 22))
    assert [int(number) for number, _test in of_book] == list(range(1, 11))
    tests = {
        node.name
        for path in sources("tests")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert {test for _number, test in (*rows, *of_book)} - tests == set()


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


def test_the_architecture_has_a_line_for_each_folder_and_for_no_other():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `((?:resources|tiering_assets)/[\w/]*)` \| ", page, re.MULTILINE)
    folders = {
        f"{path.parent.relative_to(ROOT)}/" for path in sources("resources", "tiering_assets")
    }
    assert len(listed) == len({*listed})
    assert {*listed} == folders


def test_every_module_that_a_page_names_is_there():
    """By its path below tiering_assets/ or with it; what a shell types is no path of ours."""
    rooms = {path.name for path in (ROOT / "tiering_assets").iterdir() if path.is_dir()}
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = {
        (page.name, path)
        for page in pages
        for path in re.findall(r"(?<![\w/.])((?:\w+/)+\w+\.py)\b", page.read_text(encoding="utf-8"))
        if path.split("/")[0] in {"tiering_assets", "resources", "tests", *rooms}
    }
    assert len(named) > 30
    missing = [
        (page, path)
        for page, path in sorted(named)
        if not (ROOT / path).exists() and not (ROOT / "tiering_assets" / path).exists()
    ]
    assert missing == []
