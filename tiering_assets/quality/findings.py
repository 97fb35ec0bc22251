"""Failed checks in people's words: which ledger and part, what was expected, what was found.

Owns the short form kept in certificates and quarantine records (`block_offset (parts 2, 3)`) and
the sentence made of it. A sentence comes from the facts anew, so it can be made long after the
validation, from a record and the object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tiering_assets.quality.checks import CHECKS_BY_NAME, Above, Check, Equal, OneOf
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.index_frame import IndexRow, read_rows
from tiering_assets.records.models import SuiteResult

PARTS_NAMED_MAX: Final = 5  # a ledger may have 10,000 parts and a record should stay readable

_SHORT: Final = re.compile(r"(?P<name>\S+) \(parts? (?P<parts>\d+(?:, \d+)*)(?: of \d+)?\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCheck:
    """A check and the positions of the index entries it found wrong, none if it is the ledger's.

    `broken` is set where the check itself could not be evaluated.
    """

    name: str
    parts: tuple[int, ...] = ()
    broken: str | None = None

    def __str__(self) -> str:
        if self.broken is not None:
            return f"{self.name} not evaluated: {self.broken}"
        if not self.parts:
            return self.name
        named = ", ".join(map(str, self.parts[:PARTS_NAMED_MAX]))
        more = f" of {len(self.parts)}" if len(self.parts) > PARTS_NAMED_MAX else ""
        return f"{self.name} ({'parts' if len(self.parts) > 1 else 'part'} {named}{more})"

    @classmethod
    def parse(cls, text: str) -> FailedCheck:
        """The way back from the short form; parts beyond the named ones are lost."""
        if match := _SHORT.fullmatch(text):
            return cls(name=match["name"], parts=tuple(map(int, match["parts"].split(", "))))
        name, _, broken = text.partition(" not evaluated: ")
        return cls(name=name, broken=broken or None)


def findings(facts: IndexFacts, result: SuiteResult) -> tuple[str, ...]:
    """One sentence per failed check and named part, in the suite's order. Empty if all passed."""
    rows = read_rows(facts)
    sentences = []
    for text in result.failed:
        failed = FailedCheck.parse(text)
        check = CHECKS_BY_NAME.get(failed.name)
        if check is None or failed.broken is not None:  # a user's, or one that never ran
            sentences.append(f"ledger {facts.ledger_id}: suite {result.name}: {text}")
            continue
        named = [row for row in rows if row.part in failed.parts] if failed.parts else rows[:1]
        sentences += [_sentence(check, row) for row in named]
    return tuple(sentences)


def _sentence(check: Check, row: IndexRow) -> str:
    part = f" part {row.part}" if check.per_block and row.part else ""
    return f"ledger {row.ledger_id}{part}: {sentence_of(check, row)}"


def sentence_of(check: Check, row: object) -> str:
    """What a check found in a row, which has its columns as attributes."""
    expected, found = _expected(check, row), _shown(getattr(row, check.column))
    return f"{check.text}: expected {expected}, found {found}"


def _expected(check: Check, row: object) -> str:
    match check.rule:
        case OneOf(values):
            return " or ".join(map(_shown, values))
        case Equal(other):
            return f"{_shown(getattr(row, other))} ({other})"
        case Above(other=other, or_equal=or_equal):
            words = "at least" if or_equal else "more than"
            return f"{words} {_shown(getattr(row, other))} ({other})"


def _shown(value: object) -> str:
    if value is None:
        return "nothing readable"
    return repr(value) if isinstance(value, str) else str(value)
