"""What sensors remember of the records between two ticks, so that a tick does not list them all.

Owns: records are only ever added, so what was once seen stays true: a publication that is recorded,
a release that is recorded, a copy that has no certificate although a topic names it. Where little
is asked, one ledger's keys are listed at a time; beyond SINGLES_MAX all of a kind at once. Releases
and publications of all times are listed once in the life of a process, so many a tick (catch_up).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from tiering_assets.automation.resting import Resting
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.models import Publication

Pair = tuple[int, UUID]
SINGLES_MAX = 50  # requests; a listing of all is one per thousand
NOMINATED_MAX = 5000  # sixteen at a time
KEYS_A_TICK = 100_000  # of releases, a hundred requests: a few seconds
PUBLICATIONS_A_TICK = 1000  # a request each, some at a time
_REMEMBERED_MAX = 2_000_000
_AWAKE_MAX = 100_000


@dataclass(slots=True)
class _Listing:
    """How far the keys under a prefix were listed; `to` is the last of them, "" before the
    first.
    """

    prefix: str
    to: str = ""
    whole: bool = False

    def go_on(self, stack: Stack, most: int | None) -> Iterator[str]:
        """So many keys more; what was given out is not listed again, though a later request
        fails.
        """
        if self.whole:
            return
        listed = stack.book.keys_after(self.prefix, self.to)
        for key in islice(listed, most):
            self.to = key
            yield key
        self.whole = next(listed, None) is None


@dataclass(slots=True)
class TickMemory:
    """Of one process and one cluster. `foreign` are published copies that are not ours.

    `awake` is when topics were last asked whether anybody has them loaded, on a monotonic clock.
    """

    foreign: set[Pair] = field(default_factory=set)
    awake: dict[str, float] = field(default_factory=dict)
    confirmed: set[Pair] = field(default_factory=set)
    released: set[Pair] = field(default_factory=set)
    publications: set[str] = field(default_factory=set)
    resting: Resting = field(default_factory=Resting)
    _releases: _Listing = field(default_factory=lambda: _Listing(keys.RELEASES))
    _publications: _Listing = field(default_factory=lambda: _Listing(keys.PUBLICATIONS))

    def clear(self) -> None:
        for known in (self.foreign, self.confirmed, self.released, self.publications):
            known.clear()
        self.awake.clear()
        self.resting = Resting()
        self._releases = _Listing(keys.RELEASES)
        self._publications = _Listing(keys.PUBLICATIONS)

    def catch_up(self, stack: Stack, *, keys_max: int | None = KEYS_A_TICK) -> None:
        """Go on listing the releases of before; of `keys_max` keys at most."""
        for key in self._releases.go_on(stack, keys_max):
            if keys.is_release(key):
                self.released.add(keys.pair_of(key))

    def catch_up_publications(self, stack: Stack, *, most: int = PUBLICATIONS_A_TICK) -> None:
        """Go on reading the publications of before, so that no topic needs a listing of its own.

        One that cannot be read is left to its topic, which fails alone.
        """
        listed = list(self._publications.go_on(stack, most))
        found = stack.in_parallel(lambda key: _publication(stack, key), listed)
        for key, record in zip(listed, found, strict=True):
            if record is not None:
                self._remember(key, record)

    def _remember(self, key: str, record: Publication) -> None:
        self.confirmed.update((one.ledger_id, one.uid) for one in record.ledgers)
        self.publications.add(key)

    def trim(self) -> None:
        """Forget everything when it is too much; it is read again."""
        if len(self.foreign) + len(self.confirmed) + len(self.released) > _REMEMBERED_MAX:
            self.clear()
        if len(self.awake) > _AWAKE_MAX:
            self.awake.clear()

    def unconfirmed(self, stack: Stack, ml_name: str, pairs: Iterable[Pair]) -> set[Pair]:
        """Of these, published ones, those without a publication record of their topic."""
        left = set(pairs) - self.confirmed - self.foreign
        if not left:
            return left
        for key in stack.book.keys(keys.publications_of(ml_name)):
            if key not in self.publications:
                self._remember(key, stack.book.require(Publication, key).record)
        return left - self.confirmed

    def unreleased(
        self, stack: Stack, pairs: Iterable[Pair], *, nominated: bool = False
    ) -> set[Pair]:
        """Of these, marked and gone from BookKeeper, those without a release record.

        None of them before catch_up has listed all: they wait for a later tick. Not so those that
        are nominated, which are few. Beyond SINGLES_MAX the others wait, too.
        """
        left = set(pairs) - self.released - self.foreign
        if not nominated and not self._releases.whole:
            return set()
        asked = sorted(left)[:SINGLES_MAX]
        found = stack.in_parallel(lambda pair: stack.book.exists(keys.release(*pair)), asked)
        self.released.update(p for p, there in zip(asked, found, strict=True) if there)
        return set(asked) - self.released


def _publication(stack: Stack, key: str) -> Publication | None:
    stored = stack.book.read_readable(Publication, key, lambda _key, _error: None)
    return None if stored is None else stored.record


class CertifiedAttempts:
    """Which attempts have a certificate, for one tick."""

    def __init__(self, stack: Stack, *, nominated: bool = False) -> None:
        """Of ledgers that are `nominated` many are asked about one by one: they are few of all."""
        self._stack = stack
        self._singles_max = NOMINATED_MAX if nominated else SINGLES_MAX
        self._of: dict[int, set[UUID]] = {}
        self._all = False

    def ask(self, ledger_ids: Iterable[int]) -> None:
        """Ask about these ledgers at once, so that `attempts` need not one after the other."""
        if self._all:
            return
        new = [i for i in ledger_ids if i not in self._of]
        if len(self._of) + len(new) > self._singles_max:
            for ledger_id, uid in self._stack.book.pairs("certificates/"):
                self._of.setdefault(ledger_id, set()).add(uid)
            self._all = True
            return
        found = self._stack.in_parallel(
            lambda i: {uid for _, uid in self._stack.book.pairs(keys.certificates_of(i))}, new
        )
        self._of.update(zip(new, found, strict=True))

    def attempts(self, ledger_id: int) -> set[UUID]:
        self.ask([ledger_id])
        return self._of.get(ledger_id, set())
