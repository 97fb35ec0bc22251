"""Run every test that proves a fault of cold reads, and keep what each pair came to.

    python -m tests.support.prove_cold --only columns

Owns: a pair of a fault and a mode is proven where all of its tests ran and passed. One that did not
run, or was skipped, fails the run as a broken one does. Result: build/cold.json. `make prove-cold`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.cold_faults import FAULTS, MODES, Fault

SCHEMA = "tierkeeper/cold/1"
RESULT = Path("build/cold.json")
Outcomes = Mapping[str, Sequence[str]]
"""Of each test by its id, and of the file and the function that it is in."""


def ids_of(faults: Iterable[Fault], modes: Collection[str] = tuple(MODES)) -> list[str]:
    """Ids, each once, file by file: a file that is left takes its servers and sessions with it."""
    found = dict.fromkeys(
        one
        for fault in faults
        for mode, tests in fault.tests.items()
        if mode in modes
        for one in tests
    )
    files = [*dict.fromkeys(one.partition("::")[0] for one in found)]
    return sorted(found, key=lambda one: files.index(one.partition("::")[0]))


class Seen:
    """A plugin of pytest: outcomes by id."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[str]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails in its set-up or its tear-down failed."""
        if report.when == "call" or not report.passed:
            path, _, name = report.nodeid.partition("::")
            function = f"{path}::{name.partition('[')[0]}"
            for one in {report.nodeid, function, path}:
                self.outcomes[one].append(report.outcome)


def summary(outcomes: Outcomes, seconds: float, modes: Collection[str] = tuple(MODES)) -> Any:
    """The JSON of one run. `pairs` are rows of a fault and a mode; `missed` have not run."""
    pairs: list[dict[str, object]] = []
    for fault in FAULTS:
        for mode in modes:
            row: dict[str, object] = {"fault": fault.name, "mode": mode}
            if mode in fault.reasons:
                row |= {"outcome": "the same as elsewhere", "why": fault.reasons[mode]}
            else:
                found = [outcomes.get(one, ()) for one in fault.tests[mode]]
                row |= {"outcome": _outcome(found), "tests": [*fault.tests[mode]]}
            pairs.append(row)
    count = Counter(row["outcome"] for row in pairs)
    return {
        "schema": SCHEMA,
        "faults": len(FAULTS),
        "modes": dict(MODES),
        "pairs": pairs,
        "proven": count["proven"],
        "the_same": count["the same as elsewhere"],
        "anomalies": count["broken"],
        "missed": [f"{row['fault']}, {row['mode']}" for row in pairs if row["outcome"] == "missed"],
        "tests": len({one for one in outcomes if "::" in one and _is_one(one, outcomes)}),
        "seconds": round(seconds, 1),
    }


def _is_one(name: str, outcomes: Outcomes) -> bool:
    """Whether it is a test, and no function that has some by their parameters."""
    return "[" in name or not any(one.startswith(f"{name}[") for one in outcomes)


def _outcome(found: Sequence[Sequence[str]]) -> str:
    if any("failed" in one for one in found):
        return "broken"
    return "proven" if all(one and {*one} == {"passed"} for one in found) else "missed"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", nargs="*", choices=tuple(MODES), default=tuple(MODES))
    parser.add_argument("--result", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    seen, began = Seen(), time.monotonic()
    pytest.main(["-q", "-p", "no:cacheprovider", *ids_of(FAULTS, options.only)], plugins=[seen])
    report = summary(seen.outcomes, time.monotonic() - began, options.only)
    options.result.parent.mkdir(parents=True, exist_ok=True)
    options.result.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for name in report["missed"]:
        sys.stderr.write(f"{name}: not all of its tests ran\n")
    sys.stderr.write(
        f"{report['faults']} faults, {report['proven']} pairs proven, {report['the_same']} the same "
        f"as elsewhere, {report['anomalies']} broken, {len(report['missed'])} missed, "
        f"{report['seconds']:.0f} s: {options.result}\n"
    )
    return 1 if report["missed"] or report["anomalies"] else 0


if __name__ == "__main__":
    sys.exit(main())
