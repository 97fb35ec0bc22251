"""What many topics list, in columns: 10 million ledgers are 400 MB, as objects they were 6 GB.

Owns: a topic here has what its list says, in the order of ids: nothing is left out, and one row of
it is the `LedgerInList` that the rules judge.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa

from tiering_assets.lineage.coverage_rules import LedgerInList, TopicCoverage

UID_BYTES = 16
_NO_UID = bytes(UID_BYTES)
Listing = Iterable[tuple[int, int | None, bytes | None, bool]]
"""(id, entries, uid of a complete context, is it open) of each ledger, in the order of ids."""


class TopicRows(NamedTuple):
    """Its rows from `begin` to `end`; `whole` is what its coverage is if nothing is wrong."""

    begin: int
    end: int
    whole: TopicCoverage


@dataclass
class ListedLedgers:
    """Columns with a row for each ledger; entries are 0 where the list says none."""

    topics: list[TopicRows] = field(default_factory=list)
    topic: array[int] = field(default_factory=lambda: array("i"))
    ledger_id: array[int] = field(default_factory=lambda: array("q"))
    entries: array[int] = field(default_factory=lambda: array("q"))
    is_open: bytearray = field(default_factory=bytearray)
    has_uid: bytearray = field(default_factory=bytearray)
    uid: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.ledger_id)

    def add(self, ml_name: str, listing: Listing) -> None:
        """A topic with its list."""
        begin, number, ours, bookies = len(self), len(self.topics), 0, 0
        first = last = None
        for ledger_id, entries, uid, is_open in listing:
            self.topic.append(number)
            self.ledger_id.append(ledger_id)
            self.entries.append(entries or 0)
            self.is_open.append(is_open)
            self.has_uid.append(uid is not None)
            self.uid += uid or _NO_UID
            if entries and not is_open:
                first = first or (ledger_id, 0)
                last = ledger_id, entries - 1
                if uid is None:
                    bookies += 1
                else:
                    ours += 1
        whole = TopicCoverage(
            topic=ml_name, first=first, last=last, covered=ours, on_bookies=bookies
        )
        self.topics.append(TopicRows(begin, len(self), whole))

    def ledgers_of(self, number: int) -> Iterator[LedgerInList]:
        """Of the so-manieth topic, as the rules judge them."""
        for at in range(self.topics[number].begin, self.topics[number].end):
            uid = self.uid[at * UID_BYTES : (at + 1) * UID_BYTES]
            yield LedgerInList(
                ledger_id=self.ledger_id[at],
                entries=self.entries[at],
                uid=str(UUID(bytes=bytes(uid))) if self.has_uid[at] else None,
                is_open=bool(self.is_open[at]),
            )

    @cached_property
    def names(self) -> Any:
        """Of the topics, in their order; nothing may be added any more."""
        return pa.array([one.whole.topic for one in self.topics], pa.string())

    @cached_property
    def firsts(self) -> Any:
        """The first ledger of each topic; of one that lists none, 0."""
        return self._ids([one.begin for one in self.topics])

    @cached_property
    def lasts(self) -> Any:
        return self._ids([one.end - 1 for one in self.topics])

    def _ids(self, rows: list[int]) -> Any:
        ids = (
            self.ledger_id[row] if one.end > one.begin else 0
            for row, one in zip(rows, self.topics, strict=True)
        )
        return pa.array(ids, pa.int64())

    def table(self) -> pa.Table:
        """The same columns, not copied. Nothing may be added while it is there."""

        def of(kind: Any, values: array[int] | bytearray) -> Any:
            return pa.Array.from_buffers(kind, len(self), [None, pa.py_buffer(values)])

        return pa.table(
            {
                "topic": of(pa.int32(), self.topic),
                "ledger_id": of(pa.int64(), self.ledger_id),
                "entries": of(pa.int64(), self.entries),
                "is_open": of(pa.uint8(), self.is_open),
                "has_uid": of(pa.uint8(), self.has_uid),
                "uid": of(pa.binary(UID_BYTES), self.uid),
            }
        )
