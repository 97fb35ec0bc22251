"""How results look: tables for people, plain columns in a pipe, one JSON document with --json.

Owns: results go to standard output and nothing else does. A dataclass field with `repr=False`
(passwords, secrets) is in no output. Tables and colours are those of cli/terminal/, which is
imported when something is printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tiering_assets.cli.terminal.screen import screen
from tiering_assets.cli.terminal.words import (
    NOTHING,
    human_age,
    human_bytes,
    human_time,
    plain_cell,
    with_ages,
)
from tiering_assets.resources.plain_text import plain

if TYPE_CHECKING:
    from tiering_assets.cli.terminal.columns import Column

__all__ = [  # commands find all they print with here
    "NOTHING",
    "error_document",
    "human_age",
    "human_bytes",
    "human_time",
    "print_document",
    "print_error",
    "print_facts",
    "print_line",
    "print_table",
    "to_json",
]


def to_json(value: Any) -> Any:
    """Plain JSON values of anything a step returns."""
    if is_dataclass(value) and not isinstance(value, type):
        shown = {f.name: to_json(getattr(value, f.name)) for f in fields(value) if f.repr}
        kind = getattr(type(value), "kind", None)  # records name their schema
        return {"schema": kind, **shown} if isinstance(kind, str) else shown
    match value:
        case Enum():  # numbers of a wire format mean nothing to people
            return value.value if isinstance(value.value, str) else value.name
        case datetime():
            return value.isoformat()
        case bytes():
            return value.hex()
        case UUID() | Path():
            return str(value)
        case Exception():
            return error_document(value)
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case str() | int() | float() | bool() | None:
            return value
        case Iterable():
            return [to_json(item) for item in value]
        case _:
            return str(value)


def error_document(error: Exception) -> dict[str, Any]:
    """What `--json` says of an error."""
    return {
        "error": type(error).__name__,
        "message": str(error),
        "exit_code": getattr(error, "exit_code", 10),
        "retryable": bool(getattr(error, "retryable", False)),
    }


def print_document(command: str, body: Mapping[str, Any]) -> None:
    """One JSON document on standard output; `command` is `ledger-list` and the like."""
    document = {"schema": f"tierkeeper/{command}/1", **to_json(body)}
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def print_line(text: str = "", *, lead: str = "") -> None:
    """A line, at a terminal with the age of each time in it. `lead` is its word with a colour."""
    on, line = screen(), plain(text)
    if on.width is not None:
        line = with_ages(line, on.time)
    if lead and on.colour:
        from tiering_assets.cli.terminal.show import show_line

        show_line(line, lead, on)
    else:
        sys.stdout.write(line + "\n")


def print_error(error: object) -> None:
    """One line on standard error."""
    sys.stderr.write(f"error: {plain(str(error))}\n")


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """What fits a terminal, and the rest named; in a pipe aligned columns of whole values."""
    from tiering_assets.cli.terminal.show import show_table

    show_table(columns, rows, screen())


def print_facts(facts: Mapping[str, object]) -> None:
    """`name   value` lines; names are aligned, values are whole."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print_line(f"{name.ljust(width)}  {plain_cell(value)}")
