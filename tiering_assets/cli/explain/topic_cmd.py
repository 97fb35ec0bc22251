"""`tierkeeper topic backlog`: how many ledgers are where, each with its one reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.explain.fresh import FRESH_S, Fresh, fresh_of, print_source
from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.selected import names_of
from tiering_assets.cli.grammar.selection import AskTopics, Chosen, topic_selection
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.explain.figures.lag_figures import ReasonCount

app = typer.Typer(
    name="topic", help="Topics: what is left to do, and why it is not done.", no_args_is_help=True
)

CHOSEN = topic_selection()
_COLUMNS = (
    Column("REASON", ValueKind.STATE),
    Column("LEDGERS", ValueKind.NUMBER),
    Column("SIZE", ValueKind.SIZE),
    Column("OLDEST", ValueKind.AGE),
)


@command(
    app,
    "backlog",
    examples=(
        "tierkeeper topic backlog",
        "tierkeeper topic backlog public/default/orders public/default/payments",
        "tierkeeper topic backlog --namespace public/default",
        "tierkeeper topic backlog --json",
    ),
    reads_only="without --ask-topics",
)
def backlog(
    session: Session,
    *,
    chosen: Annotated[Chosen, CHOSEN],
    ask_topics: AskTopics = False,
    fresh: Fresh = FRESH_S,
) -> None:
    """Count ledgers and bytes by reason, with ages.

    Every ledger has exactly one reason, so the counts add up; docs/states.md lists them in their
    order. Loads no topic. Topics that are named are counted one by one. Their own policies are
    asked, too, where a broker owns their bundle: elsewhere, to ask would make it load topics.

    Asks the catalogue, where it is proven and fresh enough; else reads metadata and records. Up to
    100 topics that are named are read in any case. What policy wants further is looked at ledger by
    ledger either way. While automation is off, that is said first.
    """
    from tiering_assets.automation.standing import OFF
    from tiering_assets.fleet.backlog import take_backlog
    from tiering_assets.fleet.source import document_of

    with session.stack() as stack:
        automation = None if stack.settings.auto.enabled else OFF
        if automation is not None and not session.as_json:
            session.progress(automation)
        each = not chosen.everything
        found = take_backlog(
            stack,
            names_of(stack, chosen),
            fresh=fresh_of(fresh),
            ask_topics=each,
            loads_nothing=not ask_topics,
        )
    total = found.figures.total
    by_topic = found.figures.topics if each else {}
    if session.as_json:
        print_document(
            "topic-backlog",
            {
                "ledgers": total.ledgers,
                "bytes": total.bytes,
                "reasons": total.reasons,
                "topics": [
                    {"topic": name, "reasons": one.reasons} for name, one in by_topic.items()
                ],
                "next_steps": found.steps,
                "as_of": document_of(found.source),
                "automation": automation,
            },
        )
        return
    if each:
        print_table(
            (Column("TOPIC", ValueKind.TOPIC), *_COLUMNS),
            [(name, *_row(row)) for name, one in by_topic.items() for row in one.reasons],
        )
    else:
        print_table(_COLUMNS, [_row(row) for row in total.reasons])
    for reason, said in found.steps.items():
        for step in said:
            print_line(f"next, {reason}: {step}")
    print_source(found.source)


def _row(row: ReasonCount) -> tuple[object, ...]:
    return (row.reason, row.ledgers, row.bytes, row.oldest_s)
