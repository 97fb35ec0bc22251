"""What a fleet costs that is there already: surveys, sensor ticks, one ledger's page, the metrics.

    python -m benchmarks.fleet --ledgers 10000 [--before DIR] [--accept]

Starts servers, fills them (fleet_records.py), and measures each in a process of its own
(fleet_cell.py); with --before the code of another checkout over the same servers, beside. --accept
writes benchmarks/results/fleet.json, a size beside those that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.fleet_records import FIRST_ID, fill_fleet
from tiering_assets.ground.stack import open_stack
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack

ROOT = Path(__file__).parents[1]
CELL = Path(__file__).with_name("fleet_cell.py")
RESULT = Path(__file__).with_name("results") / "fleet.json"
SENSORS = ("offload_threshold", "release_due", "ledger_rollover", "stuck")
ASKING = ("offload_threshold", "release_due")  # sensors that the catalogue nominates for
CELLS = {
    **{cell: cell for cell in ("survey", "show", "why", "figures")},
    **{f"sensor:{name}": f"sensor:{name}" for name in SENSORS},
    **{f"again:{name}": f"again:{name}" for name in ASKING},
    "scrub-listed": "scrub-listed",
    "prove": "prove",
    "scrub-nominated": "scrub-nominated",
    "sensor:catalogue": "sensor:catalogue",
    "again:catalogue": "again:catalogue",
    **{f"nominated:sensor:{name}": f"sensor:{name}" for name in ASKING},
    **{f"nominated:again:{name}": f"again:{name}" for name in ASKING},
}
"""What is measured, in this order, by what the cell is told. After `prove` sensors are nominated
for.
"""
_GIVE_UP_S = 1800


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledgers", type=int, default=10_000)
    parser.add_argument("--before", type=Path, help="a checkout to measure beside this one")
    parser.add_argument("--accept", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        policy = Path(directory) / "tiering.toml"
        policy.write_text("[default]\nmanagedLedgerOffloadThresholdInBytes = 0\n")
        with DevStack.start(Path(directory) / "stack", StackOptions()) as running:
            environment = running.environment() | {
                "TIERKEEPER_AUTO_ENABLED": "true",
                "TIERKEEPER_POLICY_FILE": str(policy),
                "FLEET_LEDGER": str(FIRST_ID + 7),  # due
            }
            with open_stack(running.settings()) as stack:
                fill_fleet(stack, asked.ledgers, narrate=_tell)
            sides = {"after": ROOT} | ({"before": asked.before} if asked.before else {})
            found: dict[str, Any] = {
                name: {side: _run(cell, code, environment) for side, code in sides.items()}
                for name, cell in CELLS.items()
            }
    document = {"schema": "tierkeeper/fleet/1", "sizes": {str(asked.ledgers): found}}
    if asked.accept:
        if RESULT.exists():
            document["sizes"] = json.loads(RESULT.read_text())["sizes"] | document["sizes"]
        RESULT.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return 0


def _run(cell: str, code: Path, environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(CELL), cell],
        env=os.environ | environment | {"PYTHONPATH": str(code)},
        cwd=code,
        capture_output=True,
        text=True,
        timeout=_GIVE_UP_S,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        _tell(f"{cell} by {code}: {last}")
        return {"failed": last}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    _tell(f"{code.name} {json.dumps(found)}")
    return found


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
