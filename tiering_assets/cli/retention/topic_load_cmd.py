"""`tierkeeper topic load-overdue`: have brokers apply retention to topics that nobody has
loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.explain.topic_cmd import CHOSEN, app
from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.grammar.quantities import duration_option
from tiering_assets.cli.grammar.selected import names_of
from tiering_assets.cli.grammar.selection import Chosen
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.retention.load_overdue import LoadOutcome

TOPICS_MAX = 10

CONSENT = consent_options(does="Have brokers load the topics that the plan lists.")
Max = Annotated[
    int, typer.Option("--max", metavar="N", min=1, help="Topics loaded by this run at most.")
]
Timeout = Annotated[
    float,
    duration_option(
        "--timeout", least=1, default="60 s", help="How long each topic's broker has to trim."
    ),
]


@command(
    app,
    "load-overdue",
    examples=(
        "tierkeeper topic load-overdue --plan",
        "tierkeeper topic load-overdue --execute --max 5",
        "tierkeeper topic load-overdue public/default/orders --execute",
    ),
)
def load_overdue(
    session: Session,
    *,
    chosen: Annotated[Chosen, CHOSEN],
    consent: Annotated[Consent, CONSENT],
    topics_max: Max = TOPICS_MAX,
    timeout: Timeout = 60.0,
) -> None:
    """Have brokers trim idle topics that are overdue.

    Only brokers trim, and only topics that they have loaded. Never loaded are topics that their
    broker would delete as inactive, and those with an overdue ledger that is held or being copied.
    At most disturb.loads_hour_max topics are loaded in any hour. With --plan nothing is trimmed,
    but the own policies of overdue topics are asked, for which a broker may load them.
    Ends with 1 when a topic was asked for and still lists what is overdue.
    """
    from tiering_assets.retention.load_overdue import load_overdue as step
    from tiering_assets.retention.retention_load import LoadState

    with session.stack() as stack:
        names = names_of(stack, chosen)
        found, done = [], consent.acts
        if not done:
            found = step(stack, names, execute=False, topics_max=topics_max, timeout_s=timeout)
            going = [one for one in found if one.state is LoadState.WOULD_LOAD]
            done = consent.given(
                session,
                show=lambda: _print(session, found, executed=False),
                question=f"Have brokers load {len(going)} topics?" if going else "",
            )
            names = [one.ml_name for one in going]  # a yes covers what was shown
        if done:
            found = step(stack, names, execute=True, topics_max=topics_max, timeout_s=timeout)
            _print(session, found, executed=True)
    if any(one.state in (LoadState.NOT_TRIMMED, LoadState.FAILED) for one in found):
        raise typer.Exit(FINDINGS)


def _print(session: Session, found: Sequence[LoadOutcome], *, executed: bool) -> None:
    if session.as_json:
        print_document("topic-load-overdue", {"executed": executed, "topics": found})
        return
    print_table(
        (
            Column("TOPIC", ValueKind.TOPIC),
            Column("STATE", ValueKind.STATE),
            Column("OVERDUE", ValueKind.NUMBER),
            Column("SIZE", ValueKind.SIZE),
            Column("DETAIL", ValueKind.FINDINGS),
        ),
        [(one.topic, one.state, len(one.overdue), one.overdue_bytes, one.detail) for one in found],
    )
    if not executed:
        print_line("nothing was loaded; --execute does it")
