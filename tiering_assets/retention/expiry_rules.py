"""What retention and TTL let go of a topic, and when: the broker's own rule, from metadata alone.
Pure.

Owns: nothing is called overdue that a broker which loads the topic would not trim. Source: Pulsar
4.0 ManagedLedgerImpl.internalTrimLedgers and PersistentMessageExpiryMonitor. From the oldest ledger
on, each one that every durable cursor is past goes if it was closed longer than the retention time
ago, or if what is left without it is still at least the retention size. Either limit alone is
enough; -1 never lets go, and 0 for both lets go of all that is consumed. The first ledger that must
stay ends the walk, and so does the one that is written to.

Where metadata says less than a broker knows the answer is the cautious one: a cursor whose position
lies elsewhere keeps everything, and a ledger without a closing time ends the walk wherever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tiering_assets.resources.metastore.ledger_info import Position

_MINUTE_MS = 60_000
_SECOND_MS = 1000
_MIB = 1024 * 1024


class Kept(StrEnum):
    """What keeps a ledger; the first that is true, in this order."""

    OPEN = "open"
    NOT_CONSUMED = "not consumed"
    OVERDUE = "overdue"
    RETAINED = "in retention"
    BEHIND = "behind an older ledger"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryLimits:
    """Retention and TTL in force, as Pulsar has them: negative retention is unlimited, TTL 0
    none.
    """

    minutes: int
    megabytes: int
    ttl_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgingLedger:
    """`closed_at_ms` is None for the ledger that is written to, whose `bytes` may be unknown: 0.

    `closes_at_load` is the last ledger of a topic that nobody has loaded, closed in BookKeeper: the
    broker that loads the topic lists it as closed at that moment, so its time begins only then.
    """

    ledger_id: int
    entries: int
    bytes: int
    closed_at_ms: int | None
    closes_at_load: bool = False


@dataclass(frozen=True, slots=True)
class DurableCursor:
    """A subscription: all up to `mark_delete` is consumed; None where metadata does not tell."""

    name: str
    mark_delete: Position | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerExpiry:
    """`due_at_ms` is when retention time alone lets go of a RETAINED ledger; None is never or
    unknown.
    """

    ledger_id: int
    bytes: int
    kept: Kept
    due_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TtlBacklog:
    """Closed ledgers with messages of one subscription that are all past their TTL, yet not
    expired.

    At least so many: messages of later ledgers may be past it, too. `entries` were not consumed.
    """

    subscription: str
    ledgers: int
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicExpiry:
    """All of a topic, oldest first. `kept_by` are the cursors that keep what is not consumed."""

    ledgers: tuple[LedgerExpiry, ...]
    kept_by: tuple[str, ...]
    ttl: tuple[TtlBacklog, ...]

    def of(self, kept: Kept) -> tuple[LedgerExpiry, ...]:
        return tuple(one for one in self.ledgers if one.kept is kept)

    @property
    def overdue(self) -> tuple[LedgerExpiry, ...]:
        return self.of(Kept.OVERDUE)

    @property
    def overdue_bytes(self) -> int:
        return sum(one.bytes for one in self.overdue)

    @property
    def next_due_ms(self) -> int | None:
        """When the oldest ledger that only retention keeps goes by its age; None is never or
        unknown.
        """
        retained = self.of(Kept.RETAINED)
        return retained[0].due_at_ms if retained else None


def topic_expiry(
    ledgers: Iterable[AgingLedger],
    cursors: Sequence[DurableCursor],
    limits: ExpiryLimits,
    *,
    now_ms: int,
) -> TopicExpiry:
    """Judge every ledger of one topic. `now_ms` is Unix time in milliseconds."""
    oldest_first = sorted(ledgers, key=lambda one: one.ledger_id)
    bound = _consumed_below(oldest_first, cursors)
    total = sum(one.bytes for one in oldest_first)
    found: list[LedgerExpiry] = []
    taken, walking = 0, True
    for one in oldest_first:
        due_at = None
        if one.closed_at_ms is None:
            kept, walking = Kept.OPEN, False
        elif bound is not None and one.ledger_id >= bound:
            kept, walking = Kept.NOT_CONSUMED, False
        else:
            taken += one.bytes
            gone = _expired(one, limits, now_ms) or _over_quota(total - taken, limits)
            if walking and gone:
                kept = Kept.OVERDUE
            else:
                kept = Kept.BEHIND if gone else Kept.RETAINED
                due_at = None if gone else _due_at(one, limits)
                walking = False
        found.append(
            LedgerExpiry(ledger_id=one.ledger_id, bytes=one.bytes, kept=kept, due_at_ms=due_at)
        )
    return TopicExpiry(
        ledgers=tuple(found),
        kept_by=_slowest(cursors) if any(x.kept is Kept.NOT_CONSUMED for x in found) else (),
        ttl=tuple(_ttl_backlogs(oldest_first, cursors, limits.ttl_s, now_ms)),
    )


def _expired(ledger: AgingLedger, limits: ExpiryLimits, now_ms: int) -> bool:
    if limits.minutes < 0 or ledger.closed_at_ms is None:
        return False
    if ledger.closes_at_load:
        return limits.minutes == 0  # a millisecond after the load
    return now_ms - ledger.closed_at_ms > limits.minutes * _MINUTE_MS


def _over_quota(left_bytes: int, limits: ExpiryLimits) -> bool:
    return limits.megabytes >= 0 and left_bytes >= limits.megabytes * _MIB


def _due_at(ledger: AgingLedger, limits: ExpiryLimits) -> int | None:
    if limits.minutes < 0 or ledger.closed_at_ms is None or ledger.closes_at_load:
        return None
    return ledger.closed_at_ms + limits.minutes * _MINUTE_MS + 1


def _consumed_below(ledgers: Sequence[AgingLedger], cursors: Sequence[DurableCursor]) -> int | None:
    """The first ledger id that a cursor still needs; None when there is no durable cursor."""
    if not cursors:
        return None
    positions = [cursor.mark_delete for cursor in cursors]
    known = [position for position in positions if position is not None]
    if len(known) < len(positions):
        return 0
    slowest = min(known, key=_order)
    at = next((one for one in ledgers if one.ledger_id == slowest.ledger_id), None)
    consumed = at is not None and at.entries == slowest.entry_id + 1
    return slowest.ledger_id + int(consumed)


def _slowest(cursors: Sequence[DurableCursor]) -> tuple[str, ...]:
    """Names of the cursors that are furthest behind; those of unknown position before all
    others.
    """
    unknown = [cursor.name for cursor in cursors if cursor.mark_delete is None]
    if unknown:
        return tuple(sorted(unknown))
    known = [(cursor.mark_delete, cursor.name) for cursor in cursors if cursor.mark_delete]
    first = min(_order(position) for position, _name in known)
    return tuple(sorted(name for position, name in known if _order(position) == first))


def _ttl_backlogs(
    ledgers: Sequence[AgingLedger],
    cursors: Sequence[DurableCursor],
    ttl_s: int,
    now_ms: int,
) -> Iterable[TtlBacklog]:
    """From each cursor's ledger on, closed ledgers whose newest message is past its TTL."""
    for cursor in sorted(cursors, key=lambda one: one.name) if ttl_s > 0 else ():
        at = cursor.mark_delete
        if at is None:
            continue
        entries = bytes_ = count = 0
        for one in ledgers:
            if one.ledger_id < at.ledger_id:
                continue
            if one.closed_at_ms is None or one.closes_at_load:
                break
            if now_ms <= one.closed_at_ms + ttl_s * _SECOND_MS:
                break
            left = one.entries - (at.entry_id + 1 if one.ledger_id == at.ledger_id else 0)
            if left > 0:
                count, entries, bytes_ = count + 1, entries + left, bytes_ + one.bytes
        if count:
            yield TtlBacklog(subscription=cursor.name, ledgers=count, entries=entries, bytes=bytes_)


def _order(position: Position) -> tuple[int, int]:
    return position.ledger_id, position.entry_id
