"""What can be wrong between records of a stream, before an audit gives it its words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class StreamWrong(StrEnum):
    LINK = "names another record before it"
    FACT = "says something else"
    MISSING = "is not there"
    CONTRADICTION = "contradicts itself"


class Lain(Protocol):
    """A record as it lies in the bucket."""

    @property
    def key(self) -> str: ...

    @property
    def record(self) -> Any: ...

    @property
    def sha256(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFault:
    """`key` is that of the record at fault. `ledger_id` is None where no record names one."""

    wrong: StreamWrong
    key: str
    ledger_id: int | None
    what: str
    expected: object
    found: object


def missing(key: str, ledger_id: int | None, what: str) -> StreamFault:
    return StreamFault(
        wrong=StreamWrong.MISSING,
        key=key,
        ledger_id=ledger_id,
        what=what,
        expected="a record",
        found="none",
    )
