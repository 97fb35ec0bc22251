"""`make same BASE=COMMIT`: does this tree do what that commit did? Every difference, in
build/same.json.

Both trees are recorded by tests/support/same_record.py of this one, each in its own folder and by
the same libraries: remote effects of simulated seeds, help, exit codes and outputs of commands,
what Dagster is told, record schemas, settings, and the bytes of blocks and indexes. Nothing is
committed, and a commit compared with itself shows nothing. Exit code 1 if there is a difference.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.start import unpack

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "same.json"
SCHEMA = "tierkeeper/same/1"
RECORDER = Path(__file__).with_name("same_record.py")
SHOWN = 20

Record = Mapping[str, Mapping[str, list[str]]]


def differences(before: Record, now: Record) -> list[dict[str, Any]]:
    """One for each name whose lines differ: where first, and what stands there in either tree."""
    found = []
    for section in sorted({*before, *now}):
        was, has = before.get(section, {}), now.get(section, {})
        for name in sorted({*was, *has}):
            lines = zip_longest(was.get(name, ()), has.get(name, ()))
            unequal = [(at, old, new) for at, (old, new) in enumerate(lines) if old != new]
            if unequal:
                at, old, new = unequal[0]
                found.append(
                    {
                        "section": section,
                        "name": name,
                        "line": at,
                        "before": old,
                        "now": new,
                        "lines": len(unequal),
                    }
                )
    return found


def record(tree: Path, *, seeds: int) -> Record:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "record.json")
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
        subprocess.run(
            [sys.executable, RECORDER, output, "--seeds", str(seeds)],
            cwd=tree,
            env=environment,
            check=True,
        )
        found: Record = json.loads(output.read_text())
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--seeds", type=int, default=500)
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        unpack(asked.base, tree := Path(folder, "tree"))
        before = record(tree, seeds=asked.seeds)
    now = record(ROOT, seeds=asked.seeds)
    found = differences(before, now)
    document = {
        "schema": SCHEMA,
        "base": asked.base,
        "compared": {section: len(names) for section, names in now.items()},
        "differences": found,
        "seconds": round(time.monotonic() - began, 1),
    }
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(document, indent=2) + "\n")
    told = ", ".join(f"{count} {section}" for section, count in document["compared"].items())
    lines = [f"{told} compared with {asked.base}: {len(found)} differences; see {OUTPUT}"]
    for one in found[:SHOWN]:
        lines += [f"{one['section']} of {one['name']!r}, line {one['line']}:"]
        lines += [f"  before: {one['before']}", f"  now:    {one['now']}"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
