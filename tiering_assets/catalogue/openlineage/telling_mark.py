"""How far events were sent, and when the next is tried: values and rules of the mark.

Owns: what is sent is a batch of pages that was written down before its first event, so that a
batch that broke off is sent again as it was. Of several posters one sends, until its lease is over.
A failure is tried again after a growing distance; an event that is refused REFUSALS_MAX times is
passed over, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from tiering_assets.catalogue.openlineage.runs_told import RunsTold
from tiering_assets.resources.errors import FormatError

KIND: Final = "tierkeeper/openlineage-mark/1"
POSTING_EVENTS: Final = 2  # behind the last page of a batch
LEASE: Final = timedelta(minutes=1)
FIRST_DISTANCE: Final = timedelta(seconds=30)
MOST_DISTANCE: Final = timedelta(minutes=15)
REFUSALS_MAX: Final = 6  # a quarter of an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class TellingMark:
    """A batch is the pages behind `after` up to `upto`, begun `at`.

    All events of `page` were sent, and `part` of those behind it: of the next page, or of the
    posting where it is the last one. `runs` are in work behind `page`. `tries` failed in a row, the
    last one by `why`; the next is at `next_at`. `sender` has the lease. The rest counts events
    since the beginning: `dropped` as too old, `refused` for good; and pages that nobody could read.
    """

    page: int
    part: int
    after: int
    upto: int
    at: datetime
    runs: RunsTold
    sender: str | None = None
    tries: int = 0
    refusals: int = 0
    why: str | None = None
    next_at: datetime | None = None
    sent_at: datetime | None = None
    sent: int = 0
    dropped: int = 0
    refused: int = 0
    unread: int = 0

    @property
    def is_told(self) -> bool:
        """Whether everything of its batch was sent."""
        return self.page >= self.upto and self.part >= POSTING_EVENTS

    def waits(self, posted: int) -> bool:
        """Whether there is anything left to tell of what is posted."""
        return not self.is_told or posted > self.upto

    def released(self) -> TellingMark:
        """Without the lease."""
        return replace(self, sender=None)

    def was_sent(self, at: datetime) -> TellingMark:
        return replace(
            self,
            part=self.part + 1,
            sent=self.sent + 1,
            sent_at=at,
            tries=0,
            refusals=0,
            why=None,
            next_at=None,
        )

    def was_dropped(self, events: int) -> TellingMark:
        return replace(self, part=self.part + events, dropped=self.dropped + events)

    def was_untaken(self, why: str, *, now: datetime, refused: bool) -> TellingMark:
        """Try it again later, or pass it over where it was refused too often."""
        refusals = self.refusals + 1 if refused else 0
        if refusals >= REFUSALS_MAX:
            return replace(
                self,
                part=self.part + 1,
                refused=self.refused + 1,
                tries=0,
                refusals=0,
                why=f"passed over: {why}",
                next_at=None,
            )
        tries = self.tries + 1
        return replace(self, tries=tries, refusals=refusals, why=why, next_at=now + distance(tries))

    def behind_page(self, runs: RunsTold, *, unread: bool = False) -> TellingMark:
        """The next page is told."""
        return replace(
            self, page=self.page + 1, part=0, runs=runs, unread=self.unread + (1 if unread else 0)
        )

    def as_json(self) -> dict[str, Any]:
        times = {name: getattr(self, name) for name in _TIMES}
        return {
            "schema": KIND,
            **{name: getattr(self, name) for name in (*_NUMBERS, *_TEXTS)},
            **{name: None if at is None else at.isoformat() for name, at in times.items()},
            "runs": self.runs.as_json(),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> TellingMark:
        """FormatError where it is none of ours, or of a newer version."""
        if found.get("schema") != KIND:
            raise FormatError(f"schema {found.get('schema')!r:.100}, expected {KIND!r}")
        try:
            fields: dict[str, Any] = {name: int(found[name]) for name in _NUMBERS}
            fields |= {name: found[name] for name in _TEXTS}
            fields |= {name: _time(found[name]) for name in _TIMES}
            return cls(runs=RunsTold.from_json(found["runs"]), **fields)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{type(error).__name__}: {error}") from error


_NUMBERS: Final = (
    *("page", "part", "after", "upto"),
    *("tries", "refusals", "sent", "dropped", "refused", "unread"),
)
_TEXTS: Final = ("sender", "why")
_TIMES: Final = ("at", "next_at", "sent_at")


def _time(text: str | None) -> Any:
    return None if text is None else datetime.fromisoformat(text)


def distance(tries: int) -> timedelta:
    """From the last of so many failures to the next try."""
    doubled: int = 2 ** min(tries - 1, 10)
    return min(FIRST_DISTANCE * doubled, MOST_DISTANCE)


def why_not_now(
    mark: TellingMark, *, posted: int, now: datetime, leased_for: timedelta | None
) -> str | None:
    """Why nothing is sent; None where something is. `leased_for` is how long another has the lease.

    A time of the next try that is further away than any distance was written by another clock.
    """
    if not mark.waits(posted):
        return f"told up to page {mark.page}"
    if mark.next_at is not None and now < mark.next_at <= now + MOST_DISTANCE:
        return f"{mark.why}; tried again in {(mark.next_at - now).total_seconds():.0f} s"
    if leased_for is not None and leased_for < LEASE:
        return f"{mark.sender} sends"
    return None


def taken_by(mark: TellingMark, sender: str, *, posted: int, now: datetime) -> TellingMark:
    """The lease, with the next batch where the last one was sent whole."""
    if mark.is_told:
        mark = replace(mark, after=mark.upto, upto=posted, at=now, part=0)
    return replace(mark, sender=sender)


def begun(page: int, runs: RunsTold, *, at: datetime) -> TellingMark:
    """Whoever switches events on is told of what is posted from then on."""
    return TellingMark(page=page, part=POSTING_EVENTS, after=page, upto=page, at=at, runs=runs)
