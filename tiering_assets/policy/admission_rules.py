"""Which ledgers a run gets, and when a ledger that a run did not bring further is tried again.

Owns: a batch is bounded by ledgers and by bytes, keeps the ledgers of a topic together where they
fit (they share one reload), and never splits a ledger. A ledger that an unfinished run has is in no
other batch, and each run that leaves it where it was doubles the wait for the next one. Dagster's
list of runs is where tries are counted, so nothing is lost with it but patience.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import groupby

from tiering_assets.resources.settings import AutoSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A ledger that policy wants a run to take up. `bytes` of payload."""

    ledger_id: int
    ml_name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The ledgers of one run, in the order in which they were admitted."""

    ledgers: tuple[Ready, ...]

    @property
    def ledger_ids(self) -> tuple[int, ...]:
        return tuple(sorted(one.ledger_id for one in self.ledgers))

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.ledgers)

    def full(self, limits: AutoSettings) -> bool:
        """Half of either bound: what keeps a topic together may leave room."""
        return (
            2 * len(self.ledgers) >= limits.batch_ledgers_max
            or 2 * self.bytes >= limits.batch_bytes_max
        )

    @property
    def name(self) -> str:
        """Stable for the same ledgers; the run key adds how many runs of this name there were."""
        return sha256(",".join(map(str, self.ledger_ids)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What runs of one job did lately: who is at work, and how often and when ledgers were
    tried.
    """

    running: frozenset[int] = frozenset()
    unfinished_runs: int = 0
    queued_runs: int = 0
    tries: Mapping[int, int] = field(default_factory=dict)
    ended_at: Mapping[int, datetime] = field(default_factory=dict)

    def next_try(self, ledger_id: int, limits: AutoSettings) -> datetime | None:
        """When the ledger may be taken up again; None for one that no finished run had."""
        ended = self.ended_at.get(ledger_id)
        if ended is None:
            return None
        return ended + retry_after(self.tries.get(ledger_id, 1), limits)

    def may_try(self, ledger_id: int, limits: AutoSettings, *, now: datetime) -> bool:
        if ledger_id in self.running:
            return False
        at = self.next_try(ledger_id, limits)
        return at is None or at <= now


def retry_after(tries: int, limits: AutoSettings) -> timedelta:
    """The wait after so many runs: retry_first_s, then twice that, at most retry_max_s."""
    doublings = min(max(tries - 1, 0), 32)
    return timedelta(seconds=min(limits.retry_first_s * 2**doublings, limits.retry_max_s))


def worth_asking(batches: Sequence[Batch], limits: AutoSettings, *, queued: int) -> list[Batch]:
    """Batches to ask for now. While a run waits for its turn a small one would wait behind it.

    Left for a later tick it grows, and ten ledgers cost hardly more than one: a run, a reload.
    """
    if queued == 0:
        return [*batches]
    return [one for one in batches if one.full(limits)]


def pack(ready: Iterable[Ready], limits: AutoSettings, *, runs_max: int) -> list[Batch]:
    """Batches of at most the settings' ledgers and bytes, topics in the order given, ids in order.

    What does not fit `runs_max` batches is left for later. A topic starts a new batch where it
    would not fit the rest of one, but fits a whole one.
    """
    batches: list[Batch] = []
    current: list[Ready] = []

    def close() -> None:
        if current:
            batches.append(Batch(tuple(current)))
            current.clear()

    for part in _parts(ready, limits):
        if current and not _fits([*current, *part], limits):
            close()
        if len(batches) >= runs_max:
            return batches
        current.extend(part)
    close()
    return batches[:runs_max]


def _parts(ready: Iterable[Ready], limits: AutoSettings) -> Iterator[list[Ready]]:
    """Topics, the larger ones cut into parts that fit a batch each."""
    for _name, group in groupby(ready, key=lambda one: one.ml_name):
        part: list[Ready] = []
        for one in sorted(group, key=lambda one: one.ledger_id):
            if part and not _fits([*part, one], limits):
                yield part
                part = []
            part.append(one)
        if part:
            yield part


def _fits(ledgers: Sequence[Ready], limits: AutoSettings) -> bool:
    return len(ledgers) <= limits.batch_ledgers_max and (
        len(ledgers) == 1 or sum(one.bytes for one in ledgers) <= limits.batch_bytes_max
    )
