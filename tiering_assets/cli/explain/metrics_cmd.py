"""`tierkeeper metrics`: the fleet's lag and other figures, for Prometheus or once on the
terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.quantities import duration_option
from tiering_assets.cli.shared.output import print_document
from tiering_assets.cli.shared.session import Session

if TYPE_CHECKING:
    from tiering_assets.metrics.surveyed import Surveyed

app = typer.Typer(
    name="metrics",
    help="Lag and other figures of all topics, for Prometheus.",
    no_args_is_help=True,
)

Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 is any free one.")]
Host = Annotated[str, typer.Option("--host", help="Address to listen on.")]
Every = Annotated[
    float, duration_option("--every", least=1, default="60 s", help="From survey to survey.")
]


@command(
    app,
    "serve",
    examples=(
        "tierkeeper metrics serve",
        "tierkeeper metrics serve --host 0.0.0.0 --port 9464 --every 5m",
    ),
)
def serve(
    session: Session, *, port: Port = 9464, host: Host = "127.0.0.1", every: Every = 60.0
) -> None:
    """Serve the figures on http://HOST:PORT/metrics.

    Ends with SIGTERM or Ctrl-C. Surveys all topics every so often; reads only and loads no topic.
    When a survey fails, the old figures stay: then tierkeeper_survey_success is 0 and
    tierkeeper_survey_age_seconds grows. The page docs/metrics.md lists the metrics, the
    alert rules and the dashboard that use them.
    """
    import time

    from tiering_assets.metrics.collector import FleetCollector, make_registry
    from tiering_assets.metrics.server import serve as serve_metrics

    collector = FleetCollector(topics_max=session.settings.metrics.topics_max, clock=time.time)
    serve_metrics(
        collector,
        make_registry(collector),
        lambda: _survey(session),
        host=host,
        port=port,
        every_s=every,
        narrate=session.progress,
    )


@command(
    app,
    "print",
    examples=(
        "tierkeeper metrics print",
        "tierkeeper metrics print --json",
    ),
    reads_only=ALWAYS,
)
def print_metrics(session: Session) -> None:
    """Survey all topics once, and print the figures.

    With --json: one document with figures per topic, per namespace and in total, and what has come
    of the objectives. Reads only and loads no topic.
    """
    import sys
    import time

    from tiering_assets.metrics.collector import FleetCollector, exposition, make_registry

    begun = time.monotonic()
    found = _survey(session)
    if session.as_json:
        print_document(
            "metrics-print",
            {
                "figures": found.figures,
                "objectives": found.findings,
                "done": found.done,
                "budgets": found.budgets,
            },
        )
        return
    collector = FleetCollector(topics_max=session.settings.metrics.topics_max, clock=time.time)
    collector.succeeded(found, took_s=time.monotonic() - begun)
    sys.stdout.write(exposition(make_registry(collector)))


def _survey(session: Session) -> Surveyed:
    """With connections of its own, so that no survey suffers from what happened to the last one."""
    from tiering_assets.explain.figures.objectives import decide_objectives
    from tiering_assets.fleet.backlog import take_backlog
    from tiering_assets.fleet.work_done import budgets_in_force, work_done_so_far
    from tiering_assets.metrics.surveyed import Surveyed

    with session.stack() as stack:
        backlog = take_backlog(stack)
        return Surveyed(
            figures=backlog.figures,
            findings=decide_objectives(backlog.figures, session.settings.objectives),
            done=work_done_so_far(stack, backlog.source),
            budgets=budgets_in_force(stack),
        )
