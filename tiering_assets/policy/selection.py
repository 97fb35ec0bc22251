"""Which ledgers of a topic are due for offload: the broker's own rule, without waiting for it.

Owns: with default rules the answer is what the broker's automatic offload would take now. It walks
newest to oldest with a running sum that includes every closed ledger, offloaded or not; one that is
not offloaded is taken where the sum is above the byte threshold or where the ledger was closed at
least so many seconds ago. What it takes, it takes oldest first.
Source: ManagedLedgerImpl.maybeOffload, Pulsar 4.0.

The broker runs it when a ledger rolls over, so only for loaded topics, and never takes the last
ledger of a terminated topic, whose closing time stays unset. Both are rules here. Whether a ledger
may be copied at all is decided in eligibility.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MS_PER_SECOND = 1000


class Threshold(StrEnum):
    BYTES = "bytes"
    SECONDS = "seconds"


class NotSelected(StrEnum):
    """Why a ledger is not selected; the first that applies, in this order."""

    OFFLOADED = "already offloaded"
    OPEN = "open"
    TERMINATED = "last ledger of a terminated topic"
    ZERO_LENGTH = "zero length"
    NOT_LOADED = "its topic is not loaded"
    NO_THRESHOLD = "no threshold is set"
    BELOW = "below threshold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Bytes of newest closed data to keep, and seconds since closing. None or negative is off."""

    bytes: int | None = None
    seconds: int | None = None

    @property
    def off(self) -> bool:
        return all(limit is None or limit < 0 for limit in (self.bytes, self.seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Where we may differ from a broker.

    `terminated_last`: a terminated topic's last ledger counts and can be selected. A broker: no.
    `unloaded_topics`: select when the topic is not known to be loaded. A broker: no.
    `zero_length`: select ledgers without payload bytes. A broker: yes.
    """

    terminated_last: bool = False
    unloaded_topics: bool = True
    zero_length: bool = True


BROKERS_RULES = Rules(terminated_last=False, unloaded_topics=False, zero_length=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLedger:
    """One ledger of a topic's list. `closed_at_ms` None is one that the topic may still write to.

    `terminated`: the last ledger of a terminated topic, which the list shows as open. Size and an
    upper bound of its closing time then come from BookKeeper and from the list's node.
    """

    ledger_id: int
    bytes: int
    closed_at_ms: int | None
    offloaded: bool
    terminated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """About one ledger. Selected where `by` names at least one threshold.

    `bytes_from_here` is the running sum, this ledger included; `age_ms` the time since closing,
    which is negative where clocks differ. Both are None for a ledger that is not counted.
    """

    ledger_id: int
    by: tuple[Threshold, ...]
    why_not: NotSelected | None
    bytes_from_here: int | None
    age_ms: int | None

    @property
    def selected(self) -> bool:
        return bool(self.by)


def select_ledgers(
    ledgers: Iterable[ListedLedger],
    thresholds: Thresholds,
    *,
    now_ms: int,
    loaded: bool | None = None,
    rules: Rules | None = None,
) -> tuple[Selection, ...]:
    """One verdict for each ledger, oldest first. `loaded` None is unknown, which is not loaded."""
    rules = Rules() if rules is None else rules
    verdicts: list[Selection] = []
    running = 0
    for ledger in sorted(ledgers, key=lambda one: one.ledger_id, reverse=True):
        closed_at_ms = ledger.closed_at_ms
        if ledger.terminated and not rules.terminated_last:
            closed_at_ms = None
        by: tuple[Threshold, ...] = ()
        age_ms = None
        if closed_at_ms is not None:
            running += ledger.bytes
            age_ms = now_ms - closed_at_ms
            by = _reached(thresholds, running, age_ms)
        counted = closed_at_ms is not None
        why_not = _why_not(ledger, thresholds, rules, counted=counted, loaded=loaded, reached=by)
        verdicts.append(
            Selection(
                ledger_id=ledger.ledger_id,
                by=() if why_not is not None else by,
                why_not=why_not,
                bytes_from_here=running if counted else None,
                age_ms=age_ms,
            )
        )
    return tuple(reversed(verdicts))


def due_at_ms(verdicts: Iterable[Selection], thresholds: Thresholds, now_ms: int) -> int | None:
    """When the first ledger that is below its thresholds is old enough; None where age does not
    count.
    """
    seconds = thresholds.seconds
    if seconds is None or seconds < 0:
        return None
    waits = [
        seconds * MS_PER_SECOND - one.age_ms
        for one in verdicts
        if one.why_not is NotSelected.BELOW and one.age_ms is not None
    ]
    return now_ms + min(waits) if waits else None


def describe(verdict: Selection, thresholds: Thresholds) -> str:
    """The decision with its numbers, for people."""
    if verdict.why_not not in (None, NotSelected.BELOW):
        return str(verdict.why_not)
    said = []
    if thresholds.bytes is not None and thresholds.bytes >= 0:
        sign = ">" if Threshold.BYTES in verdict.by else "<="
        said.append(f"{verdict.bytes_from_here} bytes from here on {sign} {thresholds.bytes}")
    if thresholds.seconds is not None and thresholds.seconds >= 0:
        sign = ">=" if Threshold.SECONDS in verdict.by else "<"
        age_s = (verdict.age_ms or 0) / MS_PER_SECOND
        said.append(f"closed {age_s:.3f} s ago {sign} {thresholds.seconds} s")
    return f"{verdict.why_not or 'selected'}: {', '.join(said)}"


def _reached(thresholds: Thresholds, running: int, age_ms: int) -> tuple[Threshold, ...]:
    kept, seconds = thresholds.bytes, thresholds.seconds
    return tuple(
        name
        for name, reached in (
            (Threshold.BYTES, kept is not None and 0 <= kept < running),
            (
                Threshold.SECONDS,
                seconds is not None and seconds >= 0 and age_ms >= seconds * MS_PER_SECOND,
            ),
        )
        if reached
    )


def reached_in_columns(*, kept: Any, kept_ms: Any, running: Any, age_ms: Any) -> Any:
    """Whether either is reached, of arrays with a value for each ledger; below 0 is off."""
    return ((kept >= 0) & (kept < running)) | ((kept_ms >= 0) & (age_ms >= kept_ms))


def _why_not(
    ledger: ListedLedger,
    thresholds: Thresholds,
    rules: Rules,
    *,
    counted: bool,
    loaded: bool | None,
    reached: tuple[Threshold, ...],
) -> NotSelected | None:
    if ledger.offloaded:
        return NotSelected.OFFLOADED
    if not counted:
        return NotSelected.TERMINATED if ledger.terminated else NotSelected.OPEN
    if ledger.bytes == 0 and not rules.zero_length:
        return NotSelected.ZERO_LENGTH
    if loaded is not True and not rules.unloaded_topics:
        return NotSelected.NOT_LOADED
    if thresholds.off:
        return NotSelected.NO_THRESHOLD
    return None if reached else NotSelected.BELOW
