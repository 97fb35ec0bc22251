"""pytest plugin: `-p tests.support.minutes` prints minutes by folder, and files that take too long.

A file's time is its tests' with set-up and tear-down, so servers count where they were first asked
for. Processes that run side by side add up: with two of them the whole takes about half the sum.
Minutes of CPU are those of the process and of the children that it has waited for.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

import pytest

LONG_S = 180.0  # a file that takes longer keeps one process busy while the other has nothing left
BUSY_S = 60.0  # of CPU


class Spent(NamedTuple):
    """Seconds on the clock, and of CPU."""

    wall: float = 0.0
    cpu: float = 0.0

    def plus(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.cpu + other.cpu)


_spent: defaultdict[str, Spent] = defaultdict(Spent)
_seen = [0.0]


def _cpu() -> float:
    return sum(os.times()[:4])


def pytest_collection_finish() -> None:
    _seen[0] = _cpu()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """xdist hands on whatever lies in a report."""
    report = yield
    before, _seen[0] = _seen[0], _cpu()
    vars(report)["cpu"] = _seen[0] - before
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add set-up, test and tear-down; xdist hands what its processes report to the one that
    prints.
    """
    path = report.nodeid.partition("::")[0]
    _spent[path] = _spent[path].plus(Spent(report.duration, report.cpu))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("minutes, and those of CPU")
    for line in lines(_spent):
        terminalreporter.write_line(line)


def lines(spent: Mapping[str, Spent]) -> list[str]:
    """Minutes of each folder and of all, then of each long or busy file; the longest first."""
    folders: defaultdict[str, Spent] = defaultdict(Spent)
    for path, took in spent.items():
        parts = PurePosixPath(path).parts
        name = "/".join(parts[:2]) if len(parts) > 2 else parts[0]
        folders[name] = folders[name].plus(took)
    said = [_line(folders[name], name) for name in sorted(folders, key=lambda x: -folders[x].wall)]
    total = Spent(*map(sum, zip(*spent.values(), strict=True)))
    said.append(_line(total, "all, of every process"))
    for path in sorted(spent, key=lambda path: -spent[path].wall):
        if spent[path].wall > LONG_S:
            said.append(_line(spent[path], f"{path}, a file above {LONG_S / 60:g}"))
        elif spent[path].cpu > BUSY_S:
            said.append(_line(spent[path], f"{path}, a file above {BUSY_S / 60:g} of CPU"))
    return said


def _line(spent: Spent, what: str) -> str:
    return f"{spent.wall / 60:6.1f} {spent.cpu / 60:6.1f} {what}"
