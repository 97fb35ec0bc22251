"""What each level says about one topic's data: topic, namespace, broker. Pure.

Owns: any JSON decodes or raises FormatError that names the field, what was expected and what was
found. Fields that we do not know are left alone; a field that is null or missing is not set, which
is never the same as a level that could not be asked: such a level is None.

Source: org.apache.pulsar.common.policies.data Policies, OffloadPoliciesImpl and RetentionPolicies,
4.0. The namespace's node in the metadata store and the admin API's answer have the same shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.pulsar.offload_policies import (
    BYTES_FIELD,
    LAG_FIELD,
    SECONDS_FIELD,
    PolicyAnswers,
)

LONG_MAX = 2**63 - 1  # Java's long; no broker can hold more
LEGACY_UNSET = -1  # Policies.offload_threshold and offload_threshold_in_seconds

_NUMBERS = (BYTES_FIELD, SECONDS_FIELD, LAG_FIELD)
_TEXTS = (
    "managedLedgerOffloadDriver",
    "managedLedgerOffloadedReadPriority",
    *(
        f"{prefix}edgerOffload{place}"
        for prefix in ("managedL", "s3ManagedL", "gcsManagedL")
        for place in ("Bucket", "Region", "ServiceEndpoint")
    ),
)
# How broker.conf, and so the runtime configuration, spells the numbers.
_BROKER_NUMBERS = {
    BYTES_FIELD: "managedLedgerOffloadAutoTriggerSizeThresholdBytes",
    SECONDS_FIELD: SECONDS_FIELD,
    LAG_FIELD: "managedLedgerOffloadDeletionLagMs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimits:
    """As set: minutes and MiB of acknowledged data. -1 is unlimited, 0 keeps none."""

    minutes: int
    megabytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLevel:
    """What one level sets; None is not set. `offload` is the policy object in Pulsar's names.

    Thresholds and the lag are as set there: a negative threshold switches off, a negative lag makes
    a broker delete at once. `ttl_s` 0 is no TTL.
    """

    offload: Mapping[str, Any] = field(default_factory=dict)
    retention: RetentionLimits | None = None
    ttl_s: int | None = None

    @property
    def threshold_bytes(self) -> int | None:
        return self._number(BYTES_FIELD)

    @property
    def threshold_seconds(self) -> int | None:
        return self._number(SECONDS_FIELD)

    @property
    def deletion_lag_ms(self) -> int | None:
        return self._number(LAG_FIELD)

    def _number(self, name: str) -> int | None:
        found = self.offload.get(name)
        return None if found is None else int(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarLevels:
    """The three levels of one topic. A level that nobody could tell is None: unknown, not empty.

    `applied` is the broker's own merge of the offload fields, the only place where s3… lines of
    broker.conf show. `unknown` says for each level that is None why.
    """

    topic: PolicyLevel | None
    namespace: PolicyLevel
    broker: PolicyLevel | None
    broker_config: Mapping[str, str] = field(default_factory=dict)
    applied: Mapping[str, Any] | None = None
    read_from: str = "broker"
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """True when no level is unknown. Else nothing may be published or released."""
        return self.topic is not None and self.broker is not None

    def answers(self) -> PolicyAnswers:
        """What merge_offload_policies wants; an unknown level is left out of it."""
        return PolicyAnswers(
            topic=None if self.topic is None else self.topic.offload,
            namespace=self.namespace.offload,
            namespace_lag_ms=None,  # already in the namespace's object, as are the thresholds
            namespace_threshold_bytes=None,
            namespace_threshold_seconds=None,
            broker=self.broker_config,
            applied=self.applied,
        )


def load_json(data: bytes, where: str) -> Any:
    """Decode JSON. FormatError for anything else."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: not JSON ({len(data)} bytes)") from error


def parse_namespace(found: object, where: str) -> PolicyLevel:
    """A namespace's whole Policies object; legacy fields fill gaps of its offload object."""
    policies = _object(found, where)
    offload = dict(parse_offload(policies.get("offload_policies"), f"{where}: offload_policies"))
    legacy = {
        BYTES_FIELD: _legacy(policies, "offload_threshold", where),
        SECONDS_FIELD: _legacy(policies, "offload_threshold_in_seconds", where),
        LAG_FIELD: _number(policies, "offload_deletion_lag_ms", where),
    }
    for name, value in legacy.items():
        if offload.get(name) is None and value is not None:
            offload[name] = value
    return PolicyLevel(
        offload=offload,
        retention=parse_retention_limits(
            policies.get("retention_policies"), f"{where}: retention_policies"
        ),
        ttl_s=_number(policies, "message_ttl_in_seconds", where),
    )


def parse_topic_level(offload: object, retention: object, ttl: object, where: str) -> PolicyLevel:
    """The answers of the topic's own offloadPolicies, retention and messageTTL; None is not set."""
    return PolicyLevel(
        offload=parse_offload(offload, f"{where}: offloadPolicies"),
        retention=parse_retention_limits(retention, f"{where}: retention"),
        ttl_s=_number({"messageTTL": ttl}, "messageTTL", where),
    )


def parse_broker(config: Mapping[str, str], where: str) -> PolicyLevel:
    """The broker's defaults out of its runtime configuration, where every value is text."""
    offload = {
        name: _from_text(config, spelled, where) for name, spelled in _BROKER_NUMBERS.items()
    }
    minutes = _from_text(config, "defaultRetentionTimeInMinutes", where)
    megabytes = _from_text(config, "defaultRetentionSizeInMB", where)
    return PolicyLevel(
        offload={name: value for name, value in offload.items() if value is not None},
        retention=RetentionLimits(minutes=minutes or 0, megabytes=megabytes or 0),
        ttl_s=_from_text(config, "ttlDurationDefaultInSeconds", where) or 0,
    )


def parse_offload(found: object, where: str) -> Mapping[str, Any]:
    """An offload policies object; empty for null."""
    if found is None:
        return {}
    policies = _object(found, where)
    for name in _NUMBERS:
        _number(policies, name, where)
    for name in _TEXTS:
        value = policies.get(name)
        if value is not None and not isinstance(value, str):
            raise _wrong(where, name, "text or null", value)
    return policies


def parse_retention_limits(found: object, where: str) -> RetentionLimits | None:
    """A RetentionPolicies object, which always has both numbers; None for null."""
    if found is None:
        return None
    policies = _object(found, where)
    minutes = _number(policies, "retentionTimeInMinutes", where)
    megabytes = _number(policies, "retentionSizeInMB", where)
    if minutes is None or megabytes is None:
        missing = "retentionTimeInMinutes" if minutes is None else "retentionSizeInMB"
        raise _wrong(where, missing, "a whole number", None)
    return RetentionLimits(minutes=minutes, megabytes=megabytes)


def _legacy(policies: Mapping[str, Any], name: str, where: str) -> int | None:
    found = _number(policies, name, where)
    return None if found == LEGACY_UNSET else found


def _object(found: object, where: str) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise FormatError(f"{where}: expected a JSON object, found {_short(found)}")
    return found


def _number(policies: Mapping[str, Any], name: str, where: str) -> int | None:
    found = policies.get(name)
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool):
        raise _wrong(where, name, "a whole number or null", found)
    return _in_range(found, name, where)


def _from_text(config: Mapping[str, str], name: str, where: str) -> int | None:
    text = config.get(name, "").strip()
    if text in ("", "null"):
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
        raise _wrong(where, name, "a whole number", text)
    return _in_range(int(text), name, where)


def _in_range(number: int, name: str, where: str) -> int:
    if not -LONG_MAX - 1 <= number <= LONG_MAX:
        raise _wrong(where, name, "a number of 64 bits", number)
    return number


def _wrong(where: str, name: str, expected: str, found: object) -> FormatError:
    return FormatError(f"{where}: {name}: expected {expected}, found {_short(found)}")


def _short(found: object) -> str:
    """A value as text, cut; an integer of thousands of digits has no text at all."""
    if isinstance(found, int) and not isinstance(found, bool) and found.bit_length() > 256:
        return f"a number of {found.bit_length()} bits"
    if isinstance(found, dict | list):
        return f"a JSON {'object' if isinstance(found, dict) else 'list'}"
    return f"{found!r:.100}"
