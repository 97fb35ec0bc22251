"""`tierkeeper topic load-overdue`: have brokers apply retention to topics that nobody has
loaded.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tiering_assets.cli.explain.topic_cmd import Topics, app
from tiering_assets.cli.shared.command import command
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.selection import managed_ledgers
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

TOPICS_MAX = 10

Execute = Annotated[
    bool,
    typer.Option(
        "--execute/--dry-run",
        help="Load the topics, or only say which ones would be [default: --dry-run].",
        show_default=False,
    ),
]
Max = Annotated[
    int, typer.Option("--max", metavar="N", min=1, help="Topics loaded by this run at most.")
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", min=1, help="How long each topic's broker has to trim."
    ),
]


@command(
    app,
    "load-overdue",
    examples=(
        "tierkeeper topic load-overdue",
        "tierkeeper topic load-overdue --execute --max 5",
        "tierkeeper topic load-overdue public/default/orders --execute",
    ),
)
def load_overdue(
    session: Session,
    *,
    topics: Topics = None,
    execute: Execute = False,
    topics_max: Max = TOPICS_MAX,
    timeout: Timeout = 60.0,
) -> None:
    """Ask brokers to load idle topics whose retention is overdue, and see that they trimmed them.

    Only brokers trim, and only topics that they have loaded. Never loaded are topics that their
    broker would delete as inactive, and those with an overdue ledger that is held or being copied.
    At most disturb.loads_hour_max topics are loaded in any hour. Without --execute nothing is
    trimmed, but the own policies of overdue topics are asked, for which a broker may load them.
    Ends with 1 when a topic was asked for and still lists what is overdue.
    """
    from tiering_assets.retention import load_overdue as step
    from tiering_assets.retention.retention_load import LoadState

    with session.stack() as stack:
        names = None
        if topics:
            names = sorted({name for topic in topics for name in managed_ledgers(stack, topic)})
        found = step.load_overdue(
            stack, names, execute=execute, topics_max=topics_max, timeout_s=timeout
        )
    if session.as_json:
        print_document("topic-load-overdue", {"dry_run": not execute, "topics": found})
    else:
        rows = [
            (one.topic, one.state, len(one.overdue), one.overdue_bytes, one.detail) for one in found
        ]
        print_table(
            (
                Column("TOPIC", ValueKind.TOPIC),
                Column("STATE", ValueKind.STATE),
                Column("OVERDUE", ValueKind.NUMBER),
                Column("SIZE", ValueKind.SIZE),
                Column("DETAIL", ValueKind.FINDINGS),
            ),
            rows,
        )
        if any(one.state is LoadState.WOULD_LOAD for one in found):
            print_line("nothing was loaded; --execute does it")
    if any(one.state in (LoadState.NOT_TRIMMED, LoadState.FAILED) for one in found):
        raise typer.Exit(FINDINGS)
