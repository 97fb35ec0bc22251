"""What an offload would take: bytes, parts, requests, time and unloads. Pure.

Owns: the time is the slowest of what bounds it, each with its origin: the budgets in force, the
rate of earlier attempts or, where there are none, an assumed one that says so, and the reloads that
are allowed in an hour. Nothing is promised: retries, other runs and earlier attempts are not
counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tiering_assets.batch.request_count import (
    RequestCount,
    count_batch,
    count_budget_readings,
    count_publication,
    count_requests,
)
from tiering_assets.offload_format.block import INDEX_ENTRY_BYTES, INDEX_HEADER_BYTES
from tiering_assets.offload_format.layout import BlockPlan

ASSUMED_BYTES_PER_S = 10_000_000
ASSUMED = "assumed, a cautious figure for one machine: no earlier attempt is recorded"
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLedger:
    """A ledger that would be copied. `exact`: its boundaries were read, not computed from sizes."""

    ledger_id: int
    ml_name: str
    entries: int
    payload_bytes: int
    blocks: tuple[BlockPlan, ...]
    index_metadata_bytes: int
    exact: bool

    @property
    def object_bytes(self) -> int:
        return self.blocks[-1].offset + self.blocks[-1].block_length

    @property
    def index_bytes(self) -> int:
        entries = INDEX_ENTRY_BYTES * len(self.blocks)
        return INDEX_HEADER_BYTES + self.index_metadata_bytes + entries


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A ledger that would not be copied, and its reason in the words of docs/states.md."""

    ledger_id: int
    ml_name: str
    bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class TimeBound:
    """One thing that takes time, and where its figure comes from."""

    what: str
    seconds: float
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds the pace. Budgets are per second, 0 is none; `task_bytes_per_s` None is
    unknown.
    """

    read_range_bytes: int
    budgets: Mapping[str, int]
    task_bytes_per_s: float | None
    task_origin: str
    reloads_hour_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonTotal:
    reason: str
    ledgers: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """`unloads` is how many reloads it costs if brokers have all the topics loaded."""

    topics: int
    ledgers: int
    exact_ledgers: int
    entries: int
    payload_bytes: int
    object_bytes: int
    index_bytes: int
    objects: int
    parts: int
    requests: RequestCount
    unloads: int
    seconds: float
    bounds: tuple[TimeBound, ...]
    left_out: tuple[ReasonTotal, ...]


def estimate_offload(
    planned: Sequence[PlannedLedger],
    left_out: Iterable[LeftOut],
    *,
    limits: Limits,
    first_in_namespace: Iterable[str],
) -> Estimate:
    """Add up what these ledgers take. `first_in_namespace` are topics whose publication is a
    canary.
    """
    by_topic: dict[str, list[PlannedLedger]] = defaultdict(list)
    for one in planned:
        by_topic[one.ml_name].append(one)
    canaries = set(first_in_namespace) & set(by_topic)
    requests, unloads = RequestCount(), 0
    most_of_topic: Counter[str] = Counter()
    for ml_name, ledgers in by_topic.items():
        own = count_publication(len(ledgers), canary=ml_name in canaries)
        for one in ledgers:
            own += count_requests(one.blocks, read_range_bytes=limits.read_range_bytes)
        requests += own
        unloads += 2 if ml_name in canaries and len(ledgers) > 1 else 1
        most_of_topic |= _amounts(ledgers, own.total)
    payload = sum(one.payload_bytes for one in planned)
    objects = sum(one.object_bytes for one in planned)
    indexes = sum(one.index_bytes for one in planned)
    amounts = _amounts(planned, requests.total)
    amounts.update({f"topic_{name}": amount for name, amount in most_of_topic.items()})
    bounds = _bounds(payload, amounts, unloads, limits) if planned else ()
    seconds = max((bound.seconds for bound in bounds), default=0.0)
    if planned:
        requests += count_batch()
        requests += count_budget_readings(seconds)
    return Estimate(
        topics=len(by_topic),
        ledgers=len(planned),
        exact_ledgers=sum(one.exact for one in planned),
        entries=sum(one.entries for one in planned),
        payload_bytes=payload,
        object_bytes=objects,
        index_bytes=indexes,
        objects=2 * len(planned),
        parts=sum(len(one.blocks) for one in planned if len(one.blocks) > 1),
        requests=requests,
        unloads=unloads,
        seconds=seconds,
        bounds=bounds,
        left_out=_totals(left_out),
    )


def _amounts(ledgers: Sequence[PlannedLedger], requests: int) -> Counter[str]:
    """What is taken from each budget, by its name."""
    return Counter(
        {
            "upload_bytes_per_s": sum(one.object_bytes + one.index_bytes for one in ledgers),
            "bookie_read_bytes_per_s": sum(one.payload_bytes for one in ledgers),
            "store_requests_per_s": requests,
        }
    )


def _bounds(
    payload: int, amounts: Mapping[str, int], unloads: int, limits: Limits
) -> tuple[TimeBound, ...]:
    measured = limits.task_bytes_per_s
    rate = ASSUMED_BYTES_PER_S if measured is None else measured
    origin = ASSUMED if measured is None else limits.task_origin
    found = [
        TimeBound("copying and reading back", payload / rate, f"{rate / 1e6:.1f} MB/s: {origin}")
    ]
    for name, amount in amounts.items():
        budget = limits.budgets.get(name, 0)
        if budget > 0:
            found.append(
                TimeBound(f"budget.{name}", amount / budget, f"{budget} per second in force")
            )
    if unloads > limits.reloads_hour_max > 0:
        hours = (unloads - limits.reloads_hour_max) / limits.reloads_hour_max
        found.append(
            TimeBound(
                "disturb.per_cluster_hour_max",
                hours * _HOUR_S,
                f"{limits.reloads_hour_max} reloads in any hour",
            )
        )
    return tuple(found)


def _totals(left_out: Iterable[LeftOut]) -> tuple[ReasonTotal, ...]:
    ledgers: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for one in left_out:
        ledgers[one.reason] += 1
        sizes[one.reason] += one.bytes
    return tuple(
        ReasonTotal(reason=reason, ledgers=count, bytes=sizes[reason])
        for reason, count in sorted(ledgers.items())
    )
