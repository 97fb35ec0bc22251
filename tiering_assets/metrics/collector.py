"""The fleet's figures as Prometheus metrics; docs/metrics.md explains each one.

Owns: what a scrape gets comes from one survey, never from two; and old figures are never served as
if they were new: after a failed survey `tierkeeper_survey_success` is 0, and the age of the figures
goes on growing. Before the first good survey there are no figures at all. Topics are labels only up
to metrics.topics_max of them, because every label value is a time series for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from importlib.metadata import version
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from tiering_assets.catalogue.facts.work_done import WorkDone
from tiering_assets.explain.figures.lag_figures import Figures, FleetFigures
from tiering_assets.explain.figures.objectives import MissedObjective
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.metrics.counters import budgets_of, counters_of, filled
from tiering_assets.metrics.surveyed import Surveyed

Value = Callable[[Figures], float]
_LAGS: Final[tuple[tuple[str, str, Value], ...]] = (
    (
        "copy_lag_bytes",
        "Bytes that policy wants tiered and that are not",
        lambda f: f.copy_lag.bytes,
    ),
    ("copy_lag_ledgers", "Ledgers in copy lag", lambda f: f.copy_lag.ledgers),
    (
        "copy_lag_oldest_seconds",
        "Time since the oldest ledger in copy lag was closed",
        lambda f: f.copy_lag.oldest_s,
    ),
    (
        "delete_lag_bytes",
        "Bytes due for deletion from the bookies and still there",
        lambda f: f.delete_lag.bytes,
    ),
    ("delete_lag_ledgers", "Ledgers in delete lag", lambda f: f.delete_lag.ledgers),
    (
        "delete_lag_oldest_seconds",
        "Time since the oldest ledger in delete lag was due",
        lambda f: f.delete_lag.oldest_s,
    ),
    ("stuck_ledgers", "Ledgers that wait for a person", lambda f: f.stuck),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """What the surveys have come to so far. `succeeded` is of the newest one."""

    survey: Surveyed | None = None
    done: WorkDone | None = None
    topics: tuple[Metric, ...] = ()
    succeeded: bool = False
    took_s: float = 0.0
    good: int = 0
    bad: int = 0


class FleetCollector(Collector):
    """Serves the newest good survey. `clock` tells Unix time in seconds, for the figures' age."""

    def __init__(self, *, topics_max: int, clock: Callable[[], float]) -> None:
        self._topics_max = topics_max
        self._clock = clock
        self._now = _Snapshot()  # replaced whole: a scrape runs in a thread of its own

    def succeeded(self, found: Surveyed, *, took_s: float) -> None:
        """Figures of topics are made now, so that a scrape costs what it sends and no more."""
        topics = _of_topics(found.figures, self._topics_max) if self._topics_max else ()
        self._now = replace(
            self._now,
            survey=found,
            done=_risen(self._now.done, found.done),
            topics=tuple(topics),
            succeeded=True,
            took_s=took_s,
            good=self._now.good + 1,
        )

    def failed(self, *, took_s: float) -> None:
        """The figures stay those of the last good survey, and are marked as such."""
        self._now = replace(self._now, succeeded=False, took_s=took_s, bad=self._now.bad + 1)

    def collect(self) -> Iterator[Metric]:
        now = self._now
        yield from self._of_surveys(now)
        if now.survey is None:
            return
        yield from _of_namespaces(now.survey.figures)
        yield from _of_fleet(now.survey.figures)
        yield from _of_objectives(now.survey.findings)
        yield from budgets_of(now.survey.budgets)
        if now.done is not None:
            yield from counters_of(now.done)
        yield from now.topics

    def _of_surveys(self, now: _Snapshot) -> Iterator[Metric]:
        about = GaugeMetricFamily(
            "tierkeeper_build_info", "Version of tierkeeper", labels=["version"]
        )
        about.add_metric([version("tierkeeper")], 1)
        yield about
        yield GaugeMetricFamily(
            "tierkeeper_survey_success",
            "1 when the newest survey succeeded; at 0 all figures are of an older one",
            value=float(now.succeeded),
        )
        yield GaugeMetricFamily(
            "tierkeeper_survey_duration_seconds", "Time that the newest survey took", now.took_s
        )
        surveys = CounterMetricFamily(
            "tierkeeper_surveys", "Surveys since the start", labels=["result"]
        )
        surveys.add_metric(["success"], now.good)
        surveys.add_metric(["failure"], now.bad)
        yield surveys
        if now.survey is not None:
            taken_at = now.survey.figures.taken_at.timestamp()
            yield GaugeMetricFamily(
                "tierkeeper_survey_timestamp_seconds",
                "Unix time of the survey that the figures are of",
                taken_at,
            )
            yield GaugeMetricFamily(
                "tierkeeper_survey_age_seconds",
                "Time since the survey that the figures are of",
                max(0.0, self._clock() - taken_at),
            )


def _risen(before: WorkDone | None, now: WorkDone | None) -> WorkDone | None:
    """No sum falls, whatever tables were made anew, and none goes while nobody can tell."""
    return before if now is None else now if before is None else now.at_least(before)


def make_registry(collector: FleetCollector) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return registry


def exposition(registry: CollectorRegistry) -> str:
    """Prometheus' text format, as a scrape gets it."""
    return generate_latest(registry).decode()


def _of_namespaces(figures: FleetFigures) -> Iterator[Metric]:
    for name, about, value in _LAGS:
        yield _gauge(
            f"tierkeeper_{name}",
            about,
            "namespace",
            ((namespace, value(found)) for namespace, found in figures.namespaces.items()),
        )


def _of_fleet(figures: FleetFigures) -> Iterator[Metric]:
    total = figures.total
    rows = {row.reason: row for row in total.reasons}
    yield _gauge(
        "tierkeeper_ledgers",
        "Ledgers by the one reason for where each is",
        "reason",
        ((r.value, rows[r].ledgers if r in rows else 0) for r in BacklogReason),
    )
    yield _gauge(
        "tierkeeper_ledger_bytes",
        "Bytes of ledgers by the one reason for where each is",
        "reason",
        ((r.value, rows[r].bytes if r in rows else 0) for r in BacklogReason),
    )
    yield GaugeMetricFamily("tierkeeper_topics", "Topics with ledgers", len(figures.topics))
    if total.verified_share is not None:
        yield GaugeMetricFamily(
            "tierkeeper_verified_ratio",
            "Share of the ledgers that brokers read from the bucket whose every byte is certified",
            total.verified_share,
        )
    yield GaugeMetricFamily(
        "tierkeeper_disturbances_last_hour",
        "Topics that we had reloaded in the hour before the survey",
        figures.disturbances_last_hour,
    )


def _of_objectives(findings: Sequence[MissedObjective]) -> Iterator[Metric]:
    yield _gauge(
        "tierkeeper_objective_limit",
        "Objectives that are set, in the unit of their figure",
        "objective",
        ((finding.figure, finding.limit) for finding in findings),
    )
    yield _gauge(
        "tierkeeper_objective_found",
        "What an objective is about as it is, in the same unit",
        "objective",
        ((finding.figure, finding.found) for finding in findings),
    )
    yield _gauge(
        "tierkeeper_objective_level",
        "0 is met, 1 is near its limit (a warning), 2 is beyond it",
        "objective",
        ((finding.figure, finding.level.value) for finding in findings),
    )


def _of_topics(figures: FleetFigures, count: int) -> Iterator[Metric]:
    """Those in a lag are looked through once for all figures."""
    lagging = [*figures.topics.lagging()]
    for name, about, value in _LAGS:
        amounts = ((topic, value(found)) for topic, found in lagging)
        some = (pair for pair in amounts if pair[1] > 0)
        yield _gauge(
            f"tierkeeper_topic_{name}",
            f"{about}; the topics with most of it",
            "topic",
            nsmallest(count, some, key=lambda pair: (-pair[1], pair[0])),
        )


def _gauge(
    name: str, about: str, label: str, values: Iterable[tuple[str, float]]
) -> GaugeMetricFamily:
    return filled(GaugeMetricFamily(name, about, labels=[label]), values)
