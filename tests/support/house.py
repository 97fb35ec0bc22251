"""What the house is like: modules by folder, arrows between features, and one ledger's way through
it.

    python -m tests.support.house [--walk]      writes build/house.json, and docs/walk.md

Owns: the way is traced and not drawn: one ledger is copied, published and released on simulated
servers, and each module of ours whose code ran is on it, in the order in which it was first
entered.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests.support.rooms import (
    FEATURES,
    GROUND,
    PACKAGE,
    RESOURCES,
    ROOT,
    feature_pairs,
    inside,
    modules_by_folder,
    tree_of,
)
from tests.support.sim_scene import TOPIC, Scene, is_released

OUTPUT = ROOT / "build" / "house.json"
WALK = ROOT / "docs" / "walk.md"
SCHEMA = "tierkeeper/house/1"

Walked = list[tuple[str, list[str]]]  # phase, and the modules that it enters first


def lines_by_folder() -> dict[str, int]:
    found: Counter[str] = Counter()
    for path in (ROOT / PACKAGE).rglob("*.py"):
        found[str(path.parent.relative_to(ROOT))] += len(path.read_text().splitlines())
    return dict(sorted(found.items()))


def walk() -> Walked:
    """One ledger from sealed to released: each phase with the modules that it enters first."""
    scene = Scene()
    scene.fill(TOPIC)  # the last closed ledger of a topic is not released
    seen: list[str] = []
    found: Walked = []

    def go(phase: str, act: Callable[[], Any]) -> Any:
        before = len(seen)
        with _traced(seen):
            done = act()
        found.append((phase, seen[before:]))
        return done

    go("copied, read back and certified", scene.certify)
    go("published", scene.publish)
    scene.past_the_lag()
    done = go("released", scene.release)
    assert is_released(done), done
    return found


@contextmanager
def _traced(seen: list[str]) -> Iterator[None]:
    """Adds to a list each module of ours that is entered meanwhile; to be imported is not yet to be
    used.
    """
    known = set(seen)

    def called(frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event != "call" or name in known or frame.f_code.co_name == "<module>":
            return
        if inside(name, PACKAGE) and not inside(name, RESOURCES):  # what it is done with
            known.add(name)
            seen.append(name)

    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(None)


def way(walked: Walked) -> list[str]:
    """The modules on it that decide or do: no format, record, task or suite, which are what it is
    done with.
    """
    features = tuple(f"{room}." for room in (*FEATURES, *GROUND))
    return [name for _phase, names in walked for name in names if name.startswith(features)]


def idea_of(name: str) -> str:
    """The first sentence of a module's docstring."""
    said = ast.get_docstring(tree_of(name)) or ""
    return " ".join(said.partition("\n\n")[0].split())


def page(walked: Walked) -> str:
    """docs/walk.md."""
    lines = [
        "# One ledger's way",
        "",
        "`python -m tests.support.house --walk` follows one ledger through the code, on simulated servers, and writes this page.",
        "It lists each module of ours whose code runs, where it is entered first.",
    ]
    for phase, names in walked:
        lines += ["", f"## {phase}", "", "| module | idea |", "|---|---|"]
        for name in names:
            room, _dot, module = name.removeprefix(f"{PACKAGE}.").rpartition(".")
            lines.append(f"| `{room.replace('.', '/')}/{module}.py` | {idea_of(name)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--walk", action="store_true", help="write docs/walk.md as well")
    asked = parser.parse_args()
    pairs, modules, walked = feature_pairs(), modules_by_folder(), walk()
    on_the_way = way(walked)
    found = {
        "schema": SCHEMA,
        "modules": modules,
        "lines": lines_by_folder(),
        "feature_pairs": [[ours, theirs, count] for (ours, theirs), count in pairs.items()],
        "modules_on_the_way": on_the_way,
    }
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(found, indent=2) + "\n")
    if asked.walk:
        WALK.write_text(page(walked), encoding="utf-8")
    sys.stdout.write(
        f"{sum(modules.values())} modules in {len(modules)} folders, at most "
        f"{max(modules.values())} in one; {len(pairs)} pairs of features; "
        f"{len(on_the_way)} modules on one ledger's way; see {OUTPUT}\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
