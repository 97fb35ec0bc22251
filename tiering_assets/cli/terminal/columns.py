"""What a table's columns are: each has a name, a kind of value, and a weight. Pure.

Owns: commands say what a value is, never how wide or how coloured it looks. A size is given as a
number of bytes, a time as a datetime, an age as seconds, findings as a list of sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ValueKind(StrEnum):
    """What a value is."""

    ID = "id"
    TOPIC = "topic"
    STATE = "state"
    NUMBER = "number"
    SIZE = "size"
    TIME = "time"
    AGE = "age"
    TEXT = "text"
    FINDINGS = "findings"
    DIGEST = "digest"


# What says which row it is, and how it is. Never left out of a table, and never said once for all.
ALWAYS: Final = frozenset({ValueKind.ID, ValueKind.TOPIC, ValueKind.STATE})
FROM_THE_RIGHT: Final = frozenset({ValueKind.NUMBER, ValueKind.SIZE, ValueKind.AGE})
_WEIGHTS: Final = {
    ValueKind.TEXT: 20,
    ValueKind.NUMBER: 30,
    ValueKind.AGE: 40,
    ValueKind.TIME: 40,
    ValueKind.SIZE: 50,
    ValueKind.DIGEST: 60,
    ValueKind.FINDINGS: 70,
}


@dataclass(frozen=True, slots=True)
class Column:
    """`weight` is that of its kind unless told: where room is short the lightest go first."""

    name: str
    kind: ValueKind = ValueKind.TEXT
    weight: int | None = None

    @property
    def rank(self) -> int:
        return _WEIGHTS.get(self.kind, 0) if self.weight is None else self.weight
