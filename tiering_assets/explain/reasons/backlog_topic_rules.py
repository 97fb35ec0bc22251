"""What a topic's policy puts in the way of its ledgers, for the backlog's reasons. Pure.

Owns: the publish gate asks a broker right before it acts; this judges the policy that was read for
many topics at once, by the same rules. What a level that was not asked might say forbids nothing
here, but a broker that could not be asked is unknown, and nothing is published then.
"""

from __future__ import annotations

from tiering_assets.explain.reasons.backlog_reason import TopicBlockers
from tiering_assets.look.topic.publish_gate import LAG_FACTOR, OurPlace, place_differences
from tiering_assets.policy.policy import EffectivePolicy, Origin
from tiering_assets.policy.policy_rules import refusals
from tiering_assets.resources.pulsar.offload_policies import EffectiveOffloadPolicies

MS_PER_SECOND = 1000


def facts_of_policy(
    policy: EffectivePolicy,
    ours: OurPlace,
    *,
    unknown: str | None,
    broker_may_release: bool,
    coexist: bool,
) -> TopicBlockers:
    """`unknown` says which level that was asked did not answer, and why; None where all did."""
    refused = refusals(policy)
    return TopicBlockers(
        refused="; ".join(f"{found.rule}: {found.text}" for found in refused) or None,
        cannot_read=_cannot_read(policy, ours, unknown),
        may_release_first=None if broker_may_release else _may_release_first(policy),
        coexists=None if coexist else _coexists(policy),
    )


def _cannot_read(policy: EffectivePolicy, ours: OurPlace, unknown: str | None) -> str | None:
    if unknown is not None:
        return f"where it reads is unknown, and nothing is published meanwhile: {unknown}"
    theirs = EffectiveOffloadPolicies(
        driver=policy.driver.value,
        bucket=policy.bucket.value,
        endpoint=policy.endpoint.value,
        region=policy.region.value,
        deletion_lag_ms=None,
        threshold_bytes=None,
        threshold_seconds=None,
        read_priority=None,
    )
    # Fields in a driver's own names show only in the topic's merge: unset elsewhere says nothing.
    unsaid = {
        name
        for name, value in (
            ("driver", policy.driver),
            ("bucket", policy.bucket),
            ("endpoint", policy.endpoint),
            ("region", policy.region),
        )
        if value.value is None and value.origin is Origin.UNKNOWN
    }
    wrong = [
        f"{name} is {found!r}, ours is {mine!r}"
        for name, found, mine in place_differences(theirs, ours)
        if name not in unsaid
    ]
    return ", ".join(wrong) or None


def _may_release_first(policy: EffectivePolicy) -> str | None:
    lag_ms = policy.broker_lag_ms.value
    ours_s = policy.deletion_lag_s.value_or(0.0)
    if lag_ms is None or lag_ms >= LAG_FACTOR * ours_s * MS_PER_SECOND:
        return None
    return (
        f"its deletion lag is {lag_ms / MS_PER_SECOND:g} s, ours is {ours_s:g} s, and it must be at "
        f"least {LAG_FACTOR} times that, or publish.broker_may_release = true"
    )


def _coexists(policy: EffectivePolicy) -> str | None:
    if not policy.broker_offloads:
        return None
    return "publish.coexist = false, and its broker offloads by a threshold of its own"
