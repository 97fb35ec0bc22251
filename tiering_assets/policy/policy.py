"""The policy in force for one topic: topic over namespace over broker over ours, field by field.

Owns: every field carries its value and where it came from. What a value means is Pulsar's:
* thresholds: a negative one switches the broker's automatic offload off and hides the levels below
  it, so ours from tiering.toml applies; 0 selects every closed ledger;
* the broker's deletion lag: not set means that the broker never deletes a bookie copy; it is never
  the lag that we wait, which is release.deletion_lag_s (local retention, in Kafka's words);
* retention, both tiers together: -1 is unlimited, 0 keeps nothing that is acknowledged; TTL 0 is
none. What cannot be is refused with both values (see policy_rules.py). A level that could not be
asked makes every field below it uncertain, and then nothing may be published or released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from tiering_assets.ground.own_policy import (
    OwnPolicies,
    OwnPolicy,
    PauseInForce,
    TieringMode,
    mode_words,
    switched_off,
)
from tiering_assets.ground.reasons import Wait
from tiering_assets.look.topic.publish_gate import broker_seen
from tiering_assets.policy.selection import Thresholds
from tiering_assets.resources.pulsar.offload_policies import merge_offload_policies
from tiering_assets.resources.pulsar.policy_levels import PolicyLevel, PulsarLevels

T = TypeVar("T", int, float, str)


class Origin(StrEnum):
    """Where a value came from. UNSET: no level sets it. UNKNOWN: a level that might was not
    asked.
    """

    TOPIC = "topic"
    NAMESPACE = "namespace"
    BROKER = "broker"
    OWN_TOPIC = "tiering.toml topic"
    OWN_NAMESPACE = "tiering.toml namespace"
    OWN_DEFAULT = "tiering.toml default"
    PAUSE_TOPIC = "pause of topic"
    PAUSE_NAMESPACE = "pause of namespace"
    PAUSE_ALL = "pause of all"
    SETTING = "setting"
    DEFAULT = "default"
    UNSET = "not set"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    """`certain` is False where a level above that was not asked may say otherwise."""

    value: T | None
    origin: Origin
    certain: bool = True

    def value_or(self, fallback: T) -> T:
        return fallback if self.value is None else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy:
    """All fields of one topic, as set: negative thresholds are off, retention -1 is unlimited.

    `broker_offloads`: a threshold of Pulsar's own is active, so the broker copies by itself, too.
    `skips_unreadable`: the broker that answers skips a ledger that it fails to read.
    """

    topic: str
    mode: Value[str]
    threshold_bytes: Value[int]
    threshold_seconds: Value[int]
    broker_lag_ms: Value[int]
    deletion_lag_s: Value[float]
    retention_minutes: Value[int]
    retention_megabytes: Value[int]
    ttl_s: Value[int]
    driver: Value[str]
    bucket: Value[str]
    endpoint: Value[str]
    region: Value[str]
    read_priority: Value[str]
    broker_offloads: bool
    read_from: str
    skips_unreadable: bool = False
    unknown: tuple[str, ...] = ()
    switched_off: Wait | None = None

    @property
    def complete(self) -> bool:
        """True when every level was asked. Else nothing may be published or released."""
        return not self.unknown

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(bytes=self.threshold_bytes.value, seconds=self.threshold_seconds.value)


def effective_policy(
    topic: str,
    levels: PulsarLevels,
    own: OwnPolicies,
    *,
    deletion_lag_s: float,
    lag_is_default: bool = True,
    pauses: Sequence[PauseInForce] = (),
) -> EffectivePolicy:
    """Merge all levels. `topic` is a full name; `deletion_lag_s` is release.deletion_lag_s,
    and `pauses` are those that cover the topic.

    Raises:
        BrokerError: the broker's own merge contradicts what its levels say.
    """
    merge = _LevelMerge(levels, own.of_topic(topic))
    place = merge_offload_policies(levels.answers(), topic=topic)

    def placed(value: str | None, name: str) -> Value[str]:
        origin = Origin(place.origins[name]) if value is not None else merge.nowhere
        return Value(value, origin, merge.certain)

    theirs = [
        merge.pulsar(lambda x: x.threshold_bytes),
        merge.pulsar(lambda x: x.threshold_seconds),
    ]
    return EffectivePolicy(
        topic=topic,
        mode=_mode(own, topic, pauses),
        threshold_bytes=merge.threshold(theirs[0], lambda x: x.threshold_bytes),
        threshold_seconds=merge.threshold(theirs[1], lambda x: x.threshold_seconds),
        broker_lag_ms=merge.pulsar(lambda x: x.deletion_lag_ms),
        deletion_lag_s=Value(deletion_lag_s, Origin.DEFAULT if lag_is_default else Origin.SETTING),
        retention_minutes=merge.pulsar(
            lambda x: None if x.retention is None else x.retention.minutes
        ),
        retention_megabytes=merge.pulsar(
            lambda x: None if x.retention is None else x.retention.megabytes
        ),
        ttl_s=merge.pulsar(lambda x: x.ttl_s),
        driver=placed(place.driver, "driver"),
        bucket=placed(place.bucket, "bucket"),
        endpoint=placed(place.endpoint, "endpoint"),
        region=placed(place.region, "region"),
        read_priority=placed(place.read_priority, "read_priority"),
        broker_offloads=any(x.value is not None and x.value >= 0 for x in theirs),
        read_from=levels.read_from,
        skips_unreadable=broker_seen("", levels.broker_config).skips is True,
        unknown=tuple(f"{level} level: {why}" for level, why in sorted(levels.unknown.items())),
        switched_off=switched_off(own, topic, pauses),
    )


class _LevelMerge:
    """Looks a field up, from the strongest level to the weakest."""

    def __init__(self, levels: PulsarLevels, own: tuple[tuple[str, OwnPolicy], ...]) -> None:
        self._levels = (
            (Origin.TOPIC, levels.topic),
            (Origin.NAMESPACE, levels.namespace),
            (Origin.BROKER, levels.broker),
        )
        self._own = tuple((Origin(f"tiering.toml {scope}"), policy) for scope, policy in own)
        self.certain = levels.topic is not None
        self.nowhere = Origin.UNSET if levels.complete else Origin.UNKNOWN

    def pulsar(self, pick: Callable[[PolicyLevel], int | None]) -> Value[int]:
        """The first level that sets it. A None that may be set at an unknown level is uncertain."""
        for origin, level in self._levels:
            found = None if level is None else pick(level)
            if found is not None:
                return Value(found, origin, self.certain)
        return Value(None, self.nowhere, self.nowhere is Origin.UNSET)

    def threshold(self, theirs: Value[int], pick: Callable[[OwnPolicy], int | None]) -> Value[int]:
        """Theirs where it is on, else ours where we have one."""
        if theirs.value is not None and theirs.value >= 0:
            return theirs
        for origin, policy in self._own:
            found = pick(policy)
            if found is not None:
                return Value(found, origin, theirs.certain)
        return theirs


def _mode(own: OwnPolicies, topic: str, pauses: Sequence[PauseInForce]) -> Value[str]:
    for word in mode_words(own, topic, pauses):
        return Value(word.mode.value, Origin(word.origin))
    return Value(TieringMode.ENABLED.value, Origin.DEFAULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """One field as people see it. `value` is as set, None where nothing is; `meaning` explains
    it.
    """

    name: str
    value: int | float | str | None
    meaning: str
    origin: str
    certain: bool


def rows(policy: EffectivePolicy) -> Iterator[PolicyRow]:
    """Every field under Pulsar's own name."""
    off = policy.switched_off
    yield _row("tiering", policy.mode, lambda mode: str(mode if off is None else off))
    yield _row("managedLedgerOffloadThresholdInBytes", policy.threshold_bytes, _threshold("B"))
    yield _row("managedLedgerOffloadThresholdInSeconds", policy.threshold_seconds, _threshold("s"))
    yield _row("release.deletion_lag_s", policy.deletion_lag_s, lambda lag: f"{lag or 0:g} s")
    yield _row("managedLedgerOffloadDeletionLagInMillis", policy.broker_lag_ms, _broker_lag)
    yield _row("retentionTimeInMinutes", policy.retention_minutes, _retention("min"))
    yield _row("retentionSizeInMB", policy.retention_megabytes, _retention("MB"))
    yield _row("messageTTLInSeconds", policy.ttl_s, lambda ttl: f"{ttl} s" if ttl else "none")
    yield _row("managedLedgerOffloadDriver", policy.driver, _text)
    yield _row("managedLedgerOffloadBucket", policy.bucket, _text)
    yield _row("managedLedgerOffloadServiceEndpoint", policy.endpoint, _text)
    yield _row("managedLedgerOffloadRegion", policy.region, _text)
    yield _row("managedLedgerOffloadedReadPriority", policy.read_priority, _text)


def _row(name: str, found: Value[T], mean: Callable[[T | None], str]) -> PolicyRow:
    unknown = found.value is None and found.origin is Origin.UNKNOWN
    return PolicyRow(
        name=name,
        value=found.value,
        meaning="unknown" if unknown else mean(found.value),
        origin=found.origin.value,
        certain=found.certain,
    )


def _threshold(unit: str) -> Callable[[int | None], str]:
    return lambda value: "off" if value is None or value < 0 else f"{value} {unit}"


def _broker_lag(value: int | None) -> str:
    if value is None:
        return "the broker never deletes"
    return f"{value / 1000:g} s" if value >= 0 else "the broker deletes at once"


def _retention(unit: str) -> Callable[[int | None], str]:
    def mean(value: int | None) -> str:
        if value is None or value < 0:
            return "unlimited"
        return f"{value} {unit}" if value else f"0 {unit}: only what is not acknowledged"

    return mean


def _text(value: str | None) -> str:
    return value or "-"
