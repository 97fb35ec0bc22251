"""What the house is like: modules by folder, arrows between features, and one ledger's way through it.

    python -m tests.support.house       writes build/house.json; with --walk, prints the way as docs/walk.md

Owns: the way is traced and not drawn: one ledger is copied, published and released on simulated servers,
and each module of ours whose code ran is on it, in the order in which it was first entered.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.support.sim_scene import TOPIC, Scene, is_released

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "house.json"
SCHEMA = "tierkeeper/house/1"
PACKAGE = "tiering_assets"


def modules_by_folder() -> dict[str, int]:
    paths = (ROOT / PACKAGE).rglob("*.py")
    folders = (str(p.parent.relative_to(ROOT)) for p in paths if p.name != "__init__.py")
    return dict(sorted(Counter(folders).items()))


def lines_by_folder() -> dict[str, int]:
    found: Counter[str] = Counter()
    for path in (ROOT / PACKAGE).rglob("*.py"):
        found[str(path.parent.relative_to(ROOT))] += len(path.read_text().splitlines())
    return dict(sorted(found.items()))


def walk() -> list[tuple[str, list[str]]]:
    """One ledger from sealed to released: each phase with the modules that it enters first."""
    scene = Scene()
    scene.fill(TOPIC)  # the last closed ledger of a topic is not released
    seen: list[str] = []
    phases: list[tuple[str, Callable[[], Any]]] = [
        ("copied, read back and certified", scene.certify),
        ("published", scene.publish),
        ("released", lambda: is_released(scene.release())),
    ]
    found = []
    for name, act in phases:
        before = len(seen)
        if name == "released":
            scene.past_the_lag()
        with _traced(seen):
            done = act()
        assert done, name
        found.append((name, seen[before:]))
    return found


class _traced:
    """Adds to a list each module of ours that is entered while this lasts."""

    def __init__(self, seen: list[str]) -> None:
        self._seen, self._known = seen, set(seen)

    def __enter__(self) -> None:
        sys.setprofile(self._called)

    def __exit__(self, *_exception: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith(f"{PACKAGE}.") and name not in self._known:
            if frame.f_code.co_name == "<module>":
                return  # imported, which is not yet used
            self._known.add(name)
            self._seen.append(name)


def idea_of(name: str) -> str:
    """The first sentence of a module's docstring."""
    path = ROOT / Path(*name.split(".")).with_suffix(".py")
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.split("\n")[0]


def way() -> list[str]:
    return [name for _phase, names in walk() for name in names]


if __name__ == "__main__":
    w = walk()
    for phase, names in w:
        print(phase, len(names))
        for n in names:
            print("   ", n)
