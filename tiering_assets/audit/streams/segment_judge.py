"""Everything that is wrong with one segment, and between it and the one behind it. Pure.

Owns: what cannot be read is a finding already, and nothing that hangs on it is judged. Segments
come as they are listed, the newest first, so a judge keeps the link of one segment and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from tiering_assets.audit.streams.certified import contradictions
from tiering_assets.audit.streams.links import (
    attempt_faults,
    failed_faults,
    given_up_faults,
    link_faults,
    offloaded_faults,
    proven_faults,
)
from tiering_assets.audit.streams.stream_faults import Lain, StreamFault, StreamWrong, missing
from tiering_assets.audit.streams.tiling import Told, end_of, follow_faults, range_faults
from tiering_assets.records import keys
from tiering_assets.records.stream_models import SegmentAssigned, StreamClosed

_NO_RANGES: Final[Told] = (None, "ranges of a segment", "at least one", "none")
_Faults = Callable[[Lain, Lain, int | None], Iterator[StreamFault]]


@dataclass(slots=True, kw_only=True)
class SegmentRecords:
    """What lies below one number of a stream. `listed` has the keys of what cannot be read, too."""

    prefix: str
    number: int
    listed: set[str] = field(default_factory=set)
    link: Lain | None = None
    offloaded: Lain | None = None
    given_up: Lain | None = None
    attempts: dict[UUID, Lain] = field(default_factory=dict)
    failed: dict[UUID, Lain] = field(default_factory=dict)

    def key(self, suffix: str) -> str:
        return f"{keys.segment_within(self.prefix, self.number)}{suffix}"

    def attempt_key(self, uid: UUID) -> str:
        return self.key(f"{keys.ATTEMPTS}{uid}.json")

    @property
    def assigned(self) -> Lain | None:
        """The link, where it is an assignment with ranges."""
        link = self.link
        if link is None or not isinstance(link.record, SegmentAssigned):
            return None
        return link if link.record.ranges else None

    @property
    def ledger_id(self) -> int | None:
        """Its first ledger: what its findings name."""
        if self.assigned is not None:
            return int(self.assigned.record.ranges[0].ledger_id)
        proof = self.offloaded
        return int(proof.record.ledgers[0].ledger_id) if proof and proof.record.ledgers else None

    @property
    def ends(self) -> bool:
        """Whether the stream ends where this segment would be."""
        return self.link is not None and isinstance(self.link.record, StreamClosed)

    @property
    def is_done(self) -> bool:
        return self.key(keys.OFFLOADED) in self.listed or self.key(keys.GIVEN_UP) in self.listed


class StreamJudge:
    """Of one stream: `segment` for each number that is listed, the newest first, then `end`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._number: int | None = None
        self._link: Lain | None = None

    def segment(self, found: SegmentRecords) -> Iterator[StreamFault]:
        """All faults of this segment, and of the link behind it."""
        yield from self._gap(found.number)
        newer, self._link = self._link, found.link
        behind, self._number = self._number, found.number
        link = found.link
        if found.key(keys.LINK) not in found.listed:
            yield missing(found.key(keys.LINK), found.ledger_id, "assignment of a segment")
        if behind is not None and behind == found.number + 1:
            yield from _before_another(found, newer)
        if newer is not None and link is not None and behind == found.number + 1:
            yield from _behind(link, newer)
        if link is not None and isinstance(link.record, SegmentAssigned):
            yield from _of_ranges(link)
        if link is not None and found.ends and len(found.listed) > 1:
            others = sorted(found.listed - {link.key})
            yield StreamFault(
                wrong=StreamWrong.LINK,
                key=link.key,
                ledger_id=found.ledger_id,
                what="records of a segment where its stream ends",
                expected="none",
                found=others[0],
            )
        yield from _records(found)

    def end(self, opened: Lain | None, *, listed: bool) -> Iterator[StreamFault]:
        """After the last segment. `listed` says whether the opening is there, readable or not."""
        yield from self._gap(0)
        if not listed:
            yield missing(f"{self._prefix}{keys.OPENED}", None, "opening of a stream")
        if opened is not None and self._link is not None and self._number == 1:
            yield from _behind(opened, self._link)

    def _gap(self, number: int) -> Iterator[StreamFault]:
        behind = self._number
        if behind is None or behind <= number + 1:
            return
        last = f"{keys.segment_within(self._prefix, behind - 1)}{keys.LINK}"
        which = f"segments {number + 1} to {behind - 1}"
        yield missing(last, None, f"assignment of {which}, which later ones follow")


def _before_another(found: SegmentRecords, newer: Lain | None) -> Iterator[StreamFault]:
    """What a segment must have, or must not be, so that another may be behind it."""
    link = found.link
    if link is not None and found.ends:
        yield StreamFault(
            wrong=StreamWrong.LINK,
            key=link.key if newer is None else newer.key,
            ledger_id=None if newer is None else _first_ledger(newer),
            what="a link behind the end of its stream",
            expected=f"none behind {link.key}",
            found="one",
        )
    elif not found.is_done:
        what = "certificate of a segment that another one follows, or that it was given up"
        yield missing(found.key(keys.OFFLOADED), found.ledger_id, what)


def _behind(before: Lain, link: Lain) -> Iterator[StreamFault]:
    ledger_id = _first_ledger(link)
    if isinstance(before.record, StreamClosed):
        return  # said already
    yield from link_faults(before, link, ledger_id)
    if isinstance(link.record, SegmentAssigned) and getattr(before.record, "ranges", True):
        yield from _told(link, follow_faults(end_of(before.record), link.record))


def _of_ranges(link: Lain) -> Iterator[StreamFault]:
    if not link.record.ranges:
        yield from _told(link, [_NO_RANGES])
    yield from _told(link, range_faults(link.record))


def _told(link: Lain, faults: Iterable[Told]) -> Iterator[StreamFault]:
    for ledger_id, what, expected, found in faults:
        yield StreamFault(
            wrong=StreamWrong.FACT,
            key=link.key,
            ledger_id=ledger_id,
            what=what,
            expected=expected,
            found=found,
        )


def _first_ledger(link: Lain) -> int | None:
    ranges = getattr(link.record, "ranges", ())
    return int(ranges[0].ledger_id) if ranges else None


def _records(found: SegmentRecords) -> Iterator[StreamFault]:
    """Attempts, failures, certificate and giving-up of one segment."""
    assigned, ledger_id = found.assigned, found.ledger_id
    if assigned is not None and ledger_id is not None:
        for attempt in found.attempts.values():
            yield from attempt_faults(assigned, attempt, ledger_id)
        if found.given_up is not None:
            yield from given_up_faults(assigned, found.given_up, ledger_id)
        if found.offloaded is not None:
            yield from offloaded_faults(assigned, found.offloaded, ledger_id)
    for uid, failed in found.failed.items():
        yield from _after_attempt(found, uid, failed, failed_faults)
    proof = found.offloaded
    if proof is None:
        return
    yield from _after_attempt(found, proof.record.uid, proof, proven_faults)
    for said in contradictions(proof.record):
        yield StreamFault(
            wrong=StreamWrong.CONTRADICTION,
            key=proof.key,
            ledger_id=ledger_id,
            what="certificate",
            expected="no contradiction",
            found=said,
        )


def _after_attempt(
    found: SegmentRecords, uid: UUID, one: Lain, faults: _Faults
) -> Iterator[StreamFault]:
    attempt, key = found.attempts.get(uid), found.attempt_key(uid)
    if attempt is not None:
        yield from faults(attempt, one, found.ledger_id)
    elif key not in found.listed:
        yield missing(key, found.ledger_id, "attempt that later records name")
