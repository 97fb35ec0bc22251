"""Brokers that were seen, for people: who is registered, who answers, and who is said to be gone.

Owns: the word that a broker's process has ended is not taken of one that is registered or answers,
nor of one that nobody has seen, whose name may be misspelt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.brokers_seen import KnownBrokers, look_at_brokers
from tiering_assets.records import keys
from tiering_assets.records.broker_models import BrokerGone
from tiering_assets.resources.errors import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNow:
    """`is_asked`: not registered, and asked before a topic counts as not loaded."""

    name: str
    registered: bool
    answers: bool
    is_asked: bool
    seen_at: datetime


def list_brokers(stack: Stack) -> list[BrokerNow]:
    """Every broker that is registered or remembered, by name; each is asked once. Writes
    nothing.
    """
    known, _stored = look_at_brokers(stack)
    seen = {broker.name: broker.seen_at for broker in known.seen}
    return [
        BrokerNow(
            name=name,
            registered=name in known.registered,
            answers=stack.broker.answers(name),
            is_asked=name in known.away,
            seen_at=known.store_now if name in known.registered else seen[name],
        )
        for name in sorted({*seen, *known.registered})
    ]


def declare_gone(stack: Stack, broker: str, *, reason: str, author: str) -> None:
    """Keep a person's word that a broker's process has ended.

    Raises:
        RefusedError: it is registered, or answers, or was never seen.
    """
    require_gone(stack, broker)
    stack.book.create(
        keys.broker_gone(stack.new_uid()),
        BrokerGone(
            broker=broker,
            reason=reason,
            author=author,
            gone_at=stack.objects.server_time(),
            writer=stack.writer,
        ),
    )


def require_gone(stack: Stack, broker: str) -> None:
    """RefusedError for one that is registered, or answers, or was never seen."""
    known, _stored = look_at_brokers(stack)
    why = _why_not_gone(stack, known, broker)
    if why is not None:
        raise RefusedError(f"broker {broker}: {why}")


def _why_not_gone(stack: Stack, known: KnownBrokers, broker: str) -> str | None:
    if broker in known.registered:
        return "it is registered now, so it is not gone"
    seen = sorted(one.name for one in known.seen)
    if broker not in seen:
        return (
            f"it was never seen; those that are not registered: {', '.join(known.away) or 'none'}"
        )
    if stack.broker.answers(broker):
        return "it answers, so its process runs and may serve topics; stop it first"
    return None
