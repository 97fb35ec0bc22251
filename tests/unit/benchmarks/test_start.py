"""The figures of starting a process: what was promised of them, and that the page tells the
same.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
MEASURED = json.loads((ROOT / "benchmarks" / "results" / "start.json").read_text())
PAGE = (ROOT / "docs" / "performance.md").read_text()


def test_a_command_and_a_run_start_within_what_was_promised():
    after = {kind: sides["after"]["cpu_s"] for kind, sides in MEASURED["kinds"].items()}
    assert after["tierkeeper ledger list"] <= 1
    assert after["imports of a run that judges"] <= 6


def test_the_page_has_the_measured_figures():
    section = PAGE.partition("\n## Start-up\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `?([^|`]+)`? \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", section, re.M)[2:]
    told = {kind.strip(): figures for kind, *figures in rows}
    assert len(told) > 8
    for kind, figures in told.items():
        before, after = (MEASURED["kinds"][kind][side] for side in ("before", "after"))
        names = ("cpu_s", "wall_s", "modules")
        assert [f.strip() for f in figures] == [f"{before[n]} → {after[n]}" for n in names], kind
