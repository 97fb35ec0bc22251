"""One ledger's way through the code is short, and docs/walk.md is that way."""

import subprocess
import sys

from tests.support.house import WALK, idea_of, walk, way
from tests.support.rooms import ROOT, modules_by_folder

PAGE = "from tests.support.house import page, walk; import sys; sys.stdout.write(page(walk()))"


def test_one_ledgers_way_is_short():
    found = way(walk())
    # Topics side by side and progress are three ideas of their own, the day book is two.
    assert len(found) <= 50
    assert len({*found}) == len(found)
    for name in ("copy.offload", "verify.verify", "change.publish", "release.guarded_delete"):
        assert f"tiering_assets.{name}" in found


def test_the_page_is_that_way():
    """In a process of its own: what another test has asked is remembered, and not entered again."""
    page = subprocess.run(
        [sys.executable, "-c", PAGE], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert WALK.read_text(encoding="utf-8") == page.stdout, (
        "run `python -m tests.support.house --walk`"
    )


def test_ideas_and_folders_are_read_from_the_source():
    assert idea_of("tiering_assets.release.guarded_delete").startswith("The one place where")
    assert modules_by_folder()["tiering_assets/release"] <= 15
