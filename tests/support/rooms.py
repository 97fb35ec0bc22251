"""The modules of the product, who imports whom, and which of its rooms are features."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = "tiering_assets"
RESOURCES = f"{PACKAGE}.resources"
# Where our source lies. resources/ is a part of the package, by a link there which nobody follows
# here.
FOLDERS = ("resources", PACKAGE)

# What one ledger's way is made of: a rule and its doer together, by what they do to a ledger.
FEATURES = tuple(
    f"tiering_assets.{room}"
    for room in (
        "policy",
        "copy",
        "verify",
        "change",
        "release",
        "clean",
        "retention",
        "scrub",
        "audit",
        "explain",
        "automation",
        "catalogue",
        "lineage",
        "schemas",
        "fleet",
        "batch",
        "stream",
        "doctor",
    )
)
GROUND = ("tiering_assets.ground", "tiering_assets.look")  # what all features stand on


class Import(NamedTuple):
    module: str
    importer: str
    lazy: bool


def name_of(path: Path, root: Path = ROOT) -> str:
    """By which the module is imported."""
    folder, *parts = path.relative_to(root).with_suffix("").parts
    package = PACKAGE if folder == PACKAGE else f"{PACKAGE}.{folder}"
    return ".".join((package, *parts)).removesuffix(".__init__")


MODULES = {name_of(path): path for room in FOLDERS for path in sorted((ROOT / room).rglob("*.py"))}
WRITTEN = {name: path for name, path in MODULES.items() if "_pb2" not in name}


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def imports_of(name: str) -> Iterator[Import]:
    top: set[ast.AST] = {*tree_of(name).body}
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = [
                full if (full := f"{node.module}.{alias.name}") in MODULES else node.module
                for alias in node.names
            ]
        else:
            assert not isinstance(node, ast.ImportFrom), f"{name}: relative import"
            continue
        yield from (Import(module, name, node not in top) for module in found)


@cache
def imports() -> list[Import]:
    """All of them. It reads the whole source, which takes seconds."""
    return [found for name in WRITTEN for found in imports_of(name)]


def inside(name: str, *rooms: str) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def feature_of(name: str) -> str | None:
    return next((room for room in FEATURES if inside(name, room)), None)


def feature_pairs() -> dict[tuple[str, str], int]:
    """How many imports lead from one feature to another, imports inside functions included."""
    found: Counter[tuple[str, str]] = Counter()
    for one in imports():
        ours, theirs = feature_of(one.importer), feature_of(one.module)
        if ours and theirs and ours != theirs:
            found[ours, theirs] += 1
    return dict(sorted(found.items()))


def modules_by_folder() -> dict[str, int]:
    paths = (ROOT / PACKAGE).rglob("*.py")
    folders = (str(p.parent.relative_to(ROOT)) for p in paths if p.name != "__init__.py")
    return dict(sorted(Counter(folders).items()))
