"""Release holds: a person's ban on deleting bookie copies, by ledger, topic, namespace or of all.

Owns: what is held is read from the keys, so a hold whose body cannot be read holds all the same;
taking one away leaves a record of who did it and why. A hold binds our deletes alone: what else can
delete is what_a_hold_cannot_stop(). A hold of all is the kill switch; clean-up obeys it, too. That of a
partitioned topic covers its partitions, those that it will have, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from uuid import uuid4

from resources.errors import FormatError, LedgerNotFoundError, ObjectNotFoundError, RefusedError
from resources.pulsar.retention import Retention
from tiering_assets.ground.effects import reach
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.pauses import Scope, scopes_of
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.models import Hold, HoldLift, ScopeHold
from tiering_assets.records.stored import Stored

AnyHold = Hold | ScopeHold


class Holds:
    """All holds as one listing found them. What one says is read when it is asked for, and once."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._keys = frozenset(stack.book.keys("holds/"))
        self._said: dict[str, str] = {}

    def why(self, ledger_id: int, ml_name: str) -> str | None:
        """Why this ledger is held; the widest hold speaks. None when nothing holds it."""
        if not self._keys:
            return None
        for key in (*hold_keys_of(ml_name), keys.hold(ledger_id)):
            if key in self._keys:
                return self._read(key)
        return None

    def why_topic(self, ml_name: str) -> str | None:
        """Why every ledger of a topic is held; None when nothing holds them all."""
        held = (key for key in hold_keys_of(ml_name) if key in self._keys)
        return next((self._read(key) for key in held), None)

    @property
    def all_held(self) -> str | None:
        """Who pulled the kill switch, and why."""
        return self._read(keys.HOLD_ALL) if keys.HOLD_ALL in self._keys else None

    def _read(self, key: str) -> str:
        if key not in self._said:
            self._said[key] = _said(self._stack, key)
        return self._said[key]


def hold_keys_of(ml_name: str) -> tuple[str, ...]:
    """Keys of all that would hold every ledger of a managed ledger, the widest first."""
    return tuple(hold_key(scope) for scope in scopes_of(ml_name))


def hold_key(scope: Scope) -> str:
    match scope.kind:
        case "topic":
            return keys.topic_hold(scope.name)
        case "namespace":
            return keys.namespace_hold(scope.name)
        case "all":
            return keys.HOLD_ALL


def still_held(stack: Stack, ml_names: Iterable[str]) -> dict[str, str]:
    """Topic by topic what still holds all of its ledgers, read now."""
    holds = read_holds(stack)
    found = {topic_of(ml_name): holds.why_topic(ml_name) for ml_name in ml_names}
    return {topic: why for topic, why in found.items() if why is not None}


def read_holds(stack: Stack) -> Holds:
    """List every hold: one request per thousand, and one for each that is asked for."""
    return Holds(stack)


def require_nothing_held(stack: Stack, action: str) -> None:
    """RefusedError while somebody holds everything."""
    held = read_holds(stack).all_held
    if held is not None:
        raise RefusedError(f"{action}: everything is held, nothing is deleted: {held}")


def _said(stack: Stack, key: str) -> str:
    try:
        stored = _read(stack, key)
    except FormatError as error:
        return f"a hold record that cannot be read: {error}"
    if stored is None:
        return "a hold that was just taken away"
    record = stored.record
    scope = "" if isinstance(record, Hold) else f"{record.scope} {record.name}".strip() + ": "
    return f"{scope}{record.reason} ({record.author})"


def _read(stack: Stack, key: str) -> Stored[Hold] | Stored[ScopeHold] | None:
    if key.removeprefix("holds/").removesuffix(".json").isdecimal():
        return stack.book.read(Hold, key)
    return stack.book.read(ScopeHold, key)


def list_holds(stack: Stack) -> list[Stored[Hold] | Stored[ScopeHold] | str]:
    """Every hold; the key alone where its record cannot be read."""
    found: list[Stored[Hold] | Stored[ScopeHold] | str] = []
    for key in stack.book.keys("holds/"):
        try:
            stored = _read(stack, key)
        except FormatError:
            found.append(key)
        else:
            if stored is not None:
                found.append(stored)
    return found


def hold_ledger(stack: Stack, ledger_id: int, *, reason: str, author: str) -> bool:
    """Hold one ledger; False when it was held already, and stays so for the first reason."""
    hold = Hold(ledger_id=ledger_id, reason=reason, author=author, held_at=stack.now())
    return stack.book.create_or_read(keys.hold(ledger_id), hold)[1]


def hold_topic(stack: Stack, ml_name: str, *, reason: str, author: str) -> bool:
    """Hold every ledger of a topic, of a partition, or of a partitioned topic and all its partitions."""
    hold = ScopeHold(scope="topic", name=ml_name, reason=reason, author=author, held_at=stack.now())
    return stack.book.create_or_read(keys.topic_hold(ml_name), hold)[1]


def hold_namespace(stack: Stack, namespace: str, *, reason: str, author: str) -> bool:
    """Hold every ledger of a namespace (`tenant/namespace`)."""
    hold = ScopeHold(
        scope="namespace", name=namespace, reason=reason, author=author, held_at=stack.now()
    )
    return stack.book.create_or_read(keys.namespace_hold(namespace), hold)[1]


def hold_all(stack: Stack, *, reason: str, author: str) -> bool:
    """Pull the kill switch: nothing is deleted until it is lifted."""
    hold = ScopeHold(scope="all", name="", reason=reason, author=author, held_at=stack.now())
    return stack.book.create_or_read(keys.HOLD_ALL, hold)[1]


def lift_hold(stack: Stack, key: str, *, reason: str, author: str) -> None:
    """Take a hold away, after writing down who did so and why.

    Raises:
        LedgerNotFoundError: there is no such hold.
    """
    found = stack.objects.get(stack.book.prefix + key)
    if found is None:
        raise LedgerNotFoundError(f"{key}: no such hold; `tierkeeper hold list` prints all")
    stack.book.create(
        keys.hold_lift(uuid4()),
        HoldLift(
            hold_key=key,
            hold_sha256=sha256(found.body).hexdigest(),
            reason=reason,
            author=author,
            lifted_at=stack.now(),
            writer=stack.writer,
        ),
    )
    reach("hold.lift_recorded")
    try:
        stack.book.delete(key)
    except ObjectNotFoundError:
        return  # somebody lifted it at the same time
    reach("hold.lifted")


def what_a_hold_cannot_stop(stack: Stack, ml_name: str) -> list[str]:
    """What still deletes a held topic's data, in sentences, with the values in force."""
    topic = topic_of(ml_name)
    lag_ms = stack.broker.effective_offload_policies(topic).deletion_lag_ms
    lag = (
        "the broker deletes no bookie copies by itself (its deletion lag is off)"
        if lag_ms is None
        else f"the broker deletes bookie copies {lag_ms / 1000:g} s after publication by itself"
    )
    return [
        lag,
        _retention(stack.broker.retention(topic)),
        "pulsar-admin topics truncate deletes every closed ledger, offloaded or not",
        "deleting the topic deletes its ledgers and its objects",
    ]


def _retention(retention: Retention) -> str:
    if retention.minutes is None and retention.megabytes is None:
        return "retention keeps acknowledged messages for ever"
    age = "any age" if retention.minutes is None else f"{retention.minutes} minutes"
    size = "any size" if retention.megabytes is None else f"{retention.megabytes} MB"
    return f"retention deletes acknowledged messages past {age} and {size}, from both tiers"
