"""`make mutants`: every mistake of mutants.py must be caught by some seed; build/mutants.json.

A seed counts only if it is clean without the mistake. Exit code 1 if a mutant survives.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.support.mutants import MUTANTS, mutated
from tests.support.sim_run import run_seed

SCHEMA = "tierkeeper/mutants/1"
SEEDS_MAX = 4000
CRASHED = "unexpected error"  # of the mutant itself, which is no invariant that noticed it


def hunt(name: str, *, seeds_max: int = SEEDS_MAX) -> dict[str, Any]:
    """Run seeds with a mistake in our code until one of them breaks an invariant."""
    for seed in range(seeds_max):
        with mutated(name):
            found = run_seed(seed).found
        found = tuple(one for one in found if one.invariant != CRASHED)
        if found and not run_seed(seed).found:
            return {
                "name": name,
                "caught": True,
                "seeds_needed": seed + 1,
                "invariant": found[0].invariant,
                "detail": found[0].detail,
            }
    return {
        "name": name,
        "caught": False,
        "seeds_needed": None,
        "invariant": None,
        "detail": f"not in {seeds_max} seeds",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="most seeds for one mutant")
    parser.add_argument("--only", help="mutants whose name contains this")
    parser.add_argument("--output", type=Path, default=Path("build/mutants.json"))
    asked = parser.parse_args()
    began = time.monotonic()
    names = [name for name in MUTANTS if not asked.only or asked.only in name]
    with get_context("spawn").Pool(2) as pool:
        results = []
        for one in pool.imap(partial(hunt, seeds_max=asked.seeds), names, chunksize=1):
            said = f"{one['invariant']} after {one['seeds_needed']} seeds: {one['detail']:.90}"
            sys.stdout.write(f"{one['name']}: {said if one['caught'] else 'SURVIVES'}\n")
            sys.stdout.flush()
            results.append(one)
    survivors = [one["name"] for one in results if not one["caught"]]
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "schema": SCHEMA,
        "mutants": results,
        "caught": len(results) - len(survivors),
        "seconds": round(time.monotonic() - began, 1),
    }
    asked.output.write_text(json.dumps(report, indent=2) + "\n")
    sys.stdout.write(f"{report['caught']} of {len(results)} caught in {report['seconds']} s\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
