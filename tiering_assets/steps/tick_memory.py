"""What sensors remember of the records between two ticks, so that a tick does not list them all.

Owns: records are only ever added, so what was once seen stays true: a publication that is recorded, a
release that is recorded, a copy that has no certificate although a topic names it. Where little is
asked, one ledger's keys are listed at a time; beyond SINGLES_MAX all of a kind at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from tiering_assets.records import keys
from tiering_assets.records.models import Publication
from tiering_assets.steps.stack import Stack

Pair = tuple[int, UUID]
SINGLES_MAX = 200
_REMEMBERED_MAX = 2_000_000


@dataclass(slots=True)
class TickMemory:
    """Of one process and one cluster. `foreign` are published copies that are not ours."""

    foreign: set[Pair] = field(default_factory=set)
    confirmed: set[Pair] = field(default_factory=set)
    released: set[Pair] = field(default_factory=set)
    publications: set[str] = field(default_factory=set)

    def clear(self) -> None:
        for known in (self.foreign, self.confirmed, self.released, self.publications):
            known.clear()

    def trim(self) -> None:
        """Forget everything when it is too much; it is read again."""
        if len(self.foreign) + len(self.confirmed) + len(self.released) > _REMEMBERED_MAX:
            self.clear()

    def unconfirmed(self, stack: Stack, ml_name: str, pairs: Iterable[Pair]) -> set[Pair]:
        """Of these, published ones, those without a publication record of their topic."""
        left = set(pairs) - self.confirmed - self.foreign
        if not left:
            return left
        for key in stack.book.keys(keys.publications_of(ml_name)):
            if key not in self.publications:
                record = stack.book.require(Publication, key).record
                self.confirmed.update((one.ledger_id, one.uid) for one in record.ledgers)
                self.publications.add(key)
        return left - self.confirmed

    def unreleased(self, stack: Stack, pairs: Iterable[Pair]) -> set[Pair]:
        """Of these, marked and gone from BookKeeper, those without a release record."""
        left = set(pairs) - self.released - self.foreign
        prefixes: Iterable[str] = ["releases/"]
        if len(left) <= SINGLES_MAX:
            prefixes = [keys.releases_of(ledger_id) for ledger_id, _uid in left]
        for prefix in prefixes:
            self.released.update(
                keys.pair_of(key) for key in stack.book.keys(prefix) if keys.is_release(key)
            )
        return left - self.released


class Certified:
    """Which attempts have a certificate, for one tick."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._asked = 0
        self._all: dict[int, set[UUID]] | None = None

    def attempts(self, ledger_id: int) -> set[UUID]:
        if self._all is None and self._asked >= SINGLES_MAX:
            self._all = {}
            for one, uid in self._stack.book.pairs("certificates/"):
                self._all.setdefault(one, set()).add(uid)
        if self._all is not None:
            return self._all.get(ledger_id, set())
        self._asked += 1
        return {uid for _, uid in self._stack.book.pairs(keys.certificates_of(ledger_id))}
