"""Pauses: a person's word that a topic, a namespace or everything gets no new copies for now.

Owns: what is paused is read from the keys, so a pause whose body cannot be read pauses all the same;
taking one away, or changing its mode, leaves a record of who did it and why. A pause stops copies
and publications alone: what is tiered stays readable, is scrubbed, healed and released when due.
The pause of a partitioned topic covers its partitions, those that it will have, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal
from uuid import uuid4

from resources.errors import FormatError, ObjectNotFoundError, RefusedError
from resources.metastore.topic_names import (
    parse_managed_ledger_name,
    parse_topic_name,
    with_scheme,
)
from tiering_assets.ground.effects import reach
from tiering_assets.ground.own_policy import PauseInForce, TieringMode, switched_off
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.pause_models import Pause, PauseLift
from tiering_assets.records.stored import Stored


@dataclass(frozen=True, slots=True)
class Scope:
    """What a pause or a hold covers. `name` is a managed ledger, `tenant/namespace`, or empty for all."""

    kind: Literal["topic", "namespace", "all"]
    name: str = ""

    @property
    def key(self) -> str:
        match self.kind:
            case "topic":
                return keys.topic_pause(self.name)
            case "namespace":
                return keys.namespace_pause(self.name)
            case "all":
                return keys.PAUSE_ALL

    def __str__(self) -> str:
        match self.kind:
            case "topic":
                return f"topic {topic_of(self.name)}"
            case "namespace":
                return f"namespace {self.name}"
            case "all":
                return "everything"


EVERYTHING = Scope("all")


def topic_scope(topic: str) -> Scope:
    """The scope of a topic, a partition or a partitioned topic. FormatError: it is no topic's name."""
    return Scope("topic", parse_topic_name(with_scheme(topic)).managed_ledger_name)


def namespace_scope(namespace: str) -> Scope:
    """FormatError when it is not `tenant/namespace`."""
    if namespace.count("/") != 1 or not all(namespace.split("/")):
        raise FormatError(f"namespace {namespace[:200]!r}: expected tenant/namespace")
    return Scope("namespace", namespace)


def scopes_of(ml_name: str) -> tuple[Scope, ...]:
    """Everything that covers a managed ledger, the widest first: for a partition its whole topic, too."""
    try:
        whole = parse_managed_ledger_name(ml_name).unpartitioned.managed_ledger_name
    except FormatError:  # of no topic, and of no partition
        whole = ml_name
    names = dict.fromkeys((whole, ml_name))
    return (
        EVERYTHING,
        Scope("namespace", keys.namespace_of(ml_name)),
        *(Scope("topic", name) for name in names),
    )


def topics_covered(stack: Stack, scope: Scope) -> list[str]:
    """Managed ledgers that a scope covers today; for people, who may have misspelt it."""
    if scope.kind == "topic" and stack.topics.read(scope.name) is not None:
        return [scope.name]
    return [
        ml_name
        for ml_name in sorted(stack.topics.iter_managed_ledgers())
        if _is_topic(ml_name) and scope in scopes_of(ml_name)
    ]


def _is_topic(ml_name: str) -> bool:
    try:
        parse_managed_ledger_name(ml_name)
    except FormatError:
        return False
    return True


class Pauses:
    """All pauses as one listing found them; a body is read when its pause is met."""

    def __init__(self, book: RecordBook) -> None:
        self._book = book
        self._keys = frozenset(book.keys("pauses/"))
        self._read: dict[str, PauseInForce | None] = {}

    def on(self, ml_name: str) -> tuple[PauseInForce, ...]:
        """Those that cover a managed ledger, the widest first."""
        if not self._keys:
            return ()
        found = [self._pause(scope) for scope in scopes_of(ml_name) if scope.key in self._keys]
        return tuple(pause for pause in found if pause is not None)

    def _pause(self, scope: Scope) -> PauseInForce | None:
        if scope.key not in self._read:
            self._read[scope.key] = _in_force(self._book, scope)
        return self._read[scope.key]


def _in_force(book: RecordBook, scope: Scope) -> PauseInForce | None:
    mode, why = TieringMode.PAUSED, ""
    try:
        stored = book.read(Pause, scope.key)
    except FormatError as error:
        why = f"its record cannot be read: {error}"
    else:
        if stored is None:
            return None  # taken away since it was listed
        mode = TieringMode(stored.record.mode)
        why = f"{stored.record.reason} ({stored.record.author})"
    return PauseInForce(scope=scope.kind, mode=mode, text=f"by the pause of {scope}: {why}")


def read_pauses(stack: Stack) -> Pauses:
    """Ask the store which pauses there are now: one listing."""
    return Pauses(stack.book)


def why_off(stack: Stack, ml_name: str, pauses: Pauses | None = None) -> Wait | None:
    """Why a topic gets no new copies: by tiering.toml or by a pause, read now unless given."""
    found = read_pauses(stack) if pauses is None else pauses
    return switched_off(stack.own_policies, topic_of(ml_name), found.on(ml_name))


def list_pauses(stack: Stack) -> Iterator[Stored[Pause] | str]:
    """Every pause; the key alone where its record cannot be read."""
    for key in stack.book.keys("pauses/"):
        try:
            stored = stack.book.read(Pause, key)
        except FormatError:
            yield key
        else:
            if stored is not None:
                yield stored


def require_topics(stack: Stack, scopes: Sequence[Scope]) -> None:
    """RefusedError for a topic that nobody knows, before anything is written."""
    for scope in scopes:
        if scope.kind == "topic" and not topics_covered(stack, scope):
            raise RefusedError(
                f"{topic_of(scope.name)}: the metadata store has no such topic; check the name "
                f"with `tierkeeper ledger list`"
            )


def pause(stack: Stack, scope: Scope, mode: TieringMode, *, reason: str, author: str) -> bool:
    """Pause or disable; False when it was so already, and stays so for the first reason.

    Raises:
        ValueError: the mode is `enabled`, which resume() means.
        FormatError: a pause is there and cannot be read; it pauses all the same.
        ObjectConflictError: somebody else changed it at the same time.
    """
    if mode is TieringMode.ENABLED:
        raise ValueError("a pause is paused or disabled")
    wanted = Pause(
        scope=scope.kind,
        name=scope.name,
        mode="disabled" if mode is TieringMode.DISABLED else "paused",
        reason=reason,
        author=author,
        paused_at=stack.now(),
        writer=stack.writer,
    )
    try:
        found, fresh = stack.book.create_or_read(scope.key, wanted)
    except FormatError as error:
        raise FormatError(f"{error}. It pauses all the same; resume {scope} first") from error
    if found.record.mode == wanted.mode:
        return fresh
    _record_lift(stack, scope.key, found.sha256, said_of(found.record), reason, author)
    stack.book.replace(found, wanted)
    return True


def resume(stack: Stack, scope: Scope, *, reason: str, author: str) -> bool:
    """Take a pause away, after writing down who did so and why; False when there was none."""
    found = stack.objects.get(stack.book.prefix + scope.key)
    if found is None:
        return False
    try:
        stored = stack.book.read(Pause, scope.key)
        was = "" if stored is None else said_of(stored.record)
    except FormatError as error:
        was = f"unreadable: {error}"
    _record_lift(stack, scope.key, sha256(found.body).hexdigest(), was, reason, author)
    try:
        stack.book.delete(scope.key)
    except ObjectNotFoundError:
        return False  # somebody resumed it at the same time
    reach("pause.lifted")
    return True


def still_off(stack: Stack, scope: Scope) -> dict[str, str]:
    """Topic by topic why those that a scope covers are switched off, here or elsewhere, read now."""
    pauses = read_pauses(stack)
    found = {
        topic_of(ml_name): why_off(stack, ml_name, pauses)
        for ml_name in topics_covered(stack, scope)
    }
    return {name: str(why) for name, why in found.items() if why is not None}


def said_of(record: Pause) -> str:
    """One line: since when, by whom and why."""
    return f"{record.mode} since {record.paused_at.isoformat()} by {record.author}: {record.reason}"


def _record_lift(stack: Stack, key: str, digest: str, was: str, reason: str, author: str) -> None:
    stack.book.create(
        keys.pause_lift(uuid4()),
        PauseLift(
            pause_key=key,
            pause_sha256=digest,
            was=was,
            reason=reason,
            author=author,
            lifted_at=stack.now(),
            writer=stack.writer,
        ),
    )
    reach("pause.lift_recorded")
