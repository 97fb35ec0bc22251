"""`tierkeeper topic list`: every topic and where its ledgers are, from metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.explain.fresh import FRESH_S, Fresh, fresh_of, print_source
from tiering_assets.cli.explain.topic_cmd import app
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.known_names import remember_names
from tiering_assets.cli.grammar.selected import names_of
from tiering_assets.cli.grammar.selection import Chosen, topic_selection
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.explain.topic_list import ListedTopic

CHOSEN = topic_selection()
_COLUMNS = (
    Column("TOPIC", ValueKind.TOPIC),
    Column("LEDGERS", ValueKind.NUMBER),
    Column("SIZE", ValueKind.SIZE),
    Column("SEALED", ValueKind.NUMBER),
    Column("OURS", ValueKind.NUMBER),
    Column("BROKER", ValueKind.NUMBER),
    Column("BOOKIES", ValueKind.NUMBER),
    Column("SIZE", ValueKind.SIZE),
    Column("POLICY", ValueKind.STATE),
)


@command(
    app,
    "list",
    examples=(
        "tierkeeper topic list",
        "tierkeeper topic list --namespace public/default",
        "tierkeeper topic list --json",
    ),
    reads_only=ALWAYS,
)
def list_topics(
    session: Session,
    *,
    chosen: Annotated[Chosen, CHOSEN],
    most: Annotated[
        int, typer.Option("--limit", min=0, help="At most so many topics; 0 is all of them.")
    ] = 10_000,
    fresh: Fresh = FRESH_S,
) -> None:
    """List topics: ledgers, sealed ones, and who published them. Loads and creates nothing.

    Of the sealed ledgers each is published by us (OURS), published by a broker's own offloader
    (BROKER), or on bookies only (BOOKIES, with its size). POLICY says whether a threshold of the
    namespace, the broker or tiering.toml selects ledgers; a topic's own level is not asked. Ends
    with 1 if a topic's metadata could not be read; whether topics are loaded is not asked. Says so
    when there are more than --limit.

    Asks the catalogue, where it is proven and fresh enough; else reads each topic's node.
    """
    from tiering_assets.fleet.source import document_of
    from tiering_assets.fleet.topics import list_all_topics

    with session.stack() as stack:
        found = list_all_topics(
            stack, names_of(stack, chosen), most=most or None, fresh=fresh_of(fresh)
        )
    topics = found.topics
    remember_names(one.topic for one in topics)
    unread = [one for one in topics if one.counts is None]
    if session.as_json:
        told = [_document(one) for one in topics]
        document = {"topics": told, "cut": found.cut, "as_of": document_of(found.source)}
        print_document("topic-list", document)
    else:
        print_table(_COLUMNS, [_row(one) for one in topics if one.counts is not None])
        for one in unread:
            print_line(f"unknown: {one.topic}: {one.error}")
        print_line(f"{len(topics)} topics; whether they are loaded is not asked")
        if found.cut:
            print_line(f"there are more than {most} of them: choose some, or give --limit 0")
        print_source(found.source)
    if unread:
        raise typer.Exit(FINDINGS)


def _document(one: ListedTopic) -> dict[str, Any]:
    return {
        "topic": one.topic,
        "ml_name": one.ml_name,
        "loaded": "unknown",
        "policy": one.policy,
        "counts": one.counts,
        "error": one.error,
    }


def _row(one: ListedTopic) -> tuple[object, ...]:
    counts = one.counts
    if counts is None:
        return (one.topic,)
    return (
        one.topic,
        counts.every.ledgers,
        counts.every.bytes,
        counts.sealed.ledgers,
        counts.published_by_us.ledgers,
        counts.published_by_broker.ledgers,
        counts.bookies_only.ledgers,
        counts.bookies_only.bytes,
        one.policy,
    )
