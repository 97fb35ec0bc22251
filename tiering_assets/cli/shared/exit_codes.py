"""What a command ends with: one number per error class, and which of several errors decides.

Owns: the table that `--help`, docs/cli.md and scripts rely on. The numbers are those of
resources/errors.py and the sentences those of its docstring, so there is no second list to forget.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import tiering_assets.resources.errors as errors
from tiering_assets.resources.ending import INTERRUPTED
from tiering_assets.resources.errors import TierkeeperError

DONE = 0
FINDINGS = 1
USAGE = 2
UNEXPECTED = TierkeeperError.exit_code

_TREE_LINE = re.compile(r"^[ │├└─]*(?P<name>[A-Z][A-Za-z]+Error) {2,}(?P<meaning>\S.*)$")


@dataclass(frozen=True, slots=True, order=True)
class ExitCode:
    """One row. `name` is the error class, empty for the codes that are no error of ours."""

    code: int
    name: str
    meaning: str


def exit_codes() -> list[ExitCode]:
    """Every code a command may end with, in number order."""
    rows = [
        ExitCode(DONE, "", "done; a ledger that waits, with its reason printed, is no failure"),
        ExitCode(FINDINGS, "", "findings: a check found something wrong (verify, doctor, status)"),
        ExitCode(USAGE, "", "usage: an unknown command, option or argument; nothing was done"),
        ExitCode(UNEXPECTED, "", "unexpected: a bug; the traceback is on standard error"),
        ExitCode(
            INTERRUPTED, "", "interrupted by Ctrl-C; the same command goes on where it stopped"
        ),
    ]
    meanings = dict(_meanings())
    rows += [
        ExitCode(kind.exit_code, kind.__name__, meanings.get(kind.__name__, ""))
        for kind in _error_classes(TierkeeperError)
    ]
    return sorted(rows)


def worst(found: Iterable[TierkeeperError]) -> int:
    """The code of the worst error, 0 without one.

    An error that no repetition cures is worse than a retryable one; among equals the higher code.
    """
    ranked = [(not error.retryable, error.exit_code) for error in found]
    return max(ranked)[1] if ranked else DONE


def _meanings() -> Iterator[tuple[str, str]]:
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        match = _TREE_LINE.match(line)
        if match is not None:
            yield match["name"], match["meaning"]


def _error_classes(kind: type[TierkeeperError]) -> Iterator[type[TierkeeperError]]:
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from _error_classes(child)
