"""Reloading a topic costs its clients: when is it worth it, may it be done, and how often was it?

Facts from the broker, the topic's node and our records for change/disturbance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tiering_assets.change.disturbance import (
    Patience,
    Pending,
    Recent,
    publication_due_at,
    sealed_by_us,
    why_left_alone,
)
from tiering_assets.change.reload_room import ReloadRoom
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.ground.turns import looks
from tiering_assets.look.topic.bookies import why_not_reloadable
from tiering_assets.look.topic.brokers_seen import Found, locate
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, Disturbance
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import BrokerError
from tiering_assets.resources.metastore.cas import EditResult
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.pulsar.activity import TopicActivity
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace
from tiering_assets.resources.settings import PublishSettings

AN_HOUR = timedelta(hours=1)
NOT_DUE = Wait(
    Reason.WAITING_TO_DISTURB,
    "none of publish.pending_bytes, publish.pending_age_s and publish.idle_tail_s is reached for its "
    "topic, and a broker has it loaded",
)


def not_due(
    stack: Stack, ml_name: str, certificates: Mapping[int, Stored[Certificate]]
) -> frozenset[int]:
    """Those of these proven copies that wait, as publishing them is not worth an unload yet."""
    found = stack.topics.read(ml_name)
    if found is None:
        return frozenset()  # publishing tells what happened to the topic
    waiting = {
        ledger_id: certificate.record.payload_bytes
        for ledger_id, certificate in certificates.items()
        if (listed := found[0].ledger(ledger_id)) is not None and listed.offload is None
    }
    if pending_due(stack, found[0], waiting) or _is_idle(stack, ml_name, found):
        return frozenset()
    return frozenset(waiting)


def _is_idle(stack: Stack, ml_name: str, found: Found) -> bool:
    """Nobody has the topic loaded, so that a publication disturbs nobody. Unknown is not idle."""
    try:
        return locate(stack, ml_name, found).load is TopicLoad.NOT_LOADED
    except BrokerError:
        return False


def pending_due(stack: Stack, topic: ManagedLedger, waiting: Mapping[int, int]) -> bool:
    """Whether a topic that was just read is worth an unload; `waiting` are bytes of proven
    copies.
    """
    due_at = pending_due_at(stack.settings.publish, topic, waiting)
    return due_at is not None and due_at <= stack.now()


def pending_due_at(
    settings: PublishSettings, topic: ManagedLedger, waiting: Mapping[int, int]
) -> datetime | None:
    """When a loaded topic is to be reloaded for what waits; see publication_due_at.

    Each context says when it was written, right before our unload: no record is asked for.
    """
    closed_at = {
        listed.ledger_id: listed.closed_at
        for listed in topic.ledgers
        if listed.closed_at is not None
    }
    published_at = {
        datetime.fromtimestamp(listed.offload.timestamp_ms / 1000, UTC)
        for listed in topic.ledgers
        if listed.offload is not None  # a broker's unfinished one says 1970
    }
    return publication_due_at(
        [
            Pending(ledger_id=i, bytes=size, closed_at=closed_at[i])
            for i, size in waiting.items()
            if i in closed_at
        ],
        ours=sealed_by_us(
            closed_at,
            published_at,
            within=timedelta(seconds=settings.confirm_timeout_s),
            clocks_apart=timedelta(seconds=settings.clock_skew_max_s),
        ),
        last_disturbed_at=max(published_at, default=None),
        patience=Patience(
            bytes_min=settings.pending_bytes,
            age_max=timedelta(seconds=settings.pending_age_s),
            idle_tail=timedelta(seconds=settings.idle_tail_s),
        ),
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a topic was before its broker was asked anything about it.

    `idle_version` is the node's version from before nobody was found to have the topic loaded, None
    when somebody may have. A broker that loads a topic writes its node, so as long as nobody but us
    has written since, no broker has an older view; asking for a topic's policies makes a broker own
    its bundle, after which it takes a minute to know that the topic is not loaded.
    """

    place: TopicPlace
    idle_version: int | None

    def still_idle(self, edited: EditResult) -> bool:
        """True when the node's new version shows that nobody but us wrote it since."""
        if self.idle_version is None:
            return False
        return edited.version == self.idle_version + int(edited.changed)


def see(stack: Stack, ml_name: str) -> Seen:
    """Look whether a topic is loaded. To be called before anything else is asked of its broker."""
    found = stack.topics.read(ml_name)
    place = locate(stack, ml_name, found)
    # The broker does not write the node of a terminated topic when it loads it.
    if found is None or found[0].terminated_at is not None:
        return Seen(place, None)
    return Seen(place, found[1].stat.version if place.load is TopicLoad.NOT_LOADED else None)


def must_wait(stack: Stack, ml_name: str, seen: Seen) -> Wait | None:
    """Why the topic may not be reloaded now. One that nobody has loaded is not disturbed at all.

    Bookies come first: asking what a topic is busy with loads it where nobody has.
    """
    if seen.place.load is TopicLoad.NOT_LOADED:
        return None
    short = why_not_reloadable(stack, ml_name, owner=seen.place.broker)
    if short is not None:
        return short
    return _let_in(stack, ml_name, seen.place.broker, _activity(stack, topic_of(ml_name)))


def _let_in(
    stack: Stack, ml_name: str, broker: str | None, activity: TopicActivity | None
) -> Wait | None:
    """The same by what the topic is busy with and by the budgets, beside the topics under way."""
    room, limits = stack.memory.shared(ReloadRoom), stack.settings.disturb
    pauses = looks()
    while True:
        ended = room.ended
        recent = _recent(stack, ml_name, broker)
        wait = why_left_alone(activity, recent, limits)
        if wait is not None:
            return wait
        if room.let_in(ml_name, broker, recent, limits, ended=ended):
            return None
        stack.sleep(next(pauses))


def _activity(stack: Stack, topic: str) -> TopicActivity | None:
    try:
        return stack.broker.activity(topic)
    except BrokerError:
        return None


def _recent(stack: Stack, ml_name: str, broker: str | None) -> Recent:
    since = stack.objects.server_time() - AN_HOUR
    lately = stack.book.filed_since(keys.DISTURBANCES, since)
    by_broker = sum(key.endswith(keys.by_broker(broker)) for key in lately)
    return Recent(
        topic=sum(keys.topic_hash_of(key) == keys.topic_hash(ml_name) for key in lately),
        broker=None if broker is None else by_broker,
        cluster=len(lately),
    )


def record_disturbance(stack: Stack, ml_name: str, broker: str | None, why: str) -> None:
    """Say in the records, before it is done, that the topic is reloaded."""
    hour = stack.objects.server_time()
    stack.book.create(
        keys.disturbance(hour, ml_name, broker, stack.new_uid()),
        Disturbance(
            ml_name=ml_name,
            broker=broker,
            why=why,
            disturbed_at=stack.now(),
            writer=stack.writer,
        ),
    )
