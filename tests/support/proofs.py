"""Slow proofs: what each came to when it was last run whole. `make proofs` says which ran on older
code.

A target's run writes build/NAME.json; with ACCEPT=1 its figures go to docs/results/NAME.json, with
the commit and a digest of the files that it exercised. Nothing is accepted that shows a violation
or that is less than the whole.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.support.cold_faults import FAULTS, MODES
from tests.support.crash_processes import KINDS
from tests.support.killers import Killers
from tests.support.rooms import FEATURES, GROUND
from tiering_assets.ground.effects import POINTS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
SCHEMA = "tierkeeper/proof/1"
_STEPS = (
    "resources/bookkeeper/*.py",
    "resources/metastore/*.py",
    "resources/object_store/*.py",
    "resources/pulsar/*.py",
    "tiering_assets/offload_format/*.py",
    "tiering_assets/records/*.py",
    "tiering_assets/tasks/*.py",
    *(f"{room.replace('.', '/')}/**/*.py" for room in (*FEATURES, *GROUND)),
)
_ALL = ("resources/**/*.py", "tiering_assets/**/*.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a proof came to. `problem` is why it proves nothing, None when it does."""

    seconds: float
    counts: Mapping[str, object]
    violations: int
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """`inputs` are patterns of the files whose change makes its result one of older code."""

    target: str
    read: Callable[[Mapping[str, Any]], Figures]
    inputs: tuple[str, ...]

    def digest(self, root: Path = ROOT) -> str:
        whole = sha256()
        for path in sorted(path for pattern in self.inputs for path in root.glob(pattern)):
            whole.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
        return whole.hexdigest()


def _simulation(found: Mapping[str, Any]) -> Figures:
    coverage = found["fault_coverage"]
    problem = None
    if found["seeds"] < SEEDS:
        problem = f"{found['seeds']} seeds, the whole is {SEEDS}"
    elif not all(coverage.values()):
        problem = f"never struck: {', '.join(k for k, count in coverage.items() if not count)}"
    return Figures(
        seconds=found["seconds"],
        counts={
            name: found[name] for name in ("seeds", "mean_steps", "remote_calls", "fault_coverage")
        },
        violations=len(found["violations"]),
        problem=problem,
    )


def _crash_matrix(found: Mapping[str, Any]) -> Figures:
    killed = {row["name"] for row in (*found["points"], *found["processes"]) if row["kills"]}
    missed = sorted({*POINTS, *KINDS} - killed)
    return Figures(
        seconds=found["seconds"],
        counts={
            "points": len(found["points"]),
            "processes": len(found["processes"]),
            **{name: found[name] for name in ("kills", "parts_resent")},
        },
        violations=found["anomalies"],
        problem=f"nobody was killed at {', '.join(missed)}" if missed else None,
    )


def _soak(found: Mapping[str, Any]) -> Figures:
    short = found["minutes"] < SOAK_MINUTES
    told = (
        "messages_produced",
        "messages_read",
        "ledgers_published",
        "ledgers_released",
        "disturbances",
        "max_ack_gap_s",
        "posting_lag_p50_s",
        "posting_lag_p95_s",
        "due_to_begun_p50_s",
        "due_to_begun_p95_s",
    )
    return Figures(
        seconds=found["minutes"] * 60,
        counts={"faults": sorted(found["faults"]), **{name: found[name] for name in told}},
        violations=len(found["violations"]),
        problem=f"{found['minutes']:g} minutes, the whole is {SOAK_MINUTES}" if short else None,
    )


def _mutants(found: Mapping[str, Any]) -> Figures:
    names, known = {one["name"] for one in found["mutants"]}, len(Killers.read().killed)
    short = found["tried"] < known
    return Figures(
        seconds=found["seconds"],
        counts={
            "mutants": len(names),
            "caught": found["caught"],
            "no_guard": found["no_guard"],
            "uncovered": found["uncovered"],
        },
        violations=len(found["survived"]) + found["uncovered"],
        problem=f"{found['tried']} were tried of {known}" if short else None,
    )


def _cold(found: Mapping[str, Any]) -> Figures:
    asked = {f"{fault.name}, {mode}" for fault in FAULTS for mode in MODES}
    missed = sorted({*found["missed"], *asked} - {_pair(row) for row in found["pairs"]})
    return Figures(
        seconds=found["seconds"],
        counts={name: found[name] for name in ("faults", "proven", "the_same", "tests")},
        violations=found["anomalies"],
        problem=f"not run: {'; '.join(missed[:5])}" if missed else None,
    )


def _pair(row: Mapping[str, Any]) -> str:
    """Of a fault and a mode that was tried; none where not all of its tests ran."""
    return "" if row["outcome"] == "missed" else f"{row['fault']}, {row['mode']}"


SEEDS = 10_000
SOAK_MINUTES = 10
PROOFS = {
    "simulation": Proof(
        target="make simulate",
        read=_simulation,
        inputs=(*_STEPS, "tests/support/sim*.py", "tests/support/*_sim.py"),
    ),
    "crash-matrix": Proof(
        target="make crash-matrix",
        read=_crash_matrix,
        inputs=(*_ALL, "tests/support/crash*.py", "tests/support/fault_lab.py"),
    ),
    "mutants": Proof(
        target="make mutants",
        read=_mutants,
        inputs=(
            *_STEPS,
            "tests/support/call_graph.py",
            "tests/support/guard*.py",
            "tests/support/mut*.py",
            "tests/support/killers.json",
        ),
    ),
    "cold": Proof(
        target="make prove-cold",
        read=_cold,
        inputs=(*_ALL, "tests/support/cold*.py", "tests/stack/test_cold_faults*.py"),
    ),
    "soak": Proof(target="make soak", read=_soak, inputs=(*_ALL, "tests/support/soak*.py")),
}


def accept(name: str, *, root: Path = ROOT) -> Path:
    """Keep what build/NAME.json says. ValueError when it proves nothing."""
    proof = PROOFS[name]
    figures = proof.read(json.loads((root / "build" / f"{name}.json").read_text()))
    if figures.violations:
        raise ValueError(f"{name}: {figures.violations} violations; see build/{name}.json")
    if figures.problem is not None:
        raise ValueError(f"{name}: {figures.problem}")
    document = {
        "schema": SCHEMA,
        "commit": _commit(root),
        "seconds": figures.seconds,
        "counts": figures.counts,
        "violations": figures.violations,
        "inputs": proof.digest(root),
    }
    path = root / "docs" / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def outdated(root: Path = ROOT) -> list[str]:
    """Proofs whose inputs changed since they were accepted, with what runs each again."""
    return [
        f"{name}: {proof.target} ACCEPT=1"
        for name, proof in PROOFS.items()
        if _accepted(name, root) != proof.digest(root)
    ]


def _accepted(name: str, root: Path) -> str | None:
    """The digest of what the accepted run exercised; None where no run was ever accepted."""
    path = root / "docs" / "results" / f"{name}.json"
    return str(json.loads(path.read_text())["inputs"]) if path.exists() else None


def _commit(root: Path) -> str:
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def main() -> int:
    try:
        for name in sys.argv[1:]:
            sys.stdout.write(f"accepted: {accept(name)}\n")
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    if not sys.argv[1:]:
        told = outdated()
        sys.stdout.write(
            "\n".join(["of older code:", *told] if told else ["all of this code"]) + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
