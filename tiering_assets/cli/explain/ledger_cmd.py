"""`tierkeeper ledger list|show|why`, and the group that ledger_copy_cmd and ledger_release_cmd
join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.explain.fresh import FRESH_S, Fresh, fresh_of, print_source
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.completion import ledgers_like
from tiering_assets.cli.grammar.known_names import remember_names
from tiering_assets.cli.grammar.selected import names_of
from tiering_assets.cli.grammar.selection import AskTopics, Chosen, ledger_selection
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.look.ledger.states import LedgerState

if TYPE_CHECKING:
    from tiering_assets.look.ledger.survey import LedgerView

app = typer.Typer(
    name="ledger", help="Ledgers: where they are, copy, verify, release.", no_args_is_help=True
)


CHOSEN = ledger_selection(optional=True)


@command(
    app,
    "list",
    examples=(
        "tierkeeper ledger list",
        "tierkeeper ledger list --topic public/default/orders",
        "tierkeeper ledger list --state release_due --json",
    ),
    reads_only=ALWAYS,
)
def list_ledgers(
    session: Session,
    *,
    chosen: Annotated[Chosen, CHOSEN],
    state: Annotated[
        list[LedgerState] | None, typer.Option("--state", help="Only these; may be repeated.")
    ] = None,
    most: Annotated[
        int, typer.Option("--limit", min=0, help="At most so many ledgers; 0 is all of them.")
    ] = 10_000,
    fresh: Fresh = FRESH_S,
) -> None:
    """List ledgers with their states, by topic and id. Loads no topic.

    Asks the catalogue, where it is proven and fresh enough; else reads metadata and records. Says
    so when there are more than --limit.
    """
    from tiering_assets.fleet.ledgers import list_ledgers as list_all
    from tiering_assets.fleet.source import document_of

    with session.stack() as stack:
        found = list_all(
            stack,
            names_of(stack, chosen),
            states=frozenset(state or ()),
            only=frozenset(chosen.ledger_ids),
            most=most or None,
            fresh=fresh_of(fresh),
        )
    views = found.views
    remember_names((v.topic for v in views), (v.ledger_id for v in views))
    if session.as_json:
        told = {"ledgers": views, "cut": found.cut, "as_of": document_of(found.source)}
        print_document("ledger-list", told)
        return
    print_table(
        (
            Column("LEDGER", ValueKind.ID),
            Column("STATE", ValueKind.STATE),
            Column("ENTRIES", ValueKind.NUMBER),
            Column("SIZE", ValueKind.SIZE),
            Column("CLOSED", ValueKind.TIME),
            Column("BY", ValueKind.TEXT),
            Column("TOPIC", ValueKind.TOPIC),
        ),
        [_row(v) for v in views],
    )
    if found.cut:
        print_line(f"there are more than {most} of them: choose some, or give --limit 0")
    print_source(found.source)


def _row(view: LedgerView) -> tuple[object, ...]:
    return (
        view.ledger_id,
        view.state,
        view.entries,
        view.bytes,
        view.closed_at,
        view.offloaded_by,
        view.topic,
    )


@command(
    app,
    "show",
    examples=("tierkeeper ledger show 12345", "tierkeeper ledger show 12345 --json"),
    reads_only="without --ask-topics",
)
def show(
    session: Session,
    *,
    ledger_id: Annotated[
        int, typer.Argument(metavar="ID", min=0, help="Ledger id.", autocompletion=ledgers_like)
    ],
    ask_topics: AskTopics = False,
) -> None:
    """Show all that is known of one ledger.

    Both metadata trees, offload context, claim, hold, and every attempt with its chain of records.
    Also what publication or release would decide now, which is asked only where a broker owns the
    topic's bundle.
    """
    from tiering_assets.cli.explain.ledger_page import page_document, print_page
    from tiering_assets.explain.ledger_report import report_ledger

    with session.stack() as stack:
        report = report_ledger(stack, ledger_id, loads_nothing=not ask_topics)
    if session.as_json:
        print_document("ledger-show", page_document(report))
    else:
        print_page(report)


@command(
    app,
    "why",
    examples=("tierkeeper ledger why 12345", "tierkeeper ledger why 12345 --json"),
    reads_only="without --ask-topics",
)
def why(
    session: Session,
    *,
    ledger_id: Annotated[
        int, typer.Argument(metavar="ID", min=0, help="Ledger id.", autocompletion=ledgers_like)
    ],
    ask_topics: AskTopics = False,
) -> None:
    """Say why a ledger is not where policy wants it.

    One line says why, another what to do. Exactly one reason from the closed list of
    docs/states.md, as `topic backlog` counts it, with its rule, error or missing evidence. Loads no
    topic: its topic's own policy and the release gate are asked only where a broker owns the
    topic's bundle.
    """
    from tiering_assets.explain.backlog import explain_ledger
    from tiering_assets.explain.reasons.next_steps import next_step

    with session.stack() as stack:
        found = explain_ledger(stack, ledger_id, loads_nothing=not ask_topics)
    view = found.view
    topic = None if view is None else view.topic
    step = next_step(found.because, topic=topic, ledger_id=ledger_id)
    if session.as_json:
        print_document(
            "ledger-why",
            {
                "ledger_id": ledger_id,
                "reason": found.because.reason,
                "detail": found.because.detail,
                "state": None if view is None else view.state,
                "topic": topic,
                "ml_name": found.ml_name,
                "next_step": step,
            },
        )
    else:
        print_line(f"ledger {ledger_id}: {found.because}", lead=found.because.reason.value)
        print_line(f"  next: {step}")
