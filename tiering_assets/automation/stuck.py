"""What stands still and will not move by itself, for one bounded look. Reads only, loads no topic.

Owns: a broker is asked where a topic is before anything else of it, and only about topics that are
suspect by their node; cursors are read of those alone that nobody has loaded. Retention is the
namespace's: asking for a topic's own would make a broker own its bundle.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from tiering_assets.automation.stuck_rules import (
    DEAD_CLAIM_MAX,
    ClosingTimes,
    Rollover,
    Stuck,
    dead_claim,
    open_too_long,
    retention_overdue,
)
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.claims import read_claim
from tiering_assets.look.topic.brokers_seen import locate
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.look.topic.user_topics import Topic
from tiering_assets.policy.policies import Policies
from tiering_assets.policy.policy import EffectivePolicy
from tiering_assets.records.keys import claimed_by
from tiering_assets.records.models import Claim
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.pulsar.admin import TopicLoad
from tiering_assets.retention.expiry import AgingTopic, judge_by, read_node

_MINUTE_S = 60
_CLAIMS_AT_ONCE = 256
_MIB = 1024 * 1024
_LOADED = {TopicLoad.LOADED: True, TopicLoad.NOT_LOADED: False, TopicLoad.UNKNOWN: None}


def dead_claims(
    stack: Stack, *, after: str | None, seconds: float
) -> tuple[list[Stuck], str | None]:
    """Claims of runs that ended without dropping them, and the key to go on after when time is up.

    Of claims that died so long ago that they are told no more none is read.
    """
    deadline = stack.monotonic() + seconds
    store_now = stack.objects.server_time()
    longest = DEAD_CLAIM_MAX + timedelta(seconds=2 * stack.settings.offload.claim_ttl_s)
    recent = stack.book.keys_since("claims/", store_now - longest)
    keys = [key for key in recent if after is None or key > after]
    found: list[Stuck] = []
    for start in range(0, len(keys), _CLAIMS_AT_ONCE):
        if start and stack.monotonic() >= deadline:
            return found, keys[start - 1]
        some = keys[start : start + _CLAIMS_AT_ONCE]
        for stored in stack.in_parallel(lambda key: read_claim(stack, claimed_by(key)), some):
            dead = None if stored is None else _dead(stored.record, store_now)
            found += [dead] if dead is not None else []
    return found, None


def _dead(claim: Claim, store_now: datetime) -> Stuck | None:
    return dead_claim(
        claim.ledger_id, claim.run_id, expires_at=claim.expires_at, store_now=store_now
    )


class StuckTopics:
    """One look at topics: open ledgers past auto.open_after_s, and retention nobody applies."""

    def __init__(self, stack: Stack, policies: Policies) -> None:
        self._stack = stack
        self._policies = policies
        self._now = stack.now()
        self._limit = timedelta(seconds=stack.settings.auto.open_after_s)
        self._rollover = _rollover(stack)

    def may_be(self, topics: Iterable[ClosingTimes]) -> list[str]:
        """Of these topics those in which something may stand still, by their namespaces' retention.

        A ledger is opened after the one before was closed.
        """
        retentions = dict[str, timedelta | None]()
        found = []
        for one in topics:
            if one.namespace not in retentions:
                retentions[one.namespace] = self._retention_of(topic_of(one.topic))
            retention = retentions[one.namespace]
            aged = self._is_before(one.oldest, retention)
            limit = self._limit if retention is None else min(self._limit, retention)
            opened = one.has_open and (one.newest is None or self._is_before(one.newest, limit))
            if aged or opened:
                found.append(one.topic)
        return found

    def _is_before(self, at: datetime | None, age: timedelta | None) -> bool:
        return at is not None and age is not None and self._now - at > age

    def _retention_of(self, name: str) -> timedelta | None:
        return _retention(self._policies.check(name, ask_topic=False).policy)

    def look(self, topic: Topic) -> list[Stuck]:
        name = topic_of(topic.ml_name)
        policy = self._policies.check(name, ask_topic=False).policy if topic.info.ledgers else None
        retention = _retention(policy)
        opened, aged = self._opened(topic, retention), self._aged(topic, retention)
        if opened is None and not aged:
            return []
        place = locate(self._stack, topic.ml_name, self._stack.topics.read(topic.ml_name))
        found: list[Stuck | None] = []
        if opened is not None:
            found.append(
                open_too_long(
                    name,
                    opened[0],
                    opened_at=opened[1],
                    now=self._now,
                    limit=self._limit,
                    loaded=_LOADED[place.load],
                    rollover=self._rollover,
                    retention=retention,
                )
            )
        if aged and place.load is TopicLoad.NOT_LOADED:
            node = read_node(self._stack, topic.ml_name)
            aging = AgingTopic(ml_name=topic.ml_name, node=node, place=place, policy=policy)
            found.append(retention_overdue(name, judge_by(self._stack, aging).overdue))
        return [one for one in found if one is not None]

    def _opened(self, topic: Topic, retention: timedelta | None) -> tuple[int, datetime] | None:
        """The open ledger and when BookKeeper made it, where that may be too long ago."""
        ledgers = topic.info.ledgers
        if topic.info.terminated_at is not None or not ledgers or not ledgers[-1].is_open:
            return None
        # A ledger is opened after the one before was closed, so most topics cost no request.
        limit = self._limit if retention is None else min(self._limit, retention)
        if any(one.closed_at_ms and self._age(one) < limit for one in ledgers[-2:]):
            return None
        node = self._stack.ledgers.read(ledgers[-1].ledger_id)
        return None if node is None else (ledgers[-1].ledger_id, _moment(node.ctime_ms))

    def _aged(self, topic: Topic, retention: timedelta | None) -> bool:
        """True when a closed ledger is older than the namespace's retention; cursors may keep
        it.
        """
        closed = [one for one in topic.info.ledgers if not one.is_open]
        return retention is not None and any(self._age(one) > retention for one in closed)

    def _age(self, listed: LedgerInfo) -> timedelta:
        return self._now - _moment(listed.closed_at_ms or 0)


def _retention(policy: EffectivePolicy | None) -> timedelta | None:
    minutes = None if policy is None else policy.retention_minutes.value
    return timedelta(minutes=minutes) if minutes is not None and minutes > 0 else None


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _rollover(stack: Stack) -> Rollover | None:
    """The broker's settings for closing a ledger; None where it does not tell."""
    try:
        config = stack.broker.runtime_config()
        return Rollover(
            max_s=float(config["managedLedgerMaxLedgerRolloverTimeMinutes"]) * _MINUTE_S,
            entries=int(config["managedLedgerMaxEntriesPerLedger"]),
            bytes=int(config["managedLedgerMaxSizePerLedgerMbytes"]) * _MIB,
        )
    except (TierkeeperError, KeyError, ValueError):
        return None
