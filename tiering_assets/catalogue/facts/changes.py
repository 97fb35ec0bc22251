"""What pages change about ledgers, and the whole new row of each ledger that they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from tiering_assets.catalogue.facts.known_ledger import (
    KnownAttempt,
    KnownLedger,
    facts_of_row,
    joined,
    row_of_ledger,
    without,
)
from tiering_assets.catalogue.facts.read_pages import ReadPages, written_on
from tiering_assets.catalogue.facts.record_facts import (
    LEAVES,
    folder_of,
    ledger_and_attempt,
    told_by,
)
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name

_OF_LOOK: Final = frozenset({"page", "turn", "seen_at", "ml_version"})
"""Columns that tell of the look, not of the ledger."""


class LedgerChange(Protocol):
    """Something new about a ledger, by a page or by a scan that was made when it was the last."""

    @property
    def ledger_id(self) -> int: ...
    @property
    def page(self) -> int: ...
    def apply(self, facts: KnownLedger) -> KnownLedger: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a record says of an attempt (`uid` is empty for the ledger alone) and of its ledger.

    `leaves` are the facts of the attempt that are not known any more.
    """

    ledger_id: int
    page: int
    uid: str
    said: KnownAttempt = field(default_factory=KnownAttempt)
    of_ledger: Mapping[str, Any] = field(default_factory=dict)
    leaves: tuple[str, ...] = ()

    def apply(self, facts: KnownLedger) -> KnownLedger:
        if self.leaves:
            return without(facts, self.uid, self.leaves)
        return replace(joined(facts, self.uid, self.said), **self.of_ledger)


def changes_of(batch: ReadPages) -> Iterator[Change]:
    """In the order of the pages."""
    for page in batch.readable:
        if page.phase == "gone":
            yield from filter(None, (_gone(page.number, one.key) for one in page.records))
        for named in written_on(page):
            found = batch.found.get(named.key)
            if found is None or found.stored is None:
                continue
            for ledger_id, uid, said, of_ledger in told_by(found.stored):
                yield Change(
                    ledger_id=ledger_id,
                    page=page.number,
                    uid=uid,
                    said=said,
                    of_ledger=of_ledger,
                )


def _gone(page: int, key: str) -> Change | None:
    ledger_id, uid = ledger_and_attempt(key)
    folder = folder_of(key)
    if ledger_id is None:
        return None
    if folder == "holds":
        return Change(ledger_id=ledger_id, page=page, uid="", of_ledger={"held": None})
    if uid is None or folder not in LEAVES:
        return None
    return Change(ledger_id=ledger_id, page=page, uid=uid, leaves=LEAVES[folder])


def changed_rows(
    changes: Iterable[LedgerChange], before: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The new row of each ledger of which something is different; `before` are the newest rows."""
    old = {row["ledger_id"]: row for row in before}
    now = {ledger_id: facts_of_row(row) for ledger_id, row in old.items()}
    pages = dict[int, int]()
    for one in changes:
        facts = now.get(one.ledger_id, KnownLedger(ledger_id=one.ledger_id))
        now[one.ledger_id], pages[one.ledger_id] = one.apply(facts), one.page
    for ledger_id, page in sorted(pages.items()):
        row = _row(now[ledger_id], page)
        if _told(row) != _told(old.get(ledger_id, _row(KnownLedger(ledger_id=ledger_id), page))):
            yield row


def _row(facts: KnownLedger, page: int) -> dict[str, Any]:
    return {**row_of_ledger(facts, page=page), **topic_columns(facts.topic)}


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _OF_LOOK}


def topic_columns(ml_name: str | None) -> dict[str, Any]:
    """What a topic's name gives; all null for a name that is none of Pulsar's."""
    try:
        found = None if ml_name is None else parse_managed_ledger_name(ml_name)
    except FormatError:
        found = None
    if found is None:
        return {"tenant": None, "namespace": None, "partition": None}
    return {
        "tenant": found.tenant,
        "namespace": found.full_namespace,
        "partition": found.partition,
    }
