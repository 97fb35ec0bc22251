"""What each numeric setting may be. Pure.

Owns: every number has a bound, and a test fails for one that has none: an age of a trillion seconds
is a slip of the hand, and would otherwise be met days later as an overflow or as a lag that never
ends. A bound is far beyond what makes sense, but where more would take a guarantee away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tiering_assets.resources.settings_protocol import MIB

GIB: Final = 1024 * MIB
MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
TEN_YEARS: Final = 3653 * DAY
MANY: Final = 1_000_000_000
PER_SECOND: Final = 1_000_000 * MIB


@dataclass(frozen=True, slots=True)
class Bound:
    """`most` is allowed; zero only with `zero`, and otherwise nothing below `least`."""

    most: float
    why: str = ""
    zero: bool = False
    least: float = 0.0

    def broken_by(self, value: float) -> str | None:
        """The rule that a value breaks, None for a good one."""
        why = f": {self.why}" if self.why else ""
        if value < 0:
            return "must not be negative"
        if value == 0 and not self.zero:
            return "must be above zero"
        if 0 < value < self.least:
            return f"must be at least {_plain(self.least)}{why}"
        if value > self.most:
            return f"must be at most {_plain(self.most)}{why}"
        return None

    def __str__(self) -> str:
        """The range as docs/settings.md prints it."""
        if self.least:
            return f"{_plain(self.least)} to {_plain(self.most)}"
        return f"{'0' if self.zero else 'above 0'} to {_plain(self.most)}"


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:g}"


_TIMEOUT = Bound(HOUR, "a timeout; nobody would wait longer")
_AGE = Bound(TEN_YEARS, "ten years, in seconds")
_AGE_OR_0 = Bound(TEN_YEARS, "ten years, in seconds", zero=True)
_COUNT = Bound(MANY)
_COUNT_OR_0 = Bound(MANY, zero=True)
_RATE = Bound(PER_SECOND, zero=True)
_SHARE = Bound(1, zero=True)
_EVIDENCE = "what was seen longer ago is no evidence for a delete"

BOUNDS: Final[Mapping[str, Bound]] = {
    "metadata.session_timeout_s": _TIMEOUT,
    "metadata.connect_timeout_s": _TIMEOUT,
    "bookies.connect_timeout_s": _TIMEOUT,
    "bookies.request_timeout_s": _TIMEOUT,
    "bookies.batch_bytes_max": Bound(5 * MIB, "bookies refuse larger frames"),
    "bookies.batches_in_flight": Bound(64, "each is a buffer"),
    "bookies.window": Bound(100_000),
    "store.connect_timeout_s": _TIMEOUT,
    "store.read_timeout_s": _TIMEOUT,
    "store.attempts_max": Bound(100),
    "store.connections_max": Bound(10_000),
    "broker.timeout_s": _TIMEOUT,
    "broker.memory_s": _AGE,
    "offload.block_bytes": Bound(
        2 * GIB - 1,
        "S3 refuses smaller parts, and the format has 31 bits for a length",
        least=5 * MIB,
    ),
    "offload.read_range_bytes": Bound(GIB, "it is held in memory"),
    "offload.task_bytes": Bound(1024 * GIB),
    "offload.claim_ttl_s": Bound(7 * DAY, "a run that died holds its ledgers so long"),
    "publish.pending_bytes": Bound(1024 * 1024 * GIB, zero=True),
    "publish.pending_age_s": _AGE_OR_0,
    "publish.idle_tail_s": _AGE,
    "publish.node_bytes_max": Bound(64 * MIB, "no ZooKeeper takes a node of that size"),
    "publish.clock_skew_max_s": Bound(HOUR, "no lag means anything with clocks further apart"),
    "publish.read_to_write_max_s": Bound(MINUTE, _EVIDENCE),
    "publish.confirm_timeout_s": _TIMEOUT,
    "disturb.consumers_max": _COUNT_OR_0,
    "disturb.delayed_messages_max": _COUNT_OR_0,
    "disturb.transactions_max": _COUNT_OR_0,
    "disturb.bookies_enough": Bound(100_000, zero=True),
    "disturb.per_topic_hour_max": _COUNT_OR_0,
    "disturb.per_broker_hour_max": _COUNT_OR_0,
    "disturb.per_cluster_hour_max": _COUNT_OR_0,
    "disturb.loads_hour_max": _COUNT_OR_0,
    "release.deletion_lag_s": _AGE_OR_0,
    "release.per_run_max": _COUNT_OR_0,
    "release.per_hour_max": _COUNT_OR_0,
    "release.per_topic_run_max": _COUNT_OR_0,
    "release.per_bookie_run_max": _COUNT_OR_0,
    "release.withdrawal_window_s": _AGE_OR_0,
    "release.plan_valid_s": Bound(30 * DAY, "a plan approves what was so when it was made"),
    "release.check_to_delete_max_s": Bound(MINUTE, _EVIDENCE),
    "release.guard_age_s": _AGE,
    "release.fleet_share_max": _SHARE,
    "release.records_kept_s": _AGE,
    "evidence.age_max_s": Bound(HOUR, _EVIDENCE),
    "evidence.surroundings_age_max_s": Bound(DAY, _EVIDENCE),
    "evidence.canary_age_max_s": Bound(365 * DAY, "brokers and buckets are configured anew"),
    "scrub.requests_max": _COUNT,
    "scrub.bytes_max": Bound(1024 * 1024 * GIB),
    "scrub.shallow_every_s": _AGE,
    "scrub.deep_every_s": _AGE,
    "auto.interval_s": Bound(DAY),
    "auto.tick_budget_s": Bound(MINUTE, "Dagster ends a tick after a minute"),
    "auto.batch_ledgers_max": Bound(100_000, "a run's configuration lists them"),
    "auto.batch_bytes_max": Bound(1024 * 1024 * GIB),
    "auto.runs_unfinished_max": Bound(10_000),
    "auto.retry_first_s": Bound(30 * DAY),
    "auto.retry_max_s": Bound(365 * DAY),
    "auto.discover_every_s": Bound(30 * DAY),
    "auto.scrub_every_s": Bound(365 * DAY),
    "auto.open_after_s": _AGE,
    "auto.retire_after_s": _AGE,
    "objectives.copy_lag_bytes_max": Bound(1024 * 1024 * GIB, zero=True),
    "objectives.copy_lag_age_s_max": _AGE_OR_0,
    "objectives.delete_lag_age_s_max": _AGE_OR_0,
    "objectives.stuck_max": _COUNT_OR_0,
    "objectives.warn_at": Bound(1),
    "objectives.fresh_s": Bound(TEN_YEARS, "Dagster looks that often", least=60),
    "budget.upload_bytes_per_s": _RATE,
    "budget.bookie_read_bytes_per_s": _RATE,
    "budget.store_requests_per_s": _RATE,
    "budget.topic_upload_bytes_per_s": _RATE,
    "budget.topic_bookie_read_bytes_per_s": _RATE,
    "budget.topic_store_requests_per_s": _RATE,
    "budget.runs_max": Bound(10_000),
    "budget.bookie_answer_bytes_max": Bound(GIB),
    "metrics.topics_max": Bound(1_000_000, "each topic is a time series", zero=True),
    "spark.cores": Bound(4096),
    "spark.start_timeout_s": _TIMEOUT,
    "dagster.partitions_max": Bound(1_000_000, "thousands slow every page down"),
}
