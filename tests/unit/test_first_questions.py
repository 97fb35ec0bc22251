"""Who has read README alone finds the answer to a first question within three opened files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = re.compile(r"\]\(([\w./-]+?\.(?:md|json))\)|`([\w./-]+?\.py)`")
QUESTIONS = {
    "where is the lag judged?": (
        r"def decide_release.*lag_elapsed\(\s*lag=",
        "tiering_assets/release/gate.py",
    ),
    "what deletes?": (
        r"one transaction that deletes the ledger nodes only if",
        "tiering_assets/release/release.py",
    ),
    "how is a block laid out?": (r"Block header.*`block_length`", "docs/formats.md"),
    "what does a record hold?": (r"`tierkeeper/certificate/2`.*\| `data`", "docs/records.md"),
    "how does a setting get its value?": (
        r"beat the environment.*beats\s+the file",
        "docs/settings.md",
    ),
    "which test holds I12?": (r"\| I12 \| [^|]+ \| `test_\w+` \|", "docs/design.md"),
}


def named_in(page):
    """Files that a page links or names, seen from its folder or from the root."""
    for link, code in FILE.findall(page.read_text(encoding="utf-8")):
        for base in (page.parent, ROOT):
            if (path := (base / (link or code)).resolve()).is_file():
                yield path


def opened(goal, most=3):
    """How many files are opened after README to read this one, or None."""
    front, seen = [ROOT / "README.md"], set()
    for steps in range(1, most + 1):
        front = [path for page in front for path in named_in(page) if path not in seen]
        seen.update(front)
        if goal in seen:
            return steps
        front = [path for path in front if path.suffix == ".md"]
    return None


@pytest.mark.parametrize(("pattern", "file"), QUESTIONS.values(), ids=QUESTIONS)
def test_the_answer_is_found_within_three_opened_files(pattern, file):
    assert re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.DOTALL)
    assert opened(ROOT / file) is not None


def test_what_no_page_names_is_not_found():
    assert opened(ROOT / "tests" / "conftest.py") is None
