"""Release holds: a person's ban on deleting bookie copies, by ledger, topic, namespace or of all.

Owns: what a hold binds, our deletes alone: what else can delete is what_a_hold_cannot_stop(). A
hold of all is the kill switch; clean-up obeys it, too. Taking one away leaves a record of who did
it and why.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from tiering_assets.ground.effects import reach
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import HOLD, read_brakes
from tiering_assets.look.brakes.lifting import Taken, take_away
from tiering_assets.look.brakes.scopes import Scope, still_braked
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.models import Hold, HoldLift, ScopeHold
from tiering_assets.resources.errors import LedgerNotFoundError, RefusedError
from tiering_assets.resources.pulsar.retention import Retention


def still_held(stack: Stack, ml_names: Iterable[str]) -> dict[str, str]:
    """Topic by topic what still holds all of its ledgers, read now."""
    return still_braked(ml_names, read_brakes(stack, HOLD).why_topic)


def require_nothing_held(stack: Stack, action: str) -> None:
    """RefusedError while somebody holds everything."""
    held = read_brakes(stack, HOLD).why_all()
    if held is not None:
        raise RefusedError(f"{action}: everything is held, nothing is deleted: {held}")


def hold(stack: Stack, scope: Scope, *, reason: str, author: str) -> bool:
    """Hold every ledger of a scope; False when it was held already, and stays so for the first
    reason.
    """
    key, now = HOLD.key(scope), stack.now()
    record: Hold | ScopeHold
    if scope.kind == "ledger":
        record = Hold(ledger_id=int(scope.name), reason=reason, author=author, held_at=now)
    else:
        record = ScopeHold(
            scope=scope.kind, name=scope.name, reason=reason, author=author, held_at=now
        )
    return stack.book.create_or_read(key, record)[1]


def require_holds(stack: Stack, scopes: Iterable[Scope]) -> None:
    """LedgerNotFoundError unless each of these holds is there, before any of them goes."""
    there = set(stack.book.keys(HOLD.folder))
    for key in map(HOLD.key, scopes):
        if key not in there:
            raise LedgerNotFoundError(f"{key}: no such hold; `tierkeeper hold list` prints all")


def lift_hold(stack: Stack, scope: Scope, *, reason: str, author: str) -> None:
    """Take a hold away, after writing down who did so and why.

    Raises:
        LedgerNotFoundError: there is no such hold.
    """
    key = HOLD.key(scope)

    def note(digest: str) -> None:
        lift = HoldLift(
            hold_key=key,
            hold_sha256=digest,
            reason=reason,
            author=author,
            lifted_at=stack.now(),
            writer=stack.writer,
        )
        stack.book.create(keys.hold_lift(uuid4()), lift)
        reach("hold.lift_recorded")

    taken = take_away(stack, key, note)
    if taken is Taken.NOT_THERE:
        raise LedgerNotFoundError(f"{key}: no such hold; `tierkeeper hold list` prints all")
    if taken is Taken.AWAY:
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
