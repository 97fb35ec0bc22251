"""The fleet's figures as both metadata trees and the records say now. Reads only, loads no topic.

Owns: figures are always of all topics: a count over some of them would read as a drop.
"""

from __future__ import annotations

from collections.abc import Iterable

from tiering_assets.explain.backlog import ExplainedLedger, explain_backlog
from tiering_assets.explain.backlog_reason import BacklogReason
from tiering_assets.explain.backlog_topic import reloads_of_last_hour
from tiering_assets.explain.lag_figures import Counted, FleetFigures, count_figures
from tiering_assets.ground.stack import Stack
from tiering_assets.records.keys import namespace_of


def take_figures(stack: Stack) -> FleetFigures:
    """Survey all topics and count."""
    return figures_now(stack, explain_backlog(stack))


def figures_now(stack: Stack, explained: Iterable[ExplainedLedger]) -> FleetFigures:
    """Count ledgers that were explained just now; they must be the whole fleet's."""
    return count_figures(
        (
            Counted(
                topic=one.view.topic,
                namespace=namespace_of(one.view.ml_name),
                reason=one.because.reason,
                state=one.view.state,
                bytes=one.view.bytes or 0,
                closed_at=one.view.closed_at,
                due_at=one.due_at,
                certified=one.view.offloaded_by == "tierkeeper",
                damaged=one.because.reason is BacklogReason.DAMAGED,
            )
            for one in explained
        ),
        disturbances_last_hour=sum(reloads_of_last_hour(stack).values()),
        now=stack.now(),
    )
