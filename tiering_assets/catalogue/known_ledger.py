"""What records say of a ledger, attempt by attempt, and the state that follows from it.

Owns: facts are joined in any order and any number of times with the same result, so that a page
that is posted late, or a record that two pages name, changes nothing. The state is that of
look/ledger/states.py as far as records tell: what only metadata knows is taken as it should be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final

from tiering_assets.look.ledger.states import StateEvidence, decide_state


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttempt:
    """One attempt. `attempted_at` and `intended_at` are None once a later record tells more."""

    attempted_at: datetime | None = None
    certified_at: datetime | None = None
    certificate_sha256: str | None = None
    object_bytes: int | None = None
    published_at: datetime | None = None
    withdrawn_at: datetime | None = None
    intended_at: datetime | None = None
    released_at: datetime | None = None
    verified_at: datetime | None = None
    verified_depth: str | None = None
    quarantined_at: datetime | None = None
    damaged_at: datetime | None = None
    removed_at: datetime | None = None

    @property
    def published(self) -> bool:
        """Recorded, and not taken back since."""
        since = self.withdrawn_at
        return self.published_at is not None and (since is None or since < self.published_at)

    @property
    def newest(self) -> datetime | None:
        return max(filter(None, (self.attempted_at, self.certified_at)), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLedger:
    """One ledger. `attempts` is by uid."""

    ledger_id: int
    topic: str | None = None
    entries: int | None = None
    bytes: int | None = None
    held: str | None = None
    attempts: Mapping[str, KnownAttempt] = field(default_factory=dict)

    def of(self, uid: str) -> KnownAttempt:
        return self.attempts.get(uid, _NOTHING)

    @property
    def uid(self) -> str | None:
        """The attempt that the row is about: the one that is published, else the newest."""
        if not self.attempts:
            return None
        return max(self.attempts, key=lambda uid: (*_rank(self.attempts[uid]), uid))


_NOTHING: Final = KnownAttempt()
_OF_ATTEMPT: Final = tuple(one.name for one in fields(KnownAttempt))


def _rank(facts: KnownAttempt) -> tuple[bool, float, float]:
    return facts.published, _seconds(facts.published_at), _seconds(facts.newest)


def _seconds(at: datetime | None) -> float:
    return 0.0 if at is None else at.timestamp()


def joined(facts: KnownLedger, uid: str, found: KnownAttempt) -> KnownLedger:
    """With what a record says of an attempt (empty: of none): the newest of each kind counts."""
    if not uid:
        return facts
    before = facts.of(uid)
    newer = {
        name: value
        for name in _OF_ATTEMPT
        if (value := getattr(found, name)) is not None
        and (getattr(before, name) is None or getattr(before, name) < value)
    }
    if "verified_at" in newer:
        newer["verified_depth"] = found.verified_depth
    elif found.verified_at != before.verified_at:  # else of two at one time the same one counts
        newer.pop("verified_depth", None)
    now = replace(before, **newer)
    if now.certified_at is not None:
        now = replace(now, attempted_at=None)
    if now.released_at is not None:
        now = replace(now, intended_at=None)
    return replace(facts, attempts={**facts.attempts, uid: now})


def without(facts: KnownLedger, uid: str, names: Iterable[str]) -> KnownLedger:
    """Without what records said that are gone; without the attempt, if they said all of it."""
    now = replace(facts.of(uid), **dict.fromkeys(names))
    attempts = {**facts.attempts, uid: now}
    if now == _NOTHING:
        del attempts[uid]
    return replace(facts, attempts=attempts)


def state_of(facts: KnownLedger) -> str:
    """As far as records tell. A published one whose deletion lag is over is `published` here."""
    now = facts.of(facts.uid or "")
    forgotten = facts.topic is not None and not facts.attempts
    evidence = StateEvidence(
        listed=now.removed_at is None and not forgotten,
        open=False,
        context_complete=now.published,
        context_other=False,
        marked_deleted=now.intended_at is not None,
        in_bookkeeper=now.released_at is None,
        claimed=False,
        has_index_object=False,
        certified=now.certified_at is not None,
        quarantined=now.quarantined_at is not None,
        published=now.published,
        lag_elapsed=False,
        held=facts.held is not None,
    )
    return decide_state(evidence).value


def row_of_ledger(facts: KnownLedger, *, page: int) -> dict[str, Any]:
    """The row of `ledger_changes`, but for the columns that the topic's name gives."""
    uid = facts.uid
    others = {name: _text(one) for name, one in sorted(facts.attempts.items()) if name != uid}
    return {
        "ledger_id": facts.ledger_id,
        "topic": facts.topic,
        "state": state_of(facts),
        "entries": facts.entries,
        "bytes": facts.bytes,
        "held": facts.held,
        "uid": uid,
        "attempts": len(facts.attempts),
        **asdict(facts.of(uid or "")),
        "others": json.dumps(others, separators=(",", ":")) if others else None,
        "page": page,
    }


def facts_of_row(row: Mapping[str, Any]) -> KnownLedger:
    """What a row was made of."""
    attempts = {
        uid: KnownAttempt(**{name: _value(name, value) for name, value in found.items()})
        for uid, found in json.loads(row["others"] or "{}").items()
    }
    if row["uid"] is not None:
        attempts[row["uid"]] = KnownAttempt(**{name: row[name] for name in _OF_ATTEMPT})
    return KnownLedger(
        ledger_id=row["ledger_id"],
        topic=row["topic"],
        entries=row["entries"],
        bytes=row["bytes"],
        held=row["held"],
        attempts=attempts,
    )


def _text(facts: KnownAttempt) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(facts).items()
        if value is not None
    }


def _value(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name.endswith("_at") else value
