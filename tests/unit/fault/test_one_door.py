"""Every release goes by a plan: caps, tripwire and the plan's record stand at one door."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3] / "tiering_assets"


@cache
def named_in_modules():
    """By module of ours, every name that it uses."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Name | ast.Attribute)
        }
        for path in ROOT.rglob("*.py")
    }


def callers(name):
    """Modules of ours that call a function, or hand it on."""
    return {module for module, names in named_in_modules().items() if name in names}


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
