"""Where a topic is, by every broker that may have it: registered now, or remembered.

Owns the record of brokers seen, in the bucket: addresses that were registered when they were
written, so that our token goes to brokers of this cluster alone. A run writes what it saw, if
nobody else did, and leaves nobody out. A record that cannot be written is told, and hurts later
runs, not this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.broker_memory import remember, to_ask
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.broker_models import BrokerGone, BrokersSeen, SeenBroker
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.store import Node
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace

LOOK_EVERY_S = 60.0  # at what is registered, for the record; locate itself asks anew
REFRESH = timedelta(hours=1)

Found = tuple[ManagedLedger, Node]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBrokers:
    """Brokers as of one look: `away` are not registered and must be asked all the same."""

    registered: tuple[str, ...]
    seen: tuple[SeenBroker, ...]
    away: tuple[str, ...]
    store_now: datetime
    looked_at: float


def locate(stack: Stack, ml_name: str, found: Found | None) -> TopicPlace:
    """Whether a broker has the topic in memory. `found` is its node, read before. Loads nothing.

    Not loaded only where every broker of broker.memory_s says so; see BrokerAdmin.locate. One that
    was registered at the last look may have lost its session since.
    """
    known = known_brokers(stack)
    place = stack.broker.locate(
        topic_of(ml_name),
        remembered=(*known.registered, *known.away),
        quiet_s=_quiet_s(stack, known, found),
    )
    if known.away and place.load is not TopicLoad.LOADED:
        _write(stack, known, answered={*known.away} - {*place.silent})
    return place


def known_brokers(stack: Stack) -> KnownBrokers:
    """Registered and remembered ones; looked at anew every LOOK_EVERY_S, and written down."""

    def look() -> KnownBrokers:
        known, stored = look_at_brokers(stack)
        _write(stack, known, answered=set(), stored=stored)
        return known

    return stack.memory.ask("brokers", look, now=stack.monotonic, age_max_s=LOOK_EVERY_S)


def look_at_brokers(stack: Stack) -> tuple[KnownBrokers, Stored[BrokersSeen] | None]:
    """The same now, and the record that tells of those remembered. Writes nothing."""
    registered = tuple(stack.broker.list_brokers())
    store_now, looked_at = stack.objects.server_time(), stack.monotonic()
    stored = stack.book.read(BrokersSeen, keys.BROKERS_SEEN)
    seen = () if stored is None else stored.record.brokers
    known = KnownBrokers(
        registered=registered,
        seen=seen,
        away=to_ask(
            seen,
            registered={*registered},
            gone=_declared_gone(stack) if {b.name for b in seen} - {*registered} else {},
            now=store_now,
            memory=_memory(stack),
        ),
        store_now=store_now,
        looked_at=looked_at,
    )
    return known, stored


def _declared_gone(stack: Stack) -> dict[str, datetime]:
    """When people said so last, by broker; the store's time of it."""
    gone: dict[str, datetime] = {}
    for stored in stack.book.iter_records(BrokerGone, keys.BROKERS_GONE):
        record = stored.record
        gone[record.broker] = max(record.gone_at, gone.get(record.broker, record.gone_at))
    return gone


def _write(
    stack: Stack,
    known: KnownBrokers,
    *,
    answered: set[str],
    stored: Stored[BrokersSeen] | None = None,
) -> None:
    """Write what was seen over what stands now. Another run's write in between is the newer one."""
    if _merged(stack, known, known.seen, answered) is None:
        return
    stored = stored or stack.book.read(BrokersSeen, keys.BROKERS_SEEN)
    merged = _merged(stack, known, () if stored is None else stored.record.brokers, answered)
    if merged is None:
        return
    record = BrokersSeen(brokers=merged, written_at=stack.now(), writer=stack.writer)
    try:
        if stored is None:
            stack.book.create(keys.BROKERS_SEEN, record)
        else:
            stack.book.replace(stored, record)
    except ObjectStoreError as error:  # another run was faster, or we may only read
        stack.narrate(f"the brokers seen were not written down: {error}")


def _merged(
    stack: Stack, known: KnownBrokers, seen: tuple[SeenBroker, ...], answered: set[str]
) -> tuple[SeenBroker, ...] | None:
    return remember(
        seen,
        registered=known.registered,
        answered=answered,
        now=known.store_now,
        memory=_memory(stack),
        refresh=REFRESH,
    )


def _memory(stack: Stack) -> timedelta:
    return timedelta(seconds=stack.settings.broker.memory_s)


def _quiet_s(stack: Stack, known: KnownBrokers, found: Found | None) -> float:
    """For how long nobody has written the topic's node, by the slower of our clock and the store's.

    None of it counts where a load leaves no trace: a broker does not write a terminated topic.
    """
    if found is None or found[0].terminated_at is not None:
        return 0.0
    store_now = known.store_now + timedelta(seconds=stack.monotonic() - known.looked_at)
    now_ms = min(store_now, stack.now()).timestamp() * 1000
    return max(0.0, (now_ms - found[1].stat.mtime_ms) / 1000)
