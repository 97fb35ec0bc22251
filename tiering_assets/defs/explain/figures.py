"""Lag and other figures of the whole fleet as Dagster shows them, and the check against objectives.

Owns: figures are told when a batch fails, too: offload and release runs observe the backlog on
their way out, whatever came of them. An observation, because a run that worked on a batch has not
counted the backlog's states anew; and of all topics, because a part of them would read as a drop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import dagster as dg

from tiering_assets.defs.explain.rollups import backlog_text
from tiering_assets.defs.shared.metadata import Metadata, bytes_text, duration_text
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_api import log_evaluation
from tiering_assets.defs.shared.resources import narrate
from tiering_assets.explain.figures.objectives import (
    MissedObjective,
    ObjectiveLevel,
    decide_objectives,
    worst_level,
)
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tiering_assets.explain.figures.lag_figures import Figures, FleetFigures, Lag
    from tiering_assets.ground.stack import Stack
    from tiering_assets.resources.settings import ObjectiveSettings

_NAMESPACES_SHOWN = 50
NO_OBJECTIVE = (
    "no objective is set, so no lag is judged. Next: set objectives.copy_lag_age_s_max and "
    "objectives.delete_lag_age_s_max (docs/metrics.md)"
)


def objectives_spec(cluster: ClusterNames) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        cluster.objectives_met.name,
        asset=cluster.tiering_backlog,
        description=(
            "Copy lag, delete lag and stuck ledgers of all topics are within the objectives of "
            "the settings. It warns near a limit, and where none is set, and fails beyond it "
            "(docs/metrics.md)."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the check says. A warning has not passed either, so that it is seen."""

    passed: bool
    severity: dg.AssetCheckSeverity
    description: str
    metadata: Mapping[str, dg.MetadataValue]


def figures_metadata(figures: FleetFigures) -> Metadata:
    """Six numbers to plot, and the namespaces that lag most. A seventh would hide them."""
    total = figures.total
    shown: dict[str, dg.MetadataValue] = {
        "copy_lag_bytes": dg.MetadataValue.int(total.copy_lag.bytes),
        "copy_lag_oldest_seconds": dg.MetadataValue.float(round(total.copy_lag.oldest_s, 1)),
        "delete_lag_bytes": dg.MetadataValue.int(total.delete_lag.bytes),
        "delete_lag_oldest_seconds": dg.MetadataValue.float(round(total.delete_lag.oldest_s, 1)),
        "stuck_ledgers": dg.MetadataValue.int(total.stuck),
        "reloads": dg.MetadataValue.text(f"{figures.disturbances_last_hour} in the last hour"),
        "lag_by_namespace": _by_namespace(figures.namespaces),
    }
    if total.verified_share is not None:
        shown["verified_share"] = dg.MetadataValue.float(total.verified_share)
    return shown


def judge(figures: FleetFigures, objectives: ObjectiveSettings) -> Verdict:
    """The verdict of `objectives_met`. Without objectives it warns: nobody is told of a lag."""
    findings = decide_objectives(figures, objectives)
    level = worst_level(findings)
    missed = [finding for finding in findings if finding.level is not ObjectiveLevel.MET]
    said = f"{len(findings)} objectives met" if findings else NO_OBJECTIVE
    warns = level is ObjectiveLevel.WARN or not findings
    return Verdict(
        passed=bool(findings) and not missed,
        severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
        description="; ".join(map(str, missed)) or said,
        metadata={
            "objectives": _table(findings),
            **{f"found_{one.figure}": dg.MetadataValue.float(float(one.found)) for one in findings},
        },
    )


def observation(cluster: ClusterNames, figures: FleetFigures) -> dg.AssetObservation:
    """A sentence and the numbers; the counts by state and topic are `discover`'s."""
    said = dg.MetadataValue.md(backlog_text(figures))
    return dg.AssetObservation(
        cluster.tiering_backlog, metadata={"summary": said, **figures_metadata(figures)}
    )


def check_result(cluster: ClusterNames, verdict: Verdict) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(**_judged(cluster, verdict))


def evaluation(cluster: ClusterNames, verdict: Verdict) -> dg.AssetCheckEvaluation:
    """The same for what is no run."""
    return dg.AssetCheckEvaluation(**_judged(cluster, verdict))


def _judged(cluster: ClusterNames, verdict: Verdict) -> dict[str, Any]:
    return {
        "asset_key": cluster.objectives_met.asset_key,
        "check_name": cluster.objectives_met.name,
        "passed": verdict.passed,
        "severity": verdict.severity,
        "description": verdict.description,
        "metadata": verdict.metadata,
    }


class BacklogAtEnd:
    """The run's one look at the backlog: when it is first asked for, after the run's work."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    @cached_property
    def figures(self) -> FleetFigures | None:
        """Of all ledgers, by a survey: a few listings, and a read of each topic's node.

        None where the catalogue counts: its rows have this run once that is over and posted, and
        the sensor `catalogue` tells the figures then.
        """
        from datetime import timedelta

        from tiering_assets.fleet.backlog import take_backlog
        from tiering_assets.fleet.source import tables_to_ask
        from tiering_assets.resources.errors import CatalogueError

        try:
            if tables_to_ask(self._stack) is not None:
                return None
        except CatalogueError as error:  # no run fails by it
            self._stack.narrate(f"topics are counted without the catalogue: {error}")
        return take_backlog(self._stack, fresh=timedelta()).figures


@contextmanager
def observed_backlog(
    context: dg.AssetExecutionContext, cluster: ClusterNames, stack: Stack
) -> Iterator[BacklogAtEnd]:
    """Tell the fleet's figures when the block ends, also with an error.

    When they cannot be taken, the run's log says so, and the run ends as it would have.
    """
    backlog = BacklogAtEnd(stack)
    try:
        yield backlog
    except Exception:  # a run that is being cancelled does not stay for this
        _try_observe(context, cluster, stack, backlog)
        raise
    _try_observe(context, cluster, stack, backlog)


def _try_observe(
    context: dg.AssetExecutionContext, cluster: ClusterNames, stack: Stack, backlog: BacklogAtEnd
) -> None:
    try:
        figures = backlog.figures
        if figures is not None:
            _observe(context, cluster, stack, figures)
    except TierkeeperError as error:  # what the run itself came to counts for more
        narrate(context, f"the backlog's figures were not taken: {error}")


def _observe(
    context: dg.AssetExecutionContext, cluster: ClusterNames, stack: Stack, figures: FleetFigures
) -> None:
    verdict = judge(figures, stack.settings.objectives)
    context.log_event(observation(cluster, figures))
    log_evaluation(
        context,
        cluster.objectives_met,
        partition=None,
        passed=verdict.passed,
        description=verdict.description,
        metadata=verdict.metadata,
        severity=verdict.severity,
    )


def _table(findings: Sequence[MissedObjective]) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "figure": one.figure,
                    "level": one.level.name.lower(),
                    "found": float(one.found),
                    "limit": float(one.limit),
                    "worst": ", ".join(f"{worst.topic} {worst.found:g}" for worst in one.worst),
                }
            )
            for one in findings
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn("figure", "string"),
                dg.TableColumn("level", "string", "met, warn or error"),
                dg.TableColumn("found", "float"),
                dg.TableColumn("limit", "float"),
                dg.TableColumn("worst", "string", "topics with most of it"),
            ]
        ),
    )


def _lag_text(lag: Lag) -> str:
    """`12.8 MiB, oldest 3.2 h`."""
    if not lag.ledgers:
        return "none"
    return f"{bytes_text(lag.bytes)}, oldest {duration_text(lag.oldest_s)}"


def _by_namespace(namespaces: Mapping[str, Figures]) -> dg.MetadataValue:
    most = sorted(
        namespaces.items(),
        key=lambda item: (-item[1].copy_lag.bytes - item[1].delete_lag.bytes, item[0]),
    )
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "namespace": name,
                    "copy lag": _lag_text(found.copy_lag),
                    "delete lag": _lag_text(found.delete_lag),
                    "stuck": found.stuck,
                }
            )
            for name, found in most[:_NAMESPACES_SHOWN]
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn("namespace", "string"),
                dg.TableColumn("copy lag", "string", "bytes, and for how long the oldest waits"),
                dg.TableColumn("delete lag", "string"),
                dg.TableColumn("stuck", "int", "ledgers that wait for a person"),
            ]
        ),
    )
