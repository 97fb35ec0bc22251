"""`tierkeeper topic backlog`: how many ledgers are where, each with its one reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.selected import names_of
from tiering_assets.cli.grammar.selection import AskTopics, Chosen, topic_selection
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.explain.backlog import ExplainedLedger
    from tiering_assets.explain.backlog_counts import ReasonCount

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
    session: Session, *, chosen: Annotated[Chosen, CHOSEN], ask_topics: AskTopics = False
) -> None:
    """Count ledgers and bytes by reason, with ages.

    Every ledger has exactly one reason, so the counts add up; docs/states.md lists them in their
    order. Loads no topic. Topics that are named are counted one by one. Their own policies are
    asked, too, where a broker owns their bundle: elsewhere, to ask would make it load topics.
    """
    from tiering_assets.explain.backlog import count_backlog, explain_backlog

    with session.stack() as stack:
        names, each = names_of(stack, chosen), not chosen.everything
        explained = list(
            explain_backlog(stack, names, ask_topics=each, loads_nothing=not ask_topics)
        )
        now = stack.now()
        total = count_backlog(explained, now=now)
        by_topic: dict[str, list[ExplainedLedger]] = defaultdict(list)
        for one in explained if each else ():
            by_topic[one.view.topic].append(one)
        counted = {topic: count_backlog(found, now=now) for topic, found in by_topic.items()}
        steps = _steps(explained)
    if session.as_json:
        print_document(
            "topic-backlog",
            {
                "ledgers": len(explained),
                "bytes": sum(row.bytes for row in total),
                "reasons": total,
                "topics": [{"topic": name, "reasons": rows} for name, rows in counted.items()],
                "next_steps": steps,
            },
        )
        return
    if each:
        print_table(
            (Column("TOPIC", ValueKind.TOPIC), *_COLUMNS),
            [(name, *_row(row)) for name, rows in counted.items() for row in rows],
        )
    else:
        print_table(_COLUMNS, [_row(row) for row in total])
    for reason, said in steps.items():
        for step in said:
            print_line(f"next, {reason}: {step}")


def _steps(explained: Iterable[ExplainedLedger]) -> dict[str, list[str]]:
    """By reason, what is done about its ledgers: a reason of many cases may have several."""
    from tiering_assets.explain.next_steps import next_step

    found: dict[str, list[str]] = {}
    for one in explained:
        said = found.setdefault(one.because.reason.value, [])
        step = next_step(one.because)
        if step not in said:
            said.append(step)
    return dict(sorted(found.items()))


def _row(row: ReasonCount) -> tuple[object, ...]:
    return (row.reason, row.ledgers, row.bytes, row.oldest_s)
