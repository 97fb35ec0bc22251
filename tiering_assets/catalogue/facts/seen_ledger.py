"""A ledger as its topic's node listed it when it was last read.

Owns: the node is looked at now and then, and records come in between. What a scan saw counts until
a record of a later time says that the topic was changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from tiering_assets.resources.metastore.ledger_info import LedgerInfo


class ListedAs(StrEnum):
    """What a topic's node says of a ledger. `BOOKIES` is without any context of an offload."""

    OPEN = "open"
    BOOKIES = "bookies"
    COPYING = "copying"
    OFFLOADED = "offloaded"
    MARKED = "marked"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class SightedLedger:
    """One ledger in one reading of its topic's node. `ml_version` is of the node."""

    listed_as: ListedAs
    context_uid: str | None
    closed_at: datetime | None
    ml_version: int | None
    seen_at: datetime

    @property
    def complete(self) -> bool:
        """Brokers read a copy."""
        return self.listed_as in (ListedAs.OFFLOADED, ListedAs.MARKED)

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of `ledger_changes` that are a scan's."""
        return {
            "listed_as": self.listed_as.value,
            "context_uid": self.context_uid,
            "closed_at": self.closed_at,
            "ml_version": self.ml_version,
            "seen_at": self.seen_at,
        }


UNSEEN: Mapping[str, None] = dict.fromkeys(
    ("listed_as", "context_uid", "closed_at", "ml_version", "seen_at")
)


def seen_in(row: Mapping[str, Any]) -> SightedLedger | None:
    """What a row was made of."""
    if row["listed_as"] is None:
        return None
    return SightedLedger(
        **{**{name: row[name] for name in UNSEEN}, "listed_as": ListedAs(row["listed_as"])}
    )


def listed_as(listed: LedgerInfo) -> ListedAs:
    if listed.is_open:
        return ListedAs.OPEN
    context = listed.offload
    if context is None:
        return ListedAs.BOOKIES
    if not context.complete:
        return ListedAs.COPYING
    return ListedAs.MARKED if context.bookkeeper_deleted else ListedAs.OFFLOADED


def seen_as(listed: LedgerInfo, *, ml_version: int, seen_at: datetime) -> SightedLedger:
    context = listed.offload
    return SightedLedger(
        listed_as=listed_as(listed),
        context_uid=None if context is None else str(context.uid),
        closed_at=listed.closed_at,
        ml_version=ml_version,
        seen_at=seen_at,
    )


def seen_gone(before: SightedLedger | None, *, seen_at: datetime) -> SightedLedger:
    """Its topic does not list it, or there is no such topic."""
    return SightedLedger(
        listed_as=ListedAs.GONE,
        context_uid=None if before is None else before.context_uid,
        closed_at=None if before is None else before.closed_at,
        ml_version=None,
        seen_at=seen_at,
    )
