"""What a policy cannot be, told with both values, and what is odd but allowed.

Owns: a ledger must be offloaded before retention takes it, so each offload threshold is below its
retention limit, as Kafka wants local below total retention. A limit of -1 is unlimited, and 0 is no
retention at all (data stays while somebody has not acknowledged it), so neither is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tiering_assets.ground.own_policy import MIB
from tiering_assets.look.topic.publish_gate import LAG_FACTOR, SKIP_SETTING, STOP_SKIPPING
from tiering_assets.policy.policy import EffectivePolicy, Value

SECONDS_PER_MINUTE = 60
MS_PER_SECOND = 1000
UNLIMITED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFinding:
    """`refused`: no new copies of the topic until it is set right. Else a note."""

    rule: str
    refused: bool
    text: str


def check_policy(policy: EffectivePolicy) -> tuple[PolicyFinding, ...]:
    """Everything wrong or odd about one topic's policy, refusals first."""
    found = [*_refusals(policy), *_notes(policy)]
    return tuple(found)


def refusals(policy: EffectivePolicy) -> tuple[PolicyFinding, ...]:
    """What forbids new copies of the topic."""
    return tuple(_refusals(policy))


def _refusals(policy: EffectivePolicy) -> Iterator[PolicyFinding]:
    seconds, minutes = _not_negative(policy.threshold_seconds), _limit(policy.retention_minutes)
    if seconds is not None and minutes is not None and seconds >= minutes * SECONDS_PER_MINUTE:
        yield _refuse(
            "offload_time",
            f"offload time {seconds} s ({policy.threshold_seconds.origin}) is not below retention "
            f"time {minutes} min ({policy.retention_minutes.origin}): retention would delete "
            f"ledgers before they are offloaded",
        )
    size, megabytes = _not_negative(policy.threshold_bytes), _limit(policy.retention_megabytes)
    if size is not None and megabytes is not None and size >= megabytes * MIB:
        yield _refuse(
            "offload_size",
            f"offload size {size} bytes ({policy.threshold_bytes.origin}) is not below retention "
            f"size {megabytes} MB ({policy.retention_megabytes.origin}): retention would delete "
            f"ledgers before they are offloaded",
        )
    for name, value, least in (
        ("retention time", policy.retention_minutes, UNLIMITED),
        ("retention size", policy.retention_megabytes, UNLIMITED),
        ("message TTL", policy.ttl_s, 0),
        ("the broker's deletion lag", policy.broker_lag_ms, 0),
    ):
        if value.value is not None and value.value < least:
            yield _refuse(
                "negative",
                f"{name} is {value.value} ({value.origin}), the least is {least}"
                + (": the broker deletes bookie copies at once" if "lag" in name else ""),
            )


def _notes(policy: EffectivePolicy) -> Iterator[PolicyFinding]:
    if policy.broker_offloads:
        yield _note(
            "broker_offloads",
            "the broker offloads by its own threshold, too, without checking its copies: nothing "
            "is published unless publish.coexist = true",
        )
    lag_ms, wanted_s = policy.broker_lag_ms.value, LAG_FACTOR * policy.deletion_lag_s.value_or(0.0)
    if lag_ms is not None and 0 <= lag_ms < wanted_s * MS_PER_SECOND:
        yield _note(
            "broker_releases",
            f"the broker deletes bookie copies {lag_ms / MS_PER_SECOND:g} s after publication, ours "
            f"is {policy.deletion_lag_s.value_or(0.0):g} s: nothing is published unless it is "
            f"{LAG_FACTOR} times that, or publish.broker_may_release = true",
        )
    if policy.skips_unreadable:
        yield _note(
            "skips_unreadable",
            f"the broker skips a whole ledger after a passing read failure ({SKIP_SETTING}=true): "
            f"nothing is published or released until `{STOP_SKIPPING}`",
        )
    if 0 in (policy.retention_minutes.value, policy.retention_megabytes.value):
        yield _note(
            "no_retention",
            "a retention limit is 0: what every subscription has acknowledged is deleted, offloaded "
            "or not",
        )
    minutes, seconds = _limit(policy.retention_minutes), _not_negative(policy.threshold_seconds)
    if minutes is not None and seconds is not None:
        kept_s = seconds + policy.deletion_lag_s.value_or(0.0)
        if seconds < minutes * SECONDS_PER_MINUTE <= kept_s:
            yield _note(
                "lag_past_retention",
                f"offload time {seconds} s and deletion lag {policy.deletion_lag_s.value_or(0.0):g} "
                f"s together reach retention time {minutes} min: no bookie copy goes before its "
                f"ledger expires",
            )
    ttl = policy.ttl_s.value
    if ttl and seconds is not None and 0 < ttl <= seconds:
        yield _note(
            "ttl",
            f"message TTL {ttl} s ({policy.ttl_s.origin}) is not above offload time {seconds} s: "
            f"messages count as acknowledged before they are offloaded",
        )


def _not_negative(value: Value[int]) -> int | None:
    """The value unless it is unset or off."""
    return value.value if value.value is not None and value.value >= 0 else None


def _limit(value: Value[int]) -> int | None:
    """A retention limit that can be compared."""
    return value.value if value.value is not None and value.value > 0 else None


def _refuse(rule: str, text: str) -> PolicyFinding:
    return PolicyFinding(rule=rule, refused=True, text=text)


def _note(rule: str, text: str) -> PolicyFinding:
    return PolicyFinding(rule=rule, refused=False, text=text)
