"""Counters of what was done, and the budgets beside what copies took of them.

Owns: a counter is what the catalogue told, so a process that starts again goes on where it was.
Where no catalogue tells there is none: a 0 would be taken for a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tiering_assets.catalogue.facts.work_done import DONE, WorkDone

Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)
_ABOUT: Final[Mapping[str, str]] = {
    "copied": "whose copy was read back, whatever came of it",
    "verified": "certified",
    "published": "published",
    "released": "deleted from the bookies",
}


def counters_of(done: WorkDone) -> Iterator[Metric]:
    for name in DONE:
        for unit in ("ledgers", "bytes"):
            yield CounterMetricFamily(
                f"tierkeeper_{name}_{unit}",
                f"{unit.capitalize()} of ledgers {_ABOUT[name]}, since the first page"
                if unit == "bytes"
                else f"Ledgers {_ABOUT[name]}, since the first page",
                value=getattr(done, f"{name}_{unit}"),
            )
    runs = {"failed": done.failed_runs, "died": done.died_runs}
    about = "Runs that failed for a ledger, or died"
    yield filled(CounterMetricFamily("tierkeeper_failed_runs", about, labels=["how"]), runs.items())
    used = {"upload_bytes_per_s": done.stored_bytes, "bookie_read_bytes_per_s": done.copied_bytes}
    about = "Bytes that whole copies took of a budget, without tries that failed"
    taken = CounterMetricFamily("tierkeeper_budget_used_bytes", about, labels=["budget"])
    yield filled(taken, used.items())


def budgets_of(budgets: Mapping[str, int]) -> Iterator[Metric]:
    about = "Budgets in force that bound something, a second"
    limits = GaugeMetricFamily("tierkeeper_budget_limit", about, labels=["budget"])
    yield filled(limits, sorted(budgets.items()))


def filled(family: Family, values: Iterable[tuple[str, float]]) -> Family:
    """With the value of each of its one label's values."""
    for value_of_label, value in values:
        family.add_metric([value_of_label], value)
    return family
