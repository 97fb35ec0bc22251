"""Settings of what changes topics and deletes copies, and how any setting is declared. Pure
values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MIB = 1024 * 1024


def setting(default: Any, help_text: str, *, secret: bool = False) -> Any:
    """A field with its help; a secret one is masked everywhere."""
    return field(default=default, metadata={"help": help_text, "secret": secret}, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishSettings:
    pending_bytes: int = setting(
        256 * MIB, "publish a topic when so many copied bytes are waiting to be published"
    )
    pending_age_s: float = setting(
        4 * 3600.0, "or when the oldest waits so long since our last disturbance of the topic"
    )
    idle_tail_s: float = setting(
        24 * 3600.0,
        "or when a ledger that our own unload closed waits so long since our last disturbance",
    )
    node_bytes_max: int = setting(512 * 1024, "largest managed-ledger node, uncompressed")
    clock_skew_max_s: float = setting(60.0, "refuse when our clock is further off the store's")
    read_to_write_max_s: float = setting(2.0, "seconds between the read and the compare-and-set")
    broker_may_release: bool = setting(False, "accept a broker lag shorter than 10 times ours")
    coexist: bool = setting(False, "accept a namespace whose brokers offload on their own")
    confirm_timeout_s: float = setting(60.0, "seconds to wait for unload and reads to confirm")


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbSettings:
    consumers_max: int = setting(1000, "leave a loaded topic with more consumers alone")
    delayed_messages_max: int = setting(
        10_000, "leave a loaded topic alone that tracks more messages for delayed delivery"
    )
    transactions_max: int = setting(
        0, "leave a loaded topic with more transactions alone: ongoing, committed and aborted"
    )
    bookies_enough: int = setting(
        0,
        "writable bookies that do to reload any topic where the brokers' bookie placement cannot be "
        "computed (regions, racks enforced, isolation groups); 0 lets such topics wait",
    )
    per_topic_hour_max: int = setting(12, "reloads of one topic in any hour")
    per_broker_hour_max: int = setting(600, "reloads of topics of one broker in any hour")
    per_cluster_hour_max: int = setting(2000, "reloads of topics in any hour")
    loads_hour_max: int = setting(
        60, "idle topics loaded in any hour, so that their broker applies overdue retention"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSettings:
    deletion_lag_s: float = setting(
        4 * 3600.0, "seconds between a confirmed publication and the delete of the bookie copy"
    )
    per_run_max: int = setting(200, "ledgers released by one run")
    per_hour_max: int = setting(2000, "ledgers released in any hour")
    per_topic_run_max: int = setting(100, "ledgers of one topic released by one run")
    per_bookie_run_max: int = setting(
        200, "ledgers with a replica on one bookie released by one run"
    )
    withdrawal_window_s: float = setting(
        0.0, "seconds a ledger is shown as due before it may go, so that people can hold it"
    )
    plan_valid_s: float = setting(24 * 3600.0, "seconds for which a written plan may be executed")
    check_to_delete_max_s: float = setting(5.0, "seconds between the last check and the delete")
    guard_age_s: float = setting(24 * 3600.0, "youngest age of what clean-up may delete")
    fleet_share_max: float = setting(
        0.1, "share of the fleet that one run may delete; up to 100 deletes it is not looked at"
    )
    records_kept_s: float = setting(
        30 * 24 * 3600.0,
        "seconds that records stay after the newest of a ledger that is gone, objects and all",
    )
    reread_without_key: bool = setting(
        True,
        "where sign.public_key_files is empty, read every byte again and compare it with the "
        "bookies before a release",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSettings:
    age_max_s: float = setting(
        60.0,
        "seconds between a look at objects, holds, records and metadata and what is done on it",
    )
    surroundings_age_max_s: float = setting(
        600.0,
        "the same for brokers' settings, offload policies, shadows, under-replication, other "
        "topics, and the second reading of every byte before a release",
    )
    canary_age_max_s: float = setting(
        7 * 24 * 3600.0,
        "seconds for which a namespace's canary proves that its brokers read our objects",
    )
