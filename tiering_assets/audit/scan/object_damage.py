"""What is wrong with the two objects of one attempt, whose loss it is, and what to do next. Pure.

Owns: entries are lost only where no copy of them is left, so a damaged object is a loss when the
bookie copy is gone, a danger while it lives, and unknown while BookKeeper cannot be asked. Unknown
is never told as gone or alive. The signature of a broker's truncation (an entry larger than its
block: the offloader reports success, and the index describes fewer bytes than the object has) has a
name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DamageKind(StrEnum):
    """The value is what people and scripts read; the first that applies, in this order."""

    NO_DATA = "index without data"
    NO_INDEX = "data without index"
    TRUNCATED = "truncated"
    INDEX_BYTES = "index does not decode"
    DATA_BYTES = "bad bytes"


class BookieCopy(StrEnum):
    LIVES = "lives"
    GONE = "gone"
    UNKNOWN = "unknown"


class Readers(StrEnum):
    """Whether a topic names this attempt, so that brokers read it."""

    YES = "read by brokers"
    NO = "read by nobody"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenObjects:
    """Both objects as a look found them. Bytes are None for what is not there or says nothing."""

    data_bytes: int | None
    index_there: bool
    indexed_bytes: int | None
    last_block_empty: bool
    index_decodes: bool


def kind_of(facts: SeenObjects) -> DamageKind:
    """Name the damage of an attempt that has findings."""
    if facts.data_bytes is None:
        return DamageKind.NO_DATA
    if not facts.index_there:
        return DamageKind.NO_INDEX
    if facts.indexed_bytes is not None and (
        facts.indexed_bytes != facts.data_bytes or facts.last_block_empty
    ):
        return DamageKind.TRUNCATED
    return DamageKind.DATA_BYTES if facts.index_decodes else DamageKind.INDEX_BYTES


def next_step(*, ledger_id: int, topic: str | None, bookies: BookieCopy, readers: Readers) -> str:
    """What lifts it, as a command where there is one."""
    if bookies is BookieCopy.UNKNOWN:
        return (
            "scan again where metadata.store is the cluster that wrote the object: only its "
            "BookKeeper tells whether the ledger is still there"
        )
    if readers is Readers.NO:
        return "no topic reads it; `tierkeeper orphan list` says whose it is and when it may go"
    if bookies is BookieCopy.LIVES:
        of_topic = f" --topic {topic.removeprefix('persistent://')}" if topic else ""
        return (
            f"`tierkeeper scrub run{of_topic} --execute` makes a new copy from the bookies; do it before the "
            f"broker's deletion lag or retention takes the ledger"
        )
    return (
        f"these entries are in no copy any more; `tierkeeper ledger show {ledger_id}` tells what is "
        f"known of the ledger"
    )
