"""What one reading of a topic's node says: a row of the topic, and how it lists each ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tiering_assets.catalogue.columns import TOPIC_CHANGES, without_turn
from tiering_assets.catalogue.facts.changes import topic_columns
from tiering_assets.catalogue.facts.known_ledger import KnownLedger
from tiering_assets.catalogue.facts.seen_ledger import ListedAs, seen_as, seen_gone
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, ManagedLedger
from tiering_assets.resources.metastore.store import NodeStat
from tiering_assets.resources.metastore.topic_names import never_touched

OF_TOPIC: Final = without_turn(TOPIC_CHANGES)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTopic:
    """One look at a topic. `stat` is None where it has no node, `info` where that says nothing that
    can be read (`why`).
    """

    topic: str
    stat: NodeStat | None
    info: ManagedLedger | None = None
    why: str | None = None

    @property
    def ledgers(self) -> tuple[LedgerInfo, ...]:
        return () if self.info is None else self.info.ledgers

    @property
    def ml_version(self) -> int:
        return -1 if self.stat is None else self.stat.version

    @property
    def left_alone(self) -> str | None:
        """Why it is never touched. Ledgers that a shadow topic lists are another topic's."""
        return never_touched(self.topic, {} if self.info is None else self.info.properties)

    @property
    def says_nothing(self) -> bool:
        """Of ledgers: its node cannot be read, or they are not its own."""
        return self.why is not None or self.left_alone is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """How a topic lists one of its ledgers; `listed` is None where it does not. `page` is the last
    that was posted by then.
    """

    ledger_id: int
    page: int
    topic: str
    listed: LedgerInfo | None
    ml_version: int
    seen_at: datetime

    def apply(self, facts: KnownLedger) -> KnownLedger:
        if self.listed is None:
            return replace(facts, seen=seen_gone(facts.seen, seen_at=self.seen_at))
        seen = seen_as(self.listed, ml_version=self.ml_version, seen_at=self.seen_at)
        if seen.listed_as is ListedAs.OPEN:
            return replace(facts, topic=self.topic, seen=seen)
        return replace(
            facts,
            topic=self.topic,
            entries=self.listed.entries,
            bytes=self.listed.size,
            seen=seen,
        )


def sightings(
    looked: ReadTopic, known: Mapping[int, str | None], *, page: int, seen_at: datetime
) -> Iterator[Sighting]:
    """Of every ledger that the topic lists, and of those that rows have as its own.

    `known` is by ledger how the topic listed it before. A node that cannot be read tells nothing.
    """
    if looked.says_nothing:
        return
    listed = {one.ledger_id: one for one in looked.ledgers}
    left = {i for i, before in known.items() if i not in listed and before != ListedAs.GONE}
    for ledger_id in sorted({*listed, *left}):
        yield Sighting(
            ledger_id=ledger_id,
            page=page,
            topic=looked.topic,
            listed=listed.get(ledger_id),
            ml_version=looked.ml_version,
            seen_at=seen_at,
        )


def topic_row(looked: ReadTopic, *, seen_at: datetime) -> dict[str, Any]:
    """The row of `topic_changes`, without its turn."""
    stat, info = looked.stat, looked.info
    waiting = [one for one in looked.ledgers if not one.is_open and not _is_offloaded(one)]
    return {
        "topic": looked.topic,
        **topic_columns(looked.topic),
        "czxid": None if stat is None else stat.czxid,
        "mzxid": None if stat is None else stat.mzxid,
        "ml_version": None if stat is None else stat.version,
        "written_at": None if stat is None else _EPOCH + timedelta(milliseconds=stat.mtime_ms),
        "ledgers": None if info is None else len(info.ledgers),
        "on_bookies": None if info is None else len(waiting),
        "on_bookies_bytes": None if info is None else sum(one.size or 0 for one in waiting),
        "offloaded": None if info is None else sum(map(_is_offloaded, info.ledgers)),
        "terminated": None if info is None else info.terminated_at is not None,
        "left_alone": looked.left_alone,
        "why": looked.why,
        "seen_at": seen_at,
    }


def _is_offloaded(listed: LedgerInfo) -> bool:
    """Brokers read a copy."""
    return listed.offload is not None and listed.offload.complete
