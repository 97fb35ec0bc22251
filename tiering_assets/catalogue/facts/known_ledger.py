"""What records say of a ledger, attempt by attempt, what a scan saw of it, and its state.

Owns: facts are joined in any order and any number of times with the same result, so that a page
that is posted late, or a record that two pages name, changes nothing. The state is that of
look/ledger/states.py. Before a scan, or where a record is newer than it, what only metadata knows
is taken as it should be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final

from tiering_assets.catalogue.facts.seen_ledger import UNSEEN, ListedAs, SightedLedger, seen_in
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
    deep_at: datetime | None = None
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

    @property
    def changed_at(self) -> datetime | None:
        """When a change of its topic was last recorded."""
        changes = self.published_at, self.withdrawn_at, self.intended_at, self.released_at
        return max(filter(None, changes), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLedger:
    """One ledger. `attempts` is by uid; `seen` is how its topic listed it, None before a scan."""

    ledger_id: int
    topic: str | None = None
    entries: int | None = None
    bytes: int | None = None
    held: str | None = None
    attempts: Mapping[str, KnownAttempt] = field(default_factory=dict)
    seen: SightedLedger | None = None

    def of(self, uid: str) -> KnownAttempt:
        return self.attempts.get(uid, _NOTHING)

    @property
    def seen_now(self) -> SightedLedger | None:
        """What a scan saw, if no record tells of a later change."""
        if self.seen is None:
            return None
        changes = (one.changed_at for one in self.attempts.values())
        newest = max(filter(None, changes), default=None)
        return self.seen if newest is None or newest <= self.seen.seen_at else None

    @property
    def uid(self) -> str | None:
        """The attempt that the row is about: the one that brokers read, else the newest."""
        seen = self.seen_now
        if seen is not None and seen.complete:
            return seen.context_uid
        if not self.attempts:
            return None
        return max(self.attempts, key=lambda uid: (*_rank(self.attempts[uid]), uid))

    @property
    def now(self) -> KnownAttempt:
        """What records say of the attempt that the row is about."""
        uid = self.uid
        return _NOTHING if uid is None else self.of(uid)


BY_US: Final = "tierkeeper"
BY_BROKER: Final = "broker"
_NOTHING: Final = KnownAttempt()
_OF_ATTEMPT: Final = tuple(one.name for one in fields(KnownAttempt))
_OF_ANY_COPY: Final = ("object_bytes", "verified_at", "verified_depth", "deep_at", "damaged_at")
"""What looks leave behind, at copies that brokers wrote as well."""


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
    """As far as scans and records tell. `published` is also one whose deletion lag is over."""
    now, seen = facts.now, facts.seen_now
    evidence = StateEvidence(
        listed=_is_listed(facts),
        open=seen is not None and seen.listed_as is ListedAs.OPEN,
        context_complete=now.published if seen is None else seen.complete,
        context_other=seen is not None and seen.listed_as is ListedAs.COPYING,
        marked_deleted=_is_marked(facts),
        in_bookkeeper=not _has_left_bookies(facts),
        claimed=False,
        has_index_object=False,
        certified=now.certified_at is not None,
        quarantined=now.quarantined_at is not None,
        published=now.published,
        lag_elapsed=False,
        held=facts.held is not None,
    )
    return decide_state(evidence).value


def _is_listed(facts: KnownLedger) -> bool:
    if facts.seen is not None and facts.seen.listed_as is ListedAs.GONE:
        return False  # no topic takes a ledger back
    if facts.seen_now is not None:
        return True
    forgotten = facts.topic is not None and not facts.attempts
    return facts.now.removed_at is None and not forgotten


def _is_marked(facts: KnownLedger) -> bool:
    seen = facts.seen_now
    return facts.now.intended_at is not None if seen is None else seen.listed_as is ListedAs.MARKED


def _has_left_bookies(facts: KnownLedger) -> bool:
    """By our record, or because its broker marked its own copy: it deletes right after."""
    if facts.now.released_at is not None:
        return True
    return _is_marked(facts) and offloaded_by(facts) == BY_BROKER


def offloaded_by(facts: KnownLedger) -> str | None:
    """Who wrote the copy that brokers read: with a certificate it is ours."""
    seen = facts.seen_now
    if not (facts.now.published if seen is None else seen.complete):
        return None
    by_broker = replace(facts.now, **dict.fromkeys(_OF_ANY_COPY)) == _NOTHING
    return BY_BROKER if by_broker else BY_US


def bookie_copy(facts: KnownLedger) -> str:
    """`unknown` before a scan and any record of it."""
    if _has_left_bookies(facts):
        return "deleted"
    if _is_marked(facts):
        return "marked"
    return "live" if facts.seen is not None or facts.attempts else "unknown"


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
        "offloaded_by": offloaded_by(facts),
        "bookie_copy": bookie_copy(facts),
        **(UNSEEN if facts.seen is None else facts.seen.columns),
        "attempts": len(facts.attempts),
        **_columns(facts.now),
        "others": json.dumps(others, separators=(",", ":")) if others else None,
        "page": page,
    }


def facts_of_row(row: Mapping[str, Any]) -> KnownLedger:
    """What a row was made of."""
    attempts = {
        uid: KnownAttempt(**{name: _value(name, value) for name, value in found.items()})
        for uid, found in json.loads(row["others"] or "{}").items()
    }
    told = KnownAttempt(**{name: row[name] for name in _OF_ATTEMPT})
    if told != _NOTHING:  # else there is no attempt, or a broker's, of which there are no records
        attempts[row["uid"]] = told
    return KnownLedger(
        ledger_id=row["ledger_id"],
        topic=row["topic"],
        entries=row["entries"],
        bytes=row["bytes"],
        held=row["held"],
        attempts=attempts,
        seen=seen_in(row),
    )


def _columns(facts: KnownAttempt) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in _OF_ATTEMPT}  # `asdict` copies each value


def _text(facts: KnownAttempt) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in _columns(facts).items()
        if value is not None
    }


def _value(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name.endswith("_at") else value
