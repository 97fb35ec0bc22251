"""What each broker of the cluster would do to a topic that it takes over. design sections 6.2 and 6.3.

Owns: a topic may move to any live broker at any time, so a ledger is published or released only
where every one of them reads our objects and none skips a ledger that it fails to read. The broker
that answers for the topic today says nothing about the next one. What a configuration does not
show (credentials, a missing offloader archive) only the read through the topic's own broker proves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from resources.pulsar.offload_policies import EffectiveOffloadPolicies

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
