"""How results look: tables for people, plain columns in a pipe, one JSON document with --json.

Owns: results go to standard output and nothing else does. In a pipe no line is wrapped or cut, so
that grep and awk work. A dataclass field with `repr=False` (passwords, secrets) is in no output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

from tiering_assets.resources.plain_text import plain

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_KIBI = 1024
NOTHING = "-"


def human_bytes(count: int | None) -> str:
    """`1536` -> `1.5 KiB`; `-` for unknown."""
    if count is None:
        return NOTHING
    value, unit = float(count), 0
    while value >= _KIBI and unit < len(_UNITS) - 1:
        value, unit = value / _KIBI, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def human_time(when: datetime | None) -> str:
    """Seconds are enough for people; JSON has them all. Always UTC."""
    return NOTHING if when is None else f"{when:%Y-%m-%d %H:%M:%S}Z"


def human_age(seconds: float | None) -> str:
    """`5400` -> `1.5 h`; `-` for unknown. Negative where clocks differ."""
    if seconds is None:
        return NOTHING
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


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


def print_line(text: str = "") -> None:
    sys.stdout.write(plain(text) + "\n")


def print_error(error: object) -> None:
    """One line on standard error."""
    sys.stderr.write(f"error: {plain(str(error))}\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on a terminal, aligned columns of whole values in a pipe."""
    texts = [[_cell(value) for value in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, texts)
        return
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    for line in ([*columns], *texts):
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print_line("  ".join(padded).rstrip())


def print_facts(facts: Mapping[str, object]) -> None:
    """`name   value` lines; names are aligned, values are whole."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print_line(f"{name.ljust(width)}  {_cell(value)}")


def _cell(value: object) -> str:
    if value is None or value == "":
        return NOTHING
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, datetime):
        return human_time(value)
    return plain(str(value))


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))  # plain text: brackets in a value are no markup
    Console(file=sys.stdout).print(table)
