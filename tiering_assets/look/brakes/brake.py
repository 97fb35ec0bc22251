"""A brake: a hold or a pause, as one listing finds it. What holds and what pauses is read here
alone.

Owns: what is braked is read from the keys, so a brake whose body cannot be read brakes all the
same; a body is read when its brake is met, and once. The two kinds differ in their keys and
records, in words, and in what one does that was taken away since it was listed: a hold holds, a
pause pauses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from tiering_assets.ground.record_book import RecordBook
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.scopes import EVERYTHING, Scope, ledger_scope, scopes_of
from tiering_assets.records import keys
from tiering_assets.records.models import Hold, ScopeHold
from tiering_assets.records.pause_models import Pause
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError

BrakeRecord = Hold | ScopeHold | Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeKind:
    """`keys` has the scopes that a brake of this kind may have. `unreadable` is said of one whose
    record cannot be read, `gone` of one that was taken away since it was listed; where that is
    empty, such a one brakes nothing.
    """

    folder: str
    keys: Mapping[str, Callable[[str], str]]
    unreadable: str
    gone: str

    def key(self, scope: Scope) -> str:
        return self.keys[scope.kind](scope.name)


HOLD = BrakeKind(
    folder="holds/",
    keys={
        "ledger": lambda name: keys.hold(int(name)),
        "topic": keys.topic_hold,
        "namespace": keys.namespace_hold,
        "all": lambda _name: keys.HOLD_ALL,
    },
    unreadable="a hold record that cannot be read",
    gone="a hold that was just taken away",
)
PAUSE = BrakeKind(
    folder="pauses/",
    keys={
        "topic": keys.topic_pause,
        "namespace": keys.namespace_pause,
        "all": lambda _name: keys.PAUSE_ALL,
    },
    unreadable="its record cannot be read",
    gone="",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """What the record of a brake says: of what it is, by whom, why and since when. Holds have no
    mode.
    """

    key: str
    scope: Scope
    author: str
    reason: str
    since: datetime
    mode: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A brake that covers what was asked for. `said` is why; `brake` is None where it cannot be
    read.
    """

    scope: Scope
    said: str
    brake: Brake | None = None


class Brakes:
    """All brakes of a kind as one listing found them."""

    def __init__(self, book: RecordBook, kind: BrakeKind) -> None:
        self._book, self._kind = book, kind
        self._keys = frozenset(book.keys(kind.folder))
        self._met: dict[str, Met | None] = {}

    @property
    def keys(self) -> frozenset[str]:
        return self._keys

    @property
    def of_topics(self) -> bool:
        """Whether any topic by itself is braked."""
        return any(key.startswith(f"{self._kind.folder}topics/") for key in self._keys)

    def on(self, ml_name: str, ledger_id: int | None = None) -> Iterator[Met]:
        """Those that cover a managed ledger, or one ledger of it, the widest first."""
        if not self._keys:
            return
        yield from self._of(scopes_of(ml_name))
        if ledger_id is not None and "ledger" in self._kind.keys:
            yield from self._of((ledger_scope(ledger_id),))

    def why(self, ledger_id: int, ml_name: str) -> str | None:
        """Why this ledger is braked; the widest brake speaks. None when nothing brakes it."""
        return _first(self.on(ml_name, ledger_id))

    def why_topic(self, ml_name: str) -> str | None:
        """Why every ledger of a topic is braked; None when nothing brakes them all."""
        return _first(self.on(ml_name))

    def why_all(self) -> str | None:
        """Who brakes everything, and why."""
        return _first(self._of((EVERYTHING,)))

    def _of(self, scopes: tuple[Scope, ...]) -> Iterator[Met]:
        for scope in scopes:
            key = self._kind.key(scope)
            if key not in self._keys:
                continue
            if key not in self._met:
                self._met[key] = self._meet(key, scope)
            met = self._met[key]
            if met is not None:
                yield met

    def _meet(self, key: str, scope: Scope) -> Met | None:
        try:
            stored = read_brake(self._book, key)
        except FormatError as error:
            return Met(scope=scope, said=f"{self._kind.unreadable}: {error}")
        if stored is None:
            return Met(scope=scope, said=self._kind.gone) if self._kind.gone else None
        brake = brake_of(key, stored.record)
        return Met(scope=scope, said=f"{brake.reason} ({brake.author})", brake=brake)


def _first(found: Iterator[Met]) -> str | None:
    """The widest one alone is read."""
    return next((_text(met) for met in found), None)


def _text(met: Met) -> str:
    """Why, and of what it is where it is more than one ledger's."""
    if met.brake is None or met.scope.kind == "ledger":
        return met.said
    return f"{met.brake.scope.kind} {met.brake.scope.name}".strip() + f": {met.said}"


def read_brakes(stack: Stack, kind: BrakeKind) -> Brakes:
    """Ask the store which there are now: one request per thousand, and one for each that is met."""
    return Brakes(stack.book, kind)


def list_brakes(stack: Stack, kind: BrakeKind) -> Iterator[Brake | str]:
    """Every one; the key alone where its record cannot be read."""
    for key in stack.book.keys(kind.folder):
        try:
            stored = read_brake(stack.book, key)
        except FormatError:
            yield key
        else:
            if stored is not None:
                yield brake_of(key, stored.record)


def read_brake(book: RecordBook, key: str) -> Stored[BrakeRecord] | None:
    """The record under a key. FormatError when it cannot be read: it brakes all the same."""
    return book.read(_record_type(key), key)


def _record_type(key: str) -> type[BrakeRecord]:
    folder, _slash, name = key.partition("/")
    if folder == "pauses":
        return Pause
    return Hold if name.removesuffix(".json").isdecimal() else ScopeHold


def brake_of(key: str, record: BrakeRecord) -> Brake:
    """The one shape of all of them."""
    scope, since, mode = _differing(record)
    return Brake(
        key=key,
        scope=scope,
        author=record.author,
        reason=record.reason,
        since=since,
        mode=mode,
    )


def _differing(record: BrakeRecord) -> tuple[Scope, datetime, str]:
    match record:
        case Hold():
            return ledger_scope(record.ledger_id), record.held_at, ""
        case ScopeHold():
            return Scope(record.scope, record.name), record.held_at, ""
        case Pause():
            return Scope(record.scope, record.name), record.paused_at, record.mode
