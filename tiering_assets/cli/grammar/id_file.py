"""A file of ledger ids, one a line. Whatever else is in it is refused before anything is done.

Owns: a list that somebody made by hand or by a script is taken whole or not at all: a line that is
no id, one that is blank and one that repeats another may be a mistake of what made it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from tiering_assets.cli.shared.usage import UsageError

_ID_MAX = 2**63 - 1  # BookKeeper's ids are signed
_SHOWN = 40  # characters of a line that is refused


def read_ids(path: Path, standard_input: TextIO) -> list[int]:
    """Ids in the order of the file. Usage error with the line's number and the next step."""
    where = "standard input" if str(path) == "-" else str(path)
    try:
        text = standard_input.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--ids {where}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--ids {where}: not UTF-8 text") from None
    lines: dict[int, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        ledger_id = _id(line, f"--ids {where}: line {number}")
        if ledger_id in lines:
            raise UsageError(
                f"--ids {where}: line {number} repeats ledger {ledger_id} of line "
                f"{lines[ledger_id]}: drop one"
            )
        lines[ledger_id] = number
    if not lines:
        raise UsageError(f"--ids {where}: it names no ledger")
    return list(lines)


def _id(line: str, place: str) -> int:
    word = line.strip()
    if not word:
        raise UsageError(f"{place} is blank: one ledger id a line is expected")
    if not (word.isascii() and word.isdecimal()) or int(word[:20]) > _ID_MAX:
        raise UsageError(f"{place}: {word[:_SHOWN]!r} is no ledger id")
    return int(word)
