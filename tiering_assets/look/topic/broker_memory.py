"""Which brokers must be asked before a topic counts as not loaded: more than those registered now.

Owns: a broker whose ZooKeeper session expired is not registered, and may go on serving what it has
in memory (`zookeeperSessionExpiredPolicy=reconnect`). Waiting alone never makes one count as gone:
it is forgotten when it has answered since and was not registered for `memory`, or when a person
says that its process has ended. Being registered again takes that word back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from datetime import datetime, timedelta

from tiering_assets.records.broker_models import SeenBroker


def to_ask(
    known: Iterable[SeenBroker],
    *,
    registered: Set[str],
    gone: Mapping[str, datetime],
    now: datetime,
    memory: timedelta,
) -> tuple[str, ...]:
    """Brokers that are not registered now and may serve topics all the same, sorted."""
    return tuple(
        sorted(
            broker.name
            for broker in known
            if broker.name not in registered
            and not _is_declared_gone(broker, gone)
            and not is_forgotten(broker, now=now, memory=memory)
        )
    )


def _is_declared_gone(broker: SeenBroker, gone: Mapping[str, datetime]) -> bool:
    said_at = gone.get(broker.name)
    return said_at is not None and said_at >= broker.seen_at


def is_forgotten(broker: SeenBroker, *, now: datetime, memory: timedelta) -> bool:
    """True when it answered after it was last registered, and that is longer ago than `memory`."""
    answered = broker.answered_at is not None and broker.answered_at > broker.seen_at
    return answered and now - broker.seen_at > memory


def remember(
    known: Iterable[SeenBroker],
    *,
    registered: Iterable[str],
    answered: Iterable[str],
    now: datetime,
    memory: timedelta,
    refresh: timedelta,
) -> tuple[SeenBroker, ...] | None:
    """What to write down after these were seen; None when the record is new enough.

    Nobody is left out for not being seen: one run may see a part of the cluster.
    """
    before = {broker.name: broker for broker in known}
    after = dict(before)
    for name in registered:
        found = before.get(name)
        if found is None or now - found.seen_at > refresh:
            after[name] = SeenBroker(name=name, seen_at=now)
    for name in answered:
        found = after.get(name)
        if found is not None and (found.answered_at is None or now - found.answered_at > refresh):
            after[name] = replace(found, answered_at=now)
    if after == before:
        return None
    kept = (b for b in after.values() if not is_forgotten(b, now=now, memory=memory))
    return tuple(sorted(kept, key=lambda broker: broker.name))
