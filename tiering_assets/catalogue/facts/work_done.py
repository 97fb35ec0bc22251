"""What was done so far, as sums that only rise: each posting adds what its pages tell.

Owns: an attempt counts once for each thing that was done to it, whichever pages tell of it. Records
that are taken away later are not taken off. Copied is what was read back, whatever came of it:
until then no record says that a copy is whole. Pure.

Grows with the ledgers that a posting changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from tiering_assets.catalogue.facts.known_ledger import KnownAttempt, KnownLedger, facts_of_row

DONE: Final = ("copied", "verified", "published", "released")
_DONE: Final = {
    "copied": "coalesce(certified_at, quarantined_at) is not null",
    "verified": "certified_at is not null",
    "published": "published_at is not null",
    "released": "released_at is not null",
}
_STORED: Final = "case when certified_at is not null then coalesce(object_bytes, 0) else 0 end"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """Bytes are those of ledgers, without their copies on bookies. `stored_bytes` are of data
    objects that were certified. `failed_runs` said so on a page; `died_runs` could not.
    """

    copied_ledgers: int = 0
    copied_bytes: int = 0
    verified_ledgers: int = 0
    verified_bytes: int = 0
    published_ledgers: int = 0
    published_bytes: int = 0
    released_ledgers: int = 0
    released_bytes: int = 0
    stored_bytes: int = 0
    failed_runs: int = 0
    died_runs: int = 0

    def plus(self, more: WorkDone) -> WorkDone:
        return WorkDone(**{name: getattr(self, name) + getattr(more, name) for name in _NAMES})

    def risen_from(self, before: WorkDone) -> WorkDone:
        """How much more this is, 0 where it is less."""
        return WorkDone(
            **{name: max(0, getattr(self, name) - getattr(before, name)) for name in _NAMES}
        )

    def at_least(self, other: WorkDone) -> WorkDone:
        """The larger one of each sum."""
        return other.plus(self.risen_from(other))

    def as_text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> WorkDone:
        """Of what a later version added nothing is known."""
        found = json.loads(text)
        return cls(**{name: found[name] for name in _NAMES if name in found})


_NAMES: Final = tuple(one.name for one in fields(WorkDone))


def done_between(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
) -> WorkDone:
    """By rows of ledgers as they were, and the new rows of those that changed."""
    old = {row["ledger_id"]: row for row in before}
    total = WorkDone()
    for row in after:
        known = old.get(row["ledger_id"])
        was = KnownLedger(ledger_id=row["ledger_id"]) if known is None else facts_of_row(known)
        now = facts_of_row(row)
        for uid, attempt in now.attempts.items():
            total = total.plus(
                _of(attempt, now.bytes).risen_from(_of(was.of(uid), was.bytes)),
            )
    return total


def _of(attempt: KnownAttempt, size: int | None) -> WorkDone:
    done = {
        "copied": attempt.certified_at is not None or attempt.quarantined_at is not None,
        "verified": attempt.certified_at is not None,
        "published": attempt.published_at is not None,
        "released": attempt.released_at is not None,
    }
    ledgers = {f"{name}_ledgers": int(one) for name, one in done.items()}
    sizes = {f"{name}_bytes": (size or 0) * one for name, one in done.items()}
    stored = (attempt.object_bytes or 0) * done["verified"]
    return WorkDone(**ledgers, **sizes, stored_bytes=stored)


def all_rows_sql() -> str:
    """The sums of all rows: of each ledger the attempt that its row is about. Runs are in none."""
    sums = (
        f"sum(case when {one} then 1 else 0 end) as {name}_ledgers, "
        f"sum(case when {one} then coalesce(bytes, 0) else 0 end) as {name}_bytes"
        for name, one in _DONE.items()
    )
    return f"select {', '.join(sums)}, sum({_STORED}) as stored_bytes from ledgers"  # noqa: S608


def of_all_rows(row: Mapping[str, int | None]) -> WorkDone:
    """The answer to that question. Without a ledger its sums are null."""
    return WorkDone(**{name: value or 0 for name, value in row.items()})
