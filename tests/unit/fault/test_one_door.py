"""Every release goes by a plan: caps, tripwire and the plan's record stand at one door."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3] / "tiering_assets"


def callers(name):
    """Modules of ours that call a function, or hand it on."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name | ast.Attribute) and name in (
                getattr(node, "id", None),
                getattr(node, "attr", None),
            ):
                found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


@pytest.mark.parametrize(
    ("inner", "only"),
    [
        (
            "execute_plan",
            {"cli.batch.ledger_release_cmd", "defs.batch.release_assets", "demo.jobs"},
        ),
        ("release_batch", {"batch.release_plan"}),
        ("ToRelease", {"batch.release_batch", "release.release"}),
        ("prepare_release", {"release.release"}),
        ("delete_ledgers", {"release.work"}),
    ],
)
def test_nothing_but_the_plan_releases(inner, only):
    assert callers(inner) <= only
    assert callers(inner)
