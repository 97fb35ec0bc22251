"""A topic's effective offload policy as far as it decides whether a broker can read our objects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256

from resources.pulsar.offload_policies import EffectiveOffloadPolicies


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
