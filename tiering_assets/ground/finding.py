"""The answer to one question about what tierkeeper relies on: level, text, and what to do about
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tiering_assets.resources.errors import TierkeeperError


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The answer to one question. `next_step` is a command or setting, empty when all is well."""

    check: str
    level: Level
    text: str
    next_step: str = ""


def ok(check: str, text: str) -> Finding:
    return Finding(check=check, level=Level.OK, text=text)


def warn(check: str, text: str, next_step: str) -> Finding:
    return Finding(check=check, level=Level.WARN, text=text, next_step=next_step)


def fail(check: str, text: str, next_step: str) -> Finding:
    return Finding(check=check, level=Level.FAIL, text=text, next_step=next_step)


def skip(check: str, text: str) -> Finding:
    return Finding(check=check, level=Level.SKIP, text=text)


def asked(check: str, ask: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings of `ask`; an expected error among them becomes a failed finding."""
    try:
        yield from ask()
    except TierkeeperError as error:
        # What our errors say ends with the next step already.
        yield fail(check, str(error), "")
