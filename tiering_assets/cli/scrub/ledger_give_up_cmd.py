"""`tierkeeper ledger give-up`: have a published copy that can never be released made again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tiering_assets.cli.explain.ledger_cmd import app
from tiering_assets.cli.shared.authorship import Author, Reason, author_or_user
from tiering_assets.cli.shared.command import command
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session


@command(
    app,
    "give-up",
    examples=("tierkeeper ledger give-up 12345 --reason clock-was-a-day-ahead",),
)
def give_up(
    session: Session,
    *,
    ledger_id: Annotated[int, typer.Argument(metavar="ID", min=0, help="Ledger id.")],
    reason: Reason,
    author: Author = None,
) -> None:
    """Quarantine a published copy, so that the next scrub puts a new one in its place.

    For a copy whose records can never pass the release gate, such as dates that contradict each
    other. Readers keep the old copy until then. Refused once the bookie copy is gone or marked.
    """
    from tiering_assets.scrub.give_up_copy import give_up_copy

    with session.stack() as stack:
        done = give_up_copy(stack, ledger_id, reason=reason, author=author_or_user(author))
    if session.as_json:
        print_document("ledger-give-up", asdict(done))
        return
    said = "given up" if done.fresh else "was quarantined before; the first reason stays"
    print_line(f"ledger {done.ledger_id}: attempt {done.uid} {said}")
    print_line(f"`tierkeeper scrub run --topic {done.topic}` puts a new copy in its place")
