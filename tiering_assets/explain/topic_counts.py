"""Where a topic's ledgers are, counted from its list and from which attempts are certified.

Owns: a complete offload context is published by us where the attempt has our certificate, else by a
broker. A ledger is on bookies only while no complete context names an object for it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from uuid import UUID

from tiering_assets.resources.metastore.ledger_info import LedgerInfo

BY_US, BY_BROKER = "tierkeeper", "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Ledgers, and their payload bytes as the topic's list says."""

    ledgers: int = 0
    bytes: int = 0

    def plus(self, info: LedgerInfo) -> Amount:
        return Amount(ledgers=self.ledgers + 1, bytes=self.bytes + (info.size or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCounts:
    """`every` is all ledgers with the open one; `sealed` the closed ones, each of them in one of
    `published_by_us`, `published_by_broker` and `bookies_only`.
    """

    every: Amount
    sealed: Amount
    published_by_us: Amount
    published_by_broker: Amount
    bookies_only: Amount


def publisher_of(info: LedgerInfo, certified: Set[tuple[int, UUID]]) -> str | None:
    """Who wrote the object that brokers read for a ledger; None where they read bookies."""
    context = info.offload
    if context is None or not context.complete:
        return None
    return BY_US if (info.ledger_id, context.uid) in certified else BY_BROKER


def count_topic(ledgers: Iterable[LedgerInfo], certified: Set[tuple[int, UUID]]) -> TopicCounts:
    """Count one topic's list. `certified` are (ledger id, attempt) pairs with our certificate."""
    every = sealed = ours = theirs = bookies = Amount()
    for info in ledgers:
        every = every.plus(info)
        if info.is_open:
            continue
        sealed = sealed.plus(info)
        match publisher_of(info, certified):
            case "tierkeeper":
                ours = ours.plus(info)
            case "broker":
                theirs = theirs.plus(info)
            case _:
                bookies = bookies.plus(info)
    return TopicCounts(
        every=every,
        sealed=sealed,
        published_by_us=ours,
        published_by_broker=theirs,
        bookies_only=bookies,
    )
