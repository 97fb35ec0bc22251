"""The publication records of a topic: the lag of every later release runs from them.

Owns: which publication counts. A context that was taken out and published again is another
publication: only a record of the very context that stands now, by its timestamp, lets its lag run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from tiering_assets.ground.evidence import counts_for
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.models import Publication, PublishedLedger
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.offload_context import OffloadContext

Pair = tuple[int, UUID]
PublicationKeys = Mapping[str, Sequence[str]]
_LIKELY_MAX = 5  # records in which a context's confirmation is looked for first


@dataclass(frozen=True, slots=True)
class Publications:
    """Every confirmed publication of one topic, oldest first."""

    records: Sequence[Stored[Publication]]

    def of(self, ledger_id: int, uid: UUID) -> list[Stored[Publication]]:
        """All confirmations of this attempt, whether or not what they confirmed still stands."""
        return [one for one in self.records if _entry(one, ledger_id, uid) is not None]

    def newest(self, ledger_id: int, uid: UUID) -> Stored[Publication] | None:
        return next(iter(self.of(ledger_id, uid)[::-1]), None)

    def counted(self, ledger_id: int, context: OffloadContext | None) -> Stored[Publication] | None:
        """The first confirmation of the context that stands now; None without one."""
        if context is None or not context.complete:
            return None
        for stored in self.records:
            entry = _entry(stored, ledger_id, context.uid)
            if entry is not None and counts_for(
                context.timestamp_ms, entry.context_ms, confirmed_at=stored.record.confirmed_at
            ):
                return stored
        return None

    def replaced_at(self, ledger_id: int, uid: UUID, contexts: Collection[UUID]) -> datetime | None:
        """When the publication of another attempt, which the topic names now, was recorded.

        By the store's clock; `contexts` are all that the topic's node names.
        """
        newest = {
            entry.uid: one.stored_at
            for one in self.records  # the newest last
            for entry in one.record.ledgers
            if entry.ledger_id == ledger_id and entry.uid != uid and entry.uid in contexts
        }
        return min(newest.values(), default=None)

    @property
    def pairs(self) -> set[Pair]:
        return {(one.ledger_id, one.uid) for p in self.records for one in p.record.ledgers}


def _entry(stored: Stored[Publication], ledger_id: int, uid: UUID) -> PublishedLedger | None:
    wanted = (ledger_id, uid)
    return next((p for p in stored.record.ledgers if (p.ledger_id, p.uid) == wanted), None)


def recorded_publications(stack: Stack, ml_name: str) -> Publications:
    """All of a topic as they lie there now: one listing, and one request each, some at a time."""
    return Publications(_read(stack, stack.book.keys(keys.publications_of(ml_name))))


def surveyed_publications(
    stack: Stack, ml_name: str, listed: PublicationKeys | None = None
) -> Publications:
    """The same for a survey, which decides nothing: what this run has read is not read again.

    They are written once and for ever. One that cannot be read is told and confirms nothing.
    `listed` is the listing of all topics, where there is one.
    """
    prefix = keys.publications_of(ml_name)
    wanted = stack.book.keys(prefix) if listed is None else listed.get(prefix, ())
    found = stack.memory.ask_final(wanted, lambda new: _ask_readable(stack, new))
    return Publications([stored for stored in found.values() if stored is not None])


def list_publications(stack: Stack) -> PublicationKeys:
    """The keys of all topics' publications, by what they begin with: one request per thousand."""
    found: dict[str, list[str]] = defaultdict(list)
    for key in stack.book.keys(keys.PUBLICATIONS):
        found[key[: key.rindex("/") + 1]].append(key)
    return found


def publication_of(stack: Stack, ml_name: str, listed: LedgerInfo | None) -> Publications:
    """The one that counts for a ledger's context; all of the topic where that is not easily found.

    A record is written right after its context, so that those stored nearest to it are read first:
    nearly always one request, however often the topic was published to.
    """
    context = None if listed is None else listed.offload
    if listed is None or context is None or not context.complete:
        return Publications(())
    written_at = datetime.fromtimestamp(context.timestamp_ms / 1000, UTC)
    stored_at = stack.book.stored_at(keys.publications_of(ml_name))
    for key in sorted(stored_at, key=lambda key: abs(stored_at[key] - written_at))[:_LIKELY_MAX]:
        found = Publications(_read(stack, [key]))
        if found.counted(listed.ledger_id, context) is not None:
            return found
    return recorded_publications(stack, ml_name)


def _read(stack: Stack, wanted: Sequence[str]) -> list[Stored[Publication]]:
    return [stored for stored in _ask(stack, wanted) if stored is not None]


def _ask_readable(stack: Stack, wanted: Sequence[str]) -> Sequence[Stored[Publication] | None]:
    def tell(_key: str, error: FormatError) -> None:
        stack.narrate(f"a publication confirms nothing: {error}")

    return stack.in_parallel(lambda key: stack.book.read_readable(Publication, key, tell), wanted)


def _ask(stack: Stack, wanted: Sequence[str]) -> Sequence[Stored[Publication] | None]:
    return stack.in_parallel(lambda key: stack.book.read(Publication, key), wanted)
