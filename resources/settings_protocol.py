"""Settings of what changes topics and deletes copies. Pure values."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from tiering_assets.resources import settings_kinds as kinds
from tiering_assets.resources.settings_kinds import CONFIG, DAY, HOUR, MIB, setting


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class PublishSettings:
    pending_bytes: int = setting(
        256 * MIB,
        "publish a topic when so many copied bytes are waiting to be published",
        kinds.PAYLOAD_OR_0,
    )
    pending_age_s: float = setting(
        4 * 3600.0,
        "or when the oldest waits so long since our last disturbance of the topic",
        kinds.AGE_OR_0,
    )
    idle_tail_s: float = setting(
        24 * 3600.0,
        "or when a ledger that our own unload closed waits so long since our last disturbance",
        kinds.AGE,
    )
    node_bytes_max: int = setting(
        512 * 1024,
        "largest managed-ledger node, uncompressed",
        kinds.SIZE.upto(64 * MIB, "no ZooKeeper takes a node of that size"),
    )
    clock_skew_max_s: float = setting(
        60.0,
        "refuse when our clock is further off the store's",
        kinds.DURATION.upto(HOUR, "no lag means anything with clocks further apart"),
    )
    read_to_write_max_s: float = setting(
        2.0,
        "time between the read and the compare-and-set",
        kinds.DURATION.upto(kinds.MINUTE, kinds.EVIDENCE),
    )
    broker_may_release: bool = setting(False, "accept a broker lag shorter than 10 times ours")
    coexist: bool = setting(False, "accept a namespace whose brokers offload on their own")
    confirm_timeout_s: float = setting(60.0, "wait for unload and reads to confirm", kinds.TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class DisturbSettings:
    consumers_max: int = setting(
        1000, "leave a loaded topic with more consumers alone", kinds.COUNT_OR_0
    )
    delayed_messages_max: int = setting(
        10_000,
        "leave a loaded topic alone that tracks more messages for delayed delivery",
        kinds.COUNT_OR_0,
    )
    transactions_max: int = setting(
        0,
        "leave a loaded topic with more transactions alone: ongoing, committed and aborted",
        kinds.COUNT_OR_0,
    )
    bookies_enough: int = setting(
        0,
        "how many writable bookies are enough to reload a topic whose bookie placement "
        "cannot be computed (regions, racks enforced, isolation groups). With 0 such topics "
        "wait",
        kinds.COUNT.upto(100_000, zero=True),
    )
    per_topic_hour_max: int = setting(12, "reloads of one topic in any hour", kinds.COUNT_OR_0)
    per_broker_hour_max: int = setting(
        600, "reloads of topics of one broker in any hour", kinds.COUNT_OR_0
    )
    per_cluster_hour_max: int = setting(2000, "reloads of topics in any hour", kinds.COUNT_OR_0)
    loads_hour_max: int = setting(
        60,
        "idle topics loaded in any hour, so that their broker applies overdue retention",
        kinds.COUNT_OR_0,
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class ReleaseSettings:
    deletion_lag_s: float = setting(
        4 * 3600.0,
        "time between a confirmed publication and the delete of the bookie copy",
        kinds.AGE_OR_0,
    )
    per_run_max: int = setting(200, "ledgers released by one run", kinds.COUNT_OR_0)
    per_hour_max: int = setting(2000, "ledgers released in any hour", kinds.COUNT_OR_0)
    per_topic_run_max: int = setting(
        100, "ledgers of one topic released by one run", kinds.COUNT_OR_0
    )
    per_bookie_run_max: int = setting(
        200, "ledgers with a replica on one bookie released by one run", kinds.COUNT_OR_0
    )
    withdrawal_window_s: float = setting(
        0.0,
        "time for which a ledger is shown as due before it may go, so that people can hold it",
        kinds.AGE_OR_0,
    )
    plan_valid_s: float = setting(
        24 * 3600.0,
        "time for which a written plan may be executed",
        kinds.DURATION.upto(30 * DAY, "a plan approves what was so when it was made"),
    )
    check_to_delete_max_s: float = setting(
        5.0,
        "time between the last check and the delete",
        kinds.DURATION.upto(kinds.MINUTE, kinds.EVIDENCE),
    )
    guard_age_s: float = setting(24 * 3600.0, "youngest age of what clean-up may delete", kinds.AGE)
    fleet_share_max: float = setting(
        0.1,
        "share of the fleet that one run may delete; up to 100 deletes it is not looked at",
        kinds.SHARE_OR_0,
    )
    records_kept_s: float = setting(
        30 * 24 * 3600.0,
        "time for which records stay after the newest of a ledger that is gone, objects and all",
        kinds.AGE,
    )
    reread_without_key: bool = setting(
        True,
        "where no accepted key vouches for a certificate, read every byte again and compare it with "
        "the bookies before a release",
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class EvidenceSettings:
    age_max_s: float = setting(
        60.0,
        "time between a look at objects, holds, records and metadata and what is done on it",
        kinds.DURATION.upto(HOUR, kinds.EVIDENCE),
    )
    surroundings_age_max_s: float = setting(
        600.0,
        "the same for brokers' settings, offload policies, shadows, under-replication, other "
        "topics, and the second reading of every byte before a release",
        kinds.DURATION.upto(DAY, kinds.EVIDENCE),
    )
    canary_age_max_s: float = setting(
        7 * 24 * 3600.0,
        "time for which a namespace's canary proves that its brokers read our objects",
        kinds.DURATION.upto(365 * DAY, "brokers and buckets are configured anew"),
    )
