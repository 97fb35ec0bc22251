"""pytest plugin: `-p tests.support.minutes` prints minutes by folder, and files that take too long.

A file's time is its tests' with set-up and tear-down, so servers count where they were first asked
for. Processes that run side by side add up: with two of them the whole takes about half the sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

LONG_S = 180.0  # a file that takes longer keeps one process busy while the other has nothing left

_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add set-up, test and tear-down; xdist hands what its processes report to the one that
    prints.
    """
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("minutes")
    for line in lines(_seconds):
        terminalreporter.write_line(line)


def lines(seconds: Mapping[str, float]) -> list[str]:
    """Minutes of each folder and of all, then of each file above LONG_S; the longest first."""
    folders: defaultdict[str, float] = defaultdict(float)
    for path, took in seconds.items():
        parts = PurePosixPath(path).parts
        folders["/".join(parts[:2]) if len(parts) > 2 else parts[0]] += took
    said = [_line(folders[name], name) for name in sorted(folders, key=lambda x: -folders[x])]
    said.append(_line(sum(folders.values()), "all, of every process"))
    for path in sorted(seconds, key=lambda path: -seconds[path]):
        if seconds[path] > LONG_S:
            said.append(_line(seconds[path], f"{path}, a file above {LONG_S / 60:g}"))
    return said


def _line(seconds: float, what: str) -> str:
    return f"{seconds / 60:6.1f} {what}"
