"""May this topic's ledgers be published? design section 6.2, step 1 and the refusals around it.

Owns: a broker has no fallback to bookies, so a context is published only where the topic's
effective offload policy reads exactly our bucket, at every broker that may serve the topic next,
and where none of them skips what it fails to read; and a broker's own deletion lag asks for no
certificate, so it must be off or far longer than ours. Each refusal says what lifts it.

A topic may move to any live broker at any time: the one that answers for it today says nothing
about the next. What a configuration does not show (credentials, a missing offloader archive) only
the read through the topic's own broker proves.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from tiering_assets.ground.reasons import NotNow
from tiering_assets.resources.pulsar.offload_policies import EffectiveOffloadPolicies


@dataclass(frozen=True, slots=True, kw_only=True)
class OurPlace:
    """Driver name, bucket, region and endpoint that our objects are written to."""

    driver: str
    bucket: str
    region: str
    endpoint: str


def offloads_on_its_own(policy: EffectiveOffloadPolicies) -> bool:
    """Negative and missing thresholds are off; zero selects every closed ledger."""
    thresholds = (policy.threshold_bytes, policy.threshold_seconds)
    return any(limit is not None and limit >= 0 for limit in thresholds)


def place_differences(
    policy: EffectiveOffloadPolicies, ours: OurPlace
) -> list[tuple[str, str | None, str]]:
    """(field, the broker's value, ours) where they differ.

    A driver's case is no difference, nor is an endpoint's or its trailing slash. Bucket and region
    must be equal to the letter: some stores have buckets that differ in case alone.
    """
    pairs = (
        ("driver", policy.driver, ours.driver),
        ("bucket", policy.bucket, ours.bucket),
        ("region", policy.region, ours.region),
        ("endpoint", policy.endpoint, ours.endpoint),
    )
    return [
        (name, theirs, mine)
        for name, theirs, mine in pairs
        if _comparable(name, theirs or "") != _comparable(name, mine)
    ]


def _comparable(name: str, value: str) -> str:
    match name:
        case "driver":
            return value.lower()
        case "endpoint":
            return value.rstrip("/").lower()
        case _:
            return value


def place_digest(policy: EffectiveOffloadPolicies) -> str:
    """Changes whenever the place a broker reads from changes; a canary is bound to it."""
    place = [policy.driver, policy.bucket, policy.region, policy.endpoint]
    return sha256(json.dumps(place).encode()).hexdigest()


SKIP_SETTING = "autoSkipNonRecoverableData"
STOP_SKIPPING = f"pulsar-admin brokers update-dynamic-config --config {SKIP_SETTING} --value false"
_DRIVER_SETTING = "managedLedgerOffloadDriver"
_ABOVE_BROKERS = ("topic", "namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSeen:
    """One live broker by its `host:port`. `driver` is its own, below the namespace's policy.

    `skips` is autoSkipNonRecoverableData; None where it does not say.
    """

    name: str
    driver: str | None
    skips: bool | None


def broker_seen(name: str, config: Mapping[str, str]) -> BrokerSeen:
    """Read a broker's runtime configuration."""
    said = config.get(SKIP_SETTING, "").lower()
    return BrokerSeen(
        name=name,
        driver=config.get(_DRIVER_SETTING) or None,
        skips={"true": True, "false": False}.get(said),
    )


def without_driver(brokers: Iterable[BrokerSeen], driver: str) -> tuple[BrokerSeen, ...]:
    """Brokers whose own driver is not `driver`; its case does not matter."""
    return tuple(b for b in brokers if (b.driver or "").lower() != driver.lower())


def cannot_read(
    brokers: Iterable[BrokerSeen], policy: EffectiveOffloadPolicies, driver: str
) -> tuple[BrokerSeen, ...]:
    """Brokers that would not read the topic's objects.

    A driver that the topic's or the namespace's policy names is every broker's.
    """
    if policy.origins.get("driver") in _ABOVE_BROKERS:
        return ()
    return without_driver(brokers, driver)


def skipping(brokers: Iterable[BrokerSeen]) -> tuple[BrokerSeen, ...]:
    """Brokers that skip what they fail to read, or do not say."""
    return tuple(broker for broker in brokers if broker.skips is not False)


def not_skipping(brokers: Iterable[BrokerSeen]) -> tuple[BrokerSeen, ...]:
    """The same brokers, taken as if none skipped: for what a skipping broker makes urgent."""
    return tuple(replace(broker, skips=False) for broker in brokers)


def names(brokers: Iterable[BrokerSeen]) -> str:
    """`host:port`s for a message."""
    return ", ".join(broker.name for broker in brokers)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishEvidence:
    """Fresh facts about one topic. `listed` is what admin says; None is unknown."""

    topic: str
    namespace: str
    never_touched: str | None
    listed: bool | None
    policy: EffectiveOffloadPolicies
    brokers: tuple[BrokerSeen, ...]
    ours: OurPlace
    deletion_lag_s: float
    broker_may_release: bool
    coexist: bool
    clock_skew_s: float
    clock_skew_max_s: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, with both values, and the command or setting that lifts it; empty if nothing
    does.
    """

    text: str
    lift: str

    def __str__(self) -> str:
        return f"{self.text}. To lift it: {self.lift}" if self.lift else self.text


@dataclass(frozen=True, slots=True)
class Publish:
    """Nothing forbids it."""


LAG_FACTOR = 10
# The setting of ours behind each field of a place: one that was typed wrong is the likelier mistake
# where brokers have served from theirs.
OUR_SETTINGS = {
    "driver": "offload.driver",
    "bucket": "store.bucket",
    "region": "store.region",
    "endpoint": "store.endpoint",
}


def decide_publish(evidence: PublishEvidence) -> Publish | NotNow[Refusal]:
    """Return Publish only when every condition is positively known to be met."""
    refusals = [
        *_topic(evidence),
        *_place(evidence),
        *_other_brokers(evidence),
        *_broker_lag(evidence),
        *_auto_offload(evidence),
        *_clock(evidence),
    ]
    return NotNow(tuple(refusals)) if refusals else Publish()


def _topic(evidence: PublishEvidence) -> list[Refusal]:
    if evidence.never_touched is not None:
        return [Refusal(f"{evidence.topic}: {evidence.never_touched}", "")]
    if evidence.listed is None:
        return [Refusal(f"{evidence.topic}: the broker did not say if it exists", "try again")]
    if not evidence.listed:
        return [Refusal(f"{evidence.topic}: the broker lists no such topic", "")]
    return []


def _place(evidence: PublishEvidence) -> list[Refusal]:
    differences = place_differences(evidence.policy, evidence.ours)
    if not differences:
        return []
    wrong = [f"{name} is {theirs!r}, ours is {mine!r}" for name, theirs, mine in differences]
    settings = ", ".join(OUR_SETTINGS[name] for name, _theirs, _mine in differences)
    return [
        Refusal(
            f"{evidence.topic}: its broker would not read our bucket: {', '.join(wrong)}",
            f"correct {settings} if ours is the mistake; else "
            + _at_topic_level(evidence, *OUR_SETTINGS)
            + f"configure the brokers' offloader, or {_set_place(evidence)}",
        )
    ]


def _set_place(evidence: PublishEvidence) -> str:
    """The command that has every broker read the namespace from our place."""
    command = ["pulsar-admin", "namespaces", "set-offload-policies", evidence.namespace]
    for name in OUR_SETTINGS:
        value: str = getattr(evidence.ours, name)
        command += [f"--{name}", value] if value else []
    return shlex.join(command)


def _other_brokers(evidence: PublishEvidence) -> list[Refusal]:
    """Any broker may be the next to serve the topic, and has no fallback to bookies either."""
    refusals = []
    blind = cannot_read(evidence.brokers, evidence.policy, evidence.ours.driver)
    if blind and not _place(evidence):
        drivers = ", ".join(f"{broker.name} has {broker.driver!r}" for broker in blind)
        refusals.append(
            Refusal(
                f"{evidence.topic}: not every broker that may serve it reads our objects: offload "
                f"driver of {drivers}, ours is {evidence.ours.driver!r}",
                f"configure the offloader of every broker, or {_set_place(evidence)}",
            )
        )
    if skips := skipping(evidence.brokers):
        refusals.append(
            Refusal(
                f"{evidence.topic}: after a passing read failure its readers would lose a whole "
                f"ledger: {SKIP_SETTING} is not false at {names(skips)}",
                STOP_SKIPPING,
            )
        )
    return refusals


def _broker_lag(evidence: PublishEvidence) -> list[Refusal]:
    lag_ms = evidence.policy.deletion_lag_ms
    wanted_s = LAG_FACTOR * evidence.deletion_lag_s
    if evidence.broker_may_release or lag_ms is None or lag_ms >= wanted_s * 1000:
        return []
    return [
        Refusal(
            f"{evidence.topic}: the broker itself deletes bookie copies {lag_ms / 1000:g} s after "
            f"publication, without a certificate. Our lag is {evidence.deletion_lag_s:g} s; the "
            f"broker's must be at least {LAG_FACTOR} times that",
            _at_topic_level(evidence, "deletion_lag_ms")
            + f"pulsar-admin namespaces set-offload-deletion-lag {evidence.namespace} "
            f"--lag {max(1, math.ceil(wanted_s))}s (or publish.broker_may_release = true)",
        )
    ]


def _auto_offload(evidence: PublishEvidence) -> list[Refusal]:
    policy = evidence.policy
    if evidence.coexist or not offloads_on_its_own(policy):
        return []
    return [
        Refusal(
            f"{evidence.topic}: its broker offloads on its own (threshold {policy.threshold_bytes} "
            f"bytes, {policy.threshold_seconds} seconds)",
            _at_topic_level(evidence, "threshold_bytes", "threshold_seconds")
            + f"pulsar-admin namespaces set-offload-threshold {evidence.namespace} --size -1 --time -1 "
            f"(or publish.coexist = true)",
        )
    ]


def _at_topic_level(evidence: PublishEvidence, *fields: str) -> str:
    """What comes before a namespace's command where the topic's own policy hides the
    namespace's.
    """
    if all(evidence.policy.origins.get(name) != "topic" for name in fields):
        return ""
    topic = shlex.quote(evidence.topic)
    return f"pulsar-admin topicPolicies remove-offload-policies {topic} (it is set there), then "


def _clock(evidence: PublishEvidence) -> list[Refusal]:
    if abs(evidence.clock_skew_s) <= evidence.clock_skew_max_s:
        return []
    return [
        Refusal(
            f"our clock is {evidence.clock_skew_s:+.0f} s off the object store's, "
            f"{evidence.clock_skew_max_s:g} s are allowed",
            "set this machine's clock",
        )
    ]
