"""Take each guard out of our code, make each known mistake, and see who notices. `make mutants`

    python -m tests.support.mutate             each against its recorded killer
    python -m tests.support.mutate --find      and look for killers of those that have none
    python -m tests.support.mutate --find --new    of those only that came with the last change

killers.json says of each who notices it, or why it forbids nothing. build/mutants.json has what
this run found. The exit code is 1 if a recorded killer noticed nothing, or if a guard stands
nowhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from tests.support.guard_hunt import SEED, Mistake, Unheard, hunt_all, import_everything
from tests.support.guard_mutant import break_guard
from tests.support.guards import find_guards
from tests.support.killers import Killers
from tests.support.mutants import MUTANTS, mutate
from tests.support.rooms import ROOT

CALLERS = ROOT / "build" / "callers"
SCHEMA = "tierkeeper/mutants/2"
FIND_S = 20.0  # of tests, for one mistake
TEST_MAX_S = 5.0  # a longer one would be taken for one that hangs, on a busy machine
SEEDS_MAX = 300
_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """`functions` ("module:name") are those whose callers may notice it."""

    mistake: Mistake
    functions: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.mistake.name


def all_mutants() -> list[Mutant]:
    """Every guard taken out, then every mistake of mutants.py."""
    guards = [
        Mutant(Mistake(one.name, partial(break_guard, one)), (f"{one.module}:{one.function}",))
        for one in find_guards()
    ]
    named = [
        Mutant(Mistake(name, partial(mutate, name)), tuple(_replaced(name))) for name in MUTANTS
    ]
    return guards + named


def _replaced(name: str) -> Iterator[str]:
    for owner, attribute, _change in MUTANTS[name]:
        if isinstance(owner, type):
            yield f"{owner.__module__}:{owner.__qualname__}.{attribute}"
        else:
            function = getattr(owner, attribute)
            yield f"{getattr(function, '__module__', owner.__name__)}:{attribute}"


@dataclass(frozen=True, slots=True)
class Checked:
    """`tried` are mutants whose recorded killer was run, `survived` those of which it noticed
    nothing.
    """

    tried: int
    survived: tuple[str, ...]


def check(mutants: Sequence[Mutant], killers: Killers, *, seconds: float = inf) -> Checked:
    """Run each against its recorded killer; in a limited time, as many as it takes, of all
    rooms.
    """
    asks = [
        (one.mistake, [killers.killed[one.name]]) for one in mutants if one.name in killers.killed
    ]
    if seconds < inf:
        asks.sort(key=lambda ask: sha256(ask[0].name.encode()).digest())
    survived: list[str] = []
    began, number = time.monotonic(), 0
    for number, (mistake, noticed, _took) in enumerate(hunt_all(asks, limit_s=_LIMIT_S), 1):
        if not isinstance(noticed, str):
            survived.append(mistake.name)
            why = f", not asked: {noticed.why}" if isinstance(noticed, Unheard) else ""
            _tell(f"{mistake.name}: SURVIVES {killers.killed[mistake.name]}{why}")
        if number % 200 == 0:
            _tell(f"{number} of {len(asks)}, {len(survived)} survive")
        if time.monotonic() - began > seconds:
            break
    return Checked(number, tuple(survived))


def find(mutants: Sequence[Mutant], killers: Killers, *, tests_s: float, seeds: int) -> None:
    """Look for killers of mutants that have none; what is found is written as it comes."""
    names = [one.name for one in all_mutants()]
    callers = Callers.read()
    asks = [
        (
            one.mistake,
            [*callers.of(one, tests_s), *(f"{SEED}{number}" for number in range(seeds))],
        )
        for one in mutants
        if one.name not in killers.killed and one.name not in killers.no_guard
    ]
    for number, (mistake, noticed, took) in enumerate(hunt_all(asks, limit_s=_LIMIT_S), 1):
        _tell(f"{number}/{len(asks)} {took:5.1f} s {mistake.name}: {noticed or 'SURVIVES'}")
        if isinstance(noticed, str):
            killers.killed[mistake.name] = noticed
        if number % 50 == 0:
            killers.write(names)
    killers.write(names)


@dataclass(frozen=True, slots=True)
class Callers:
    """Which tests run which functions: `seconds` by function and test, `breadth` functions by
    test.
    """

    seconds: Mapping[str, Mapping[str, float]]
    breadth: Mapping[str, int]

    @classmethod
    def read(cls, folder: Path = CALLERS) -> Callers:
        seconds: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for path in folder.glob("*.json"):
            for function, took in json.loads(path.read_text()).items():
                seconds[function].update(took)
        if not seconds:
            raise FileNotFoundError(
                f"{folder} is empty: `make mutants FIND=1` records who calls what"
            )
        return cls(seconds, Counter(test for took in seconds.values() for test in took))

    def of(self, mutant: Mutant, left: float) -> list[str]:
        """Tests that run it, of so many seconds: those first that run little else."""
        running = [self.seconds.get(name, {}) for name in mutant.functions]
        callers = {
            test: took
            for found in running
            for test, took in found.items()
            if took <= TEST_MAX_S and not _breaks_code(test)
        }
        chosen: list[str] = []
        for test in sorted(callers, key=lambda test: (self.breadth[test], callers[test])):
            left -= callers[test]
            if chosen and left < 0:
                break
            chosen.append(test)
        return chosen


def _breaks_code(test: str) -> bool:
    """Tests that make mistakes of their own: what they notice may be theirs."""
    return "test_mutants.py" in test or "test_guards.py" in test


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--find", action="store_true", help="look for killers, too")
    parser.add_argument(
        "--tests", type=float, default=FIND_S, help="seconds of tests for one mutant"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="at most, for one mutant")
    parser.add_argument(
        "--sample", type=float, default=inf, metavar="SECONDS", help="so long alone"
    )
    parser.add_argument("--only", default="", help="mutants whose name or module contains this")
    parser.add_argument("--new", action="store_true", help="those alone that stand nowhere yet")
    parser.add_argument("--output", type=Path, default=Path("build/mutants.json"))
    asked = parser.parse_args()
    began = time.monotonic()
    mutants = [
        one
        for one in all_mutants()
        if asked.only in one.name or any(asked.only in name for name in one.functions)
    ]
    killers = Killers.read()
    if asked.new:
        nowhere = set(killers.uncovered([one.name for one in mutants]))
        mutants = [one for one in mutants if one.name in nowhere]
    import_everything()
    if asked.find:
        find(mutants, killers, tests_s=asked.tests, seeds=asked.seeds)
    checked = Checked(0, ()) if asked.find else check(mutants, killers, seconds=asked.sample)
    report = _report(mutants, killers, checked, time.monotonic() - began)
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    _tell(
        f"{len(mutants)} mutants: {report['caught']} caught, {len(checked.survived)} survive, "
        f"{report['no_guard']} forbid nothing, {report['uncovered']} stand nowhere; "
        f"{report['seconds']} s"
    )
    return 1 if checked.survived or report["uncovered"] else 0


def _report(
    mutants: Sequence[Mutant], killers: Killers, checked: Checked, seconds: float
) -> dict[str, Any]:
    names = [one.name for one in mutants]
    lost, nowhere = set(checked.survived), killers.uncovered(names)
    return {
        "schema": SCHEMA,
        "mutants": [
            {
                "name": one.name,
                "functions": one.functions,
                "caught_by": None if one.name in lost else killers.killed.get(one.name),
                "no_guard": killers.no_guard.get(one.name),
            }
            for one in mutants
        ],
        "tried": checked.tried,
        "caught": checked.tried - len(lost),
        "survived": sorted(lost),
        "no_guard": sum(name in killers.no_guard for name in names),
        "uncovered": len(nowhere),
        "nowhere": nowhere,
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    raise SystemExit(main())
