"""What a simulated broker's offloader is set to, and whether it reads our objects by that.

Owns: a namespace's policy goes over the broker's own driver; what reads another place than objects
lie in, or has no driver, reads none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tiering_assets.resources.pulsar.offload_policies import EffectiveOffloadPolicies

DRIVER = "aws-s3"
REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a policy has brokers read: driver None is no offloader at all."""

    driver: str | None = DRIVER
    bucket: str | None = None
    endpoint: str = ""


@dataclass(slots=True)
class Offloader:
    """`driver` and `skips` are the broker's own settings; `policies` those of namespaces."""

    bucket: str
    driver: str | None = DRIVER
    skips: bool = False
    policies: dict[str, Place] = field(default_factory=dict)

    def place_of(self, namespace: str) -> Place:
        found = self.policies.get(namespace)
        return Place(self.driver, self.bucket) if found is None else found

    def reads_ours(self, namespace: str) -> bool:
        return self.place_of(namespace) == Place(DRIVER, self.bucket)

    def effective(
        self, namespace: str, *, lag_s: float | None, bookkeeper_first: bool
    ) -> EffectiveOffloadPolicies:
        place = self.place_of(namespace)
        return EffectiveOffloadPolicies(
            driver=place.driver,
            bucket=place.bucket,
            endpoint=place.endpoint,
            region=REGION,
            deletion_lag_ms=None if lag_s is None else int(lag_s * 1000),
            threshold_bytes=None,
            threshold_seconds=None,
            read_priority="bookkeeper-first" if bookkeeper_first else None,
            origins={"driver": "namespace"} if namespace in self.policies else {},
        )

    def runtime_config(self) -> dict[str, str]:
        return {
            "autoSkipNonRecoverableData": str(self.skips).lower(),
            "clusterName": "sim",
            "managedLedgerDefaultEnsembleSize": "1",
            "managedLedgerDefaultWriteQuorum": "1",
            "managedLedgerDefaultAckQuorum": "1",
            **({} if self.driver is None else {"managedLedgerOffloadDriver": self.driver}),
        }
