"""A topic's effective offload policy: topic over namespace over broker, field by field. Pure.

Rules (Pulsar OffloadPoliciesImpl.mergeConfiguration):
* A field that a level leaves null falls through to the next. A policy object that was set carries
  the class's defaults for read priority and sizes, which hide the broker's values; the admin API
  shows them, so the merge needs no rule of its own.
* The namespace's legacy fields fill gaps of its policy object: threshold below zero is "not set".
* For aws-s3 and google-cloud-storage the driver's own field (s3ManagedLedgerOffloadBucket) wins
  over the general one, across all levels.
* The broker's runtime configuration shows general fields only; s3… fields of broker.conf appear
  nowhere but in the broker's own merge (`applied=true`). Where that contradicts ours about the
  place objects are read from, it is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tiering_assets.resources.errors import BrokerError

_PREFIXES = {"aws-s3": "s3", "s3": "s3", "google-cloud-storage": "gcs"}
_PLACE = ("Bucket", "ServiceEndpoint", "Region")
LAG_FIELD = "managedLedgerOffloadDeletionLagInMillis"
BYTES_FIELD = "managedLedgerOffloadThresholdInBytes"
SECONDS_FIELD = "managedLedgerOffloadThresholdInSeconds"
_PRIORITY = "managedLedgerOffloadedReadPriority"
_DRIVER = "managedLedgerOffloadDriver"
_BROKER_NAMES = {
    LAG_FIELD: "managedLedgerOffloadDeletionLagMs",
    BYTES_FIELD: "managedLedgerOffloadAutoTriggerSizeThresholdBytes",
    _PRIORITY: "managedLedgerDataReadPriority",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveOffloadPolicies:
    """None is "not set at any level". A threshold below zero is off and shown as None.

    The lag is in milliseconds and as set: a negative one makes a broker delete at once.
    `origins` tells for each field that is set: topic, namespace or broker.
    """

    driver: str | None
    bucket: str | None
    endpoint: str | None
    region: str | None
    deletion_lag_ms: int | None
    threshold_bytes: int | None
    threshold_seconds: int | None
    read_priority: str | None
    origins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAnswers:
    """What the admin API said. None for an object or field that is not set."""

    topic: Mapping[str, Any] | None
    namespace: Mapping[str, Any] | None
    namespace_lag_ms: int | None
    namespace_threshold_bytes: int | None
    namespace_threshold_seconds: int | None
    broker: Mapping[str, Any]
    applied: Mapping[str, Any] | None


def merge_offload_policies(answers: PolicyAnswers, *, topic: str) -> EffectiveOffloadPolicies:
    """Merge the levels. BrokerError when they contradict the broker's own merge."""
    merge = _Merge(answers, topic)
    driver = merge.text("driver", _DRIVER)
    own = _PREFIXES.get((driver or "").lower())
    place = {}
    for name, suffix in zip(("bucket", "endpoint", "region"), _PLACE, strict=True):
        fields = [f"managedLedgerOffload{suffix}"]
        if own is not None:
            fields.insert(0, f"{own}ManagedLedgerOffload{suffix}")
        place[name] = merge.text(name, *fields)
    return EffectiveOffloadPolicies(
        driver=driver,
        bucket=place["bucket"],
        endpoint=place["endpoint"],
        region=place["region"],
        deletion_lag_ms=merge.number("deletion_lag_ms", LAG_FIELD),
        threshold_bytes=_off_is_none(merge.number("threshold_bytes", BYTES_FIELD)),
        threshold_seconds=_off_is_none(merge.number("threshold_seconds", SECONDS_FIELD)),
        read_priority=merge.value("read_priority", _PRIORITY),
        origins=merge.origins,
    )


class _Merge:
    def __init__(self, answers: PolicyAnswers, topic: str) -> None:
        self._topic = topic
        self._applied = answers.applied
        namespace = dict(answers.namespace or {})
        legacy = {
            LAG_FIELD: answers.namespace_lag_ms,
            BYTES_FIELD: _off_is_none(answers.namespace_threshold_bytes),
            SECONDS_FIELD: _off_is_none(answers.namespace_threshold_seconds),
        }
        for name, value in legacy.items():
            if namespace.get(name) is None:
                namespace[name] = value
        broker = {
            name: answers.broker.get(_BROKER_NAMES.get(name, name))
            for name in {*answers.broker, *_BROKER_NAMES}
        }
        self._levels = (
            ("topic", answers.topic or {}),
            ("namespace", namespace),
            ("broker", broker),
            ("broker", answers.applied or {}),  # what only the broker's own merge shows
        )
        self.origins: dict[str, str] = {}

    def value(self, name: str, *fields: str) -> str | None:
        for source in fields:
            for level, policies in self._levels:
                found = policies.get(source)
                if found is not None and str(found) not in ("", "null"):
                    self.origins[name] = level
                    return str(found)
        return None

    def text(self, name: str, *fields: str) -> str | None:
        """A field that decides where objects are read from."""
        found = self.value(name, *fields)
        applied = next(
            (str(value) for x in fields if (value := (self._applied or {}).get(x))), found
        )
        if applied != found:
            raise BrokerError(
                f"{self._topic}: offload policy {name} is {found!r} by its levels, but the broker "
                f"applies {applied!r}: look at `pulsar-admin topics get-offload-policies -ap`"
            )
        return found

    def number(self, name: str, source: str) -> int | None:
        found = self.value(name, source)
        try:
            return None if found is None else int(found)
        except ValueError as error:
            raise BrokerError(
                f"{self._topic}: offload policy {name} is {found!r}, expected a whole number"
            ) from error


def _off_is_none(threshold: int | None) -> int | None:
    return None if threshold is None or threshold < 0 else threshold
