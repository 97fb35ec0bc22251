"""Reloading a topic costs its clients: when is it worth it, may it be done, and how often was it?

Facts from the broker, the topic's node and our records for tiering/disturbance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from resources.errors import BrokerError
from resources.metastore.cas import EditResult
from resources.metastore.ledger_info import ManagedLedger
from resources.pulsar.activity import TopicActivity
from resources.pulsar.admin import TopicLoad, TopicPlace
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, Disturbance
from tiering_assets.steps.bookies import why_not_reloadable
from tiering_assets.steps.brokers_seen import locate
from tiering_assets.steps.publications import recorded_publications
from tiering_assets.steps.record_book import Stored
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.topic_evidence import topic_of
from tiering_assets.tiering.disturbance import (
    Pending,
    Recent,
    sealed_by_us,
    why_left_alone,
    worth_disturbing,
)
from tiering_assets.tiering.reasons import Wait

AN_HOUR = timedelta(hours=1)


def publication_due(
    stack: Stack, ml_name: str, certificates: Mapping[int, Stored[Certificate]]
) -> bool:
    """True when what waits to be published is worth an unload of the topic now."""
    found = stack.topics.read(ml_name)
    if found is None:
        return True  # publishing tells what happened to the topic
    sizes = {i: certificate.record.payload_bytes for i, certificate in certificates.items()}
    return pending_due(stack, ml_name, found[0], sizes)


def pending_due(
    stack: Stack, ml_name: str, topic: ManagedLedger, waiting: Mapping[int, int]
) -> bool:
    """The same of a topic that was just read; `waiting` are bytes of each proven copy."""
    closed_at = {
        listed.ledger_id: listed.closed_at
        for listed in topic.ledgers
        if listed.closed_at is not None
    }
    disturbed = {
        stored.key: stored.record.confirmed_at
        for stored in recorded_publications(stack, ml_name).records
    }
    settings = stack.settings.publish
    return worth_disturbing(
        [
            Pending(ledger_id=i, bytes=size, closed_at=closed_at[i])
            for i, size in waiting.items()
            if i in closed_at
        ],
        ours=sealed_by_us(closed_at, disturbed.values()),
        now=stack.now(),
        last_disturbed_at=max(disturbed.values(), default=None),
        bytes_min=settings.pending_bytes,
        age_max=timedelta(seconds=settings.pending_age_s),
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
    idle = found is not None and found[0].terminated_at is None
    idle = idle and place.load is TopicLoad.NOT_LOADED
    return Seen(place, found[1].stat.version if found is not None and idle else None)


def must_wait(stack: Stack, ml_name: str, seen: Seen) -> Wait | None:
    """Why the topic may not be reloaded now. One that nobody has loaded is not disturbed at all.

    Bookies come first: asking what a topic is busy with loads it where nobody has.
    """
    if seen.place.load is TopicLoad.NOT_LOADED:
        return None
    short = why_not_reloadable(stack, ml_name, owner=seen.place.broker)
    if short is not None:
        return short
    return why_left_alone(
        _activity(stack, topic_of(ml_name)),
        _recent(stack, ml_name, seen.place.broker),
        stack.settings.disturb,
    )


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
