"""`tierkeeper ledger give-up`: have a published copy that can never be released made again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tiering_assets.cli.explain.ledger_cmd import app
from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.completion import ledgers_like
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.shared.authorship import Author, Reason, author_or_user
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session

CONSENT = consent_options(does="Quarantine the copy, so that the next scrub makes another.")


@command(
    app,
    "give-up",
    examples=(
        "tierkeeper ledger give-up 12345 --reason clock-was-a-day-ahead --plan",
        "tierkeeper ledger give-up 12345 --reason clock-was-a-day-ahead --execute",
    ),
    reads_only="with --plan",
)
def give_up(
    session: Session,
    *,
    ledger_id: Annotated[
        int, typer.Argument(metavar="ID", min=0, help="Ledger id.", autocompletion=ledgers_like)
    ],
    reason: Reason,
    consent: Annotated[Consent, CONSENT],
    author: Author = None,
) -> None:
    """Quarantine a published copy; a scrub makes a new one.

    For a copy whose records can never pass the release gate, such as dates that contradict each
    other. Readers keep the old copy until then. Refused once the bookie copy is gone or marked.
    """
    from tiering_assets.scrub.give_up_copy import find_copy, give_up_copy

    with session.stack() as stack:
        copy = find_copy(stack, ledger_id)

        def show() -> None:
            if session.as_json:
                plan = {"ledger_id": ledger_id, "uid": copy.uid, "topic": copy.topic}
                print_document("ledger-give-up", {"executed": False, **plan})
                return
            print_line(
                f"ledger {ledger_id}: attempt {copy.uid} of {copy.topic} would be given up"
                f"{consent.nothing_done}"
            )

        question = f"Give up the copy {copy.uid} of ledger {ledger_id}?"
        if not consent.given(session, show=show, question=question):
            return
        done = give_up_copy(stack, ledger_id, reason=reason, author=author_or_user(author))
    if session.as_json:
        print_document("ledger-give-up", {"executed": True, **asdict(done)})
        return
    said = "given up" if done.fresh else "was quarantined before; the first reason stays"
    print_line(f"ledger {done.ledger_id}: attempt {done.uid} {said}")
    print_line(
        f"`tierkeeper scrub run --topic {done.topic} --execute` puts a new copy in its place"
    )
