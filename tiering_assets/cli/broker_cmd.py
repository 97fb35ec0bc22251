"""`tierkeeper broker list|gone`: brokers that were seen, and a person's word that one has ended."""

from __future__ import annotations

from typing import Annotated

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.shared.authorship import Author, Reason, author_or_user
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

app = typer.Typer(
    name="broker",
    help="Brokers that were seen, and which of them are asked.",
    no_args_is_help=True,
)

CONSENT = consent_options(does="Keep your word that its process has ended.")
Broker = Annotated[str, typer.Argument(metavar="HOST:PORT", help="As `broker list` spells it.")]


@command(
    app,
    "list",
    examples=("tierkeeper broker list", "tierkeeper broker list --json"),
    reads_only=ALWAYS,
)
def list_brokers(session: Session) -> None:
    """List brokers that are registered, or were lately.

    A broker may be unregistered and silent. Until it is declared gone, every topic counts as
    loaded, so idle topics are unloaded, too.
    """
    from tiering_assets.look.topic.broker_list import list_brokers as read_brokers

    with session.stack() as stack:
        found = [
            {
                "broker": one.name,
                "registered": one.registered,
                "answers": one.answers,
                "asked": one.is_asked,
                "seen_at": one.seen_at,
            }
            for one in read_brokers(stack)
        ]
    if session.as_json:
        print_document("broker-list", {"brokers": found})
        return
    print_table(
        (
            Column("BROKER", ValueKind.ID),
            Column("REGISTERED", ValueKind.TEXT),
            Column("ANSWERS", ValueKind.TEXT, 30),
            Column("ASKED", ValueKind.TEXT),
            Column("SEEN AT", ValueKind.TIME),
        ),
        [tuple(_word(value) for value in one.values()) for one in found],
    )
    print_line(f"{len(found)} brokers")


@command(
    app,
    "gone",
    examples=(
        "tierkeeper broker gone broker-2:8080 --reason decommissioned --plan",
        "tierkeeper broker gone broker-2:8080 --reason node-died --execute",
    ),
)
def gone(
    session: Session,
    *,
    broker: Broker,
    reason: Reason,
    consent: Annotated[Consent, CONSENT],
    author: Author = None,
) -> None:
    """Say that a broker has ended; it is not asked again.

    Refused for one that is registered or answers. It holds until the broker is registered again.
    """
    from tiering_assets.look.topic.broker_list import declare_gone, require_gone

    with session.stack() as stack:
        require_gone(stack, broker)
        may_act = consent.given(
            session,
            show=lambda: _print_permits(session, broker, consent),
            question=f"Say that the process of {broker} has ended?",
        )
        if not may_act:
            return
        declare_gone(stack, broker, reason=reason, author=author_or_user(author))
    if session.as_json:
        print_document("broker-gone", {"executed": True, "broker": broker})
    else:
        print_line(f"broker {broker} is not asked any more")


def _print_permits(session: Session, broker: str, consent: Consent) -> None:
    if session.as_json:
        print_document("broker-gone", {"executed": False, "broker": broker})
        return
    print_line(f"broker {broker} does not answer, and it is not registered")
    print_line(
        "lets topics count as not loaded while it is silent; idle topics are then "
        f"published with no unload{consent.nothing_done}"
    )


def _word(value: object) -> object:
    return ("yes" if value else "no") if isinstance(value, bool) else value
