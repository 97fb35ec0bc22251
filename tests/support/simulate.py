"""`make simulate`: run many seeds in two processes and write build/simulation.json.

    python -m tests.support.simulate --seeds 10000      seeds 0 to 9999, all violations reported
    python -m tests.support.simulate --seed 123         one seed, its schedule printed

Exit code 1 if a seed violated an invariant, or if many seeds never injected one of the faults.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.support.sim_faults import NAMES
from tests.support.sim_run import Outcome, run_seed

SCHEMA = "tierkeeper/simulation/2"
CHUNK = 25
COVERED_FROM = 2000  # seeds from which on every fault must have struck


def run_many(
    seeds: Sequence[int], *, processes: int = 2, aside: Sequence[str] = ()
) -> dict[str, Any]:
    """Run the seeds and put together what build/simulation.json holds."""
    began = time.monotonic()
    coverage: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
    violations: list[dict[str, Any]] = []
    calls = released = 0
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    with get_context("spawn").Pool(processes) as pool:
        for outcomes in pool.imap(partial(run_chunk, aside=aside), chunks):
            for outcome in outcomes:
                coverage.update(outcome.coverage)
                calls += outcome.calls
                released += outcome.released
                violations += violations_of(outcome)
    return {
        "schema": SCHEMA,
        "seeds": len(seeds),
        "violations": violations,
        "fault_coverage": dict(sorted(coverage.items())),
        "remote_calls": calls,
        "mean_steps": round(calls / max(1, len(seeds)), 1),
        "bookie_copies_gone": released,
        "seconds": round(time.monotonic() - began, 1),
    }


def run_chunk(seeds: Sequence[int], *, aside: Sequence[str] = ()) -> list[Outcome]:
    gc.disable()
    outcomes = [run_seed(seed, aside=aside) for seed in seeds]
    gc.enable()
    gc.collect()
    return outcomes


def violations_of(outcome: Outcome) -> list[dict[str, Any]]:
    """`step` is the number of the remote call, `at` the simulated second."""
    return [{"seed": outcome.seed, **asdict(found)} for found in outcome.found]


def _replay(seed: int, aside: Sequence[str]) -> int:
    outcome = run_seed(seed, traced=True, aside=aside)
    lines = [*outcome.trace, f"seed {seed}: {outcome.calls} calls, {len(outcome.found)} violations"]
    lines += [f"{found.invariant} at call {found.step}: {found.detail}" for found in outcome.found]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if outcome.found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="replay this one and print its schedule")
    parser.add_argument(
        "--aside", action="append", default=[], help="an invariant that is not asked about"
    )
    parser.add_argument("--output", type=Path, default=Path("build/simulation.json"))
    asked = parser.parse_args()
    if asked.seed is not None:
        return _replay(asked.seed, asked.aside)
    result = run_many(range(asked.first, asked.first + asked.seeds), aside=asked.aside)
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(json.dumps(result, indent=2) + "\n")
    never = [name for name, count in result["fault_coverage"].items() if not count]
    said = (
        f"{result['seeds']} seeds, {result['remote_calls']} remote calls, "
        f"{sum(result['fault_coverage'].values())} faults, {len(result['violations'])} violations, "
        f"{result['seconds']} s; see {asked.output}\n"
    )
    for found in result["violations"][:10]:
        said += f"seed {found['seed']}: {found['invariant']}: {found['detail']}\n"
    if never:
        said += f"never injected: {', '.join(never)}\n"
    sys.stdout.write(said)
    return 1 if result["violations"] or (never and asked.seeds >= COVERED_FROM) else 0


if __name__ == "__main__":
    raise SystemExit(main())
