"""`tierkeeper tiering pause|resume|list`: no new copies for a topic, a namespace or everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.brakes.brake_list import print_brakes
from tiering_assets.cli.brakes.permits import Permits, copies_permitted, scopes_text
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.grammar.selected import scopes_of
from tiering_assets.cli.grammar.selection import Chosen, scope_selection
from tiering_assets.cli.shared.authorship import Author, Reason, author_or_user
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session

if TYPE_CHECKING:
    from tiering_assets.look.brakes.scopes import Scope

app = typer.Typer(
    name="tiering",
    help="Pause tiering: no new copies, no publications.",
    no_args_is_help=True,
)

CHOSEN = scope_selection()
CONSENT = consent_options(
    does="Go on.", plan_help="Print what may then be copied and published, and end with 0."
)


@command(
    app,
    "pause",
    examples=(
        "tierkeeper tiering pause --topic public/default/orders --reason migration",
        "tierkeeper tiering pause --namespace public/default --disable --reason short-lived",
        "tierkeeper tiering pause --all --reason disk-incident",
    ),
)
def pause_tiering(
    session: Session,
    *,
    reason: Reason,
    chosen: Annotated[Chosen, CHOSEN],
    disable: Annotated[
        bool, typer.Option("--disable", help="Disabled for good, rather than paused for now.")
    ] = False,
    author: Author = None,
) -> None:
    """Stop new copies and publications, for now.

    Runs that have begun obey it at their next ledger and before they publish. What is published
    stays readable, is scrubbed and healed, and is released when it is due: `hold set` stops that.
    A partitioned topic is paused with all its partitions, those that it will have, too. Acts at
    once.
    """
    from tiering_assets.ground.own_policy import TieringMode
    from tiering_assets.look.brakes.pauses import pause
    from tiering_assets.look.brakes.scopes import require_topics, topics_covered

    mode = TieringMode.DISABLED if disable else TieringMode.PAUSED
    scopes, who = scopes_of(chosen), author_or_user(author)
    with session.stack() as stack:
        require_topics(stack, scopes)
        pauses = [
            {
                "scope": scope.kind,
                "name": scope.name,
                "mode": mode.value,
                "changed": pause(stack, scope, mode, reason=reason, author=who),
                "topics": len(topics_covered(stack, scope)),
            }
            for scope in scopes
        ]
    if session.as_json:
        print_document("tiering-pause", {"pauses": pauses})
        return
    for scope, one in zip(scopes, pauses, strict=True):
        said = mode.value if one["changed"] else f"{mode.value} before; the first reason stays"
        print_line(f"{scope}: {said}")
        print_line(f"covers {one['topics']} topics or partitions today")


@command(
    app,
    "resume",
    examples=(
        "tierkeeper tiering resume --topic public/default/orders --reason migrated --plan",
        "tierkeeper tiering resume --topic public/default/orders --reason migrated --execute",
    ),
    reads_only="with --plan",
)
def resume_tiering(
    session: Session,
    *,
    reason: Reason,
    chosen: Annotated[Chosen, CHOSEN],
    consent: Annotated[Consent, CONSENT],
    author: Author = None,
) -> None:
    """Take pauses away. Who did so, and why, stays in the records.

    Takes away the pauses of exactly these topics, namespaces, or of everything, paused or disabled.
    Which copies that permits is printed first. What else keeps a topic switched off, a wider pause
    or tiering.toml, is printed last.
    """
    from tiering_assets.look.brakes.pauses import resume, still_off

    scopes, who = scopes_of(chosen), author_or_user(author)
    lifted: dict[Scope, bool] = {}
    off: dict[str, str] = {}
    with session.stack() as stack:
        permits = copies_permitted(stack, scopes)
        may_act = consent.given(
            session,
            show=lambda: _print_permits(session, permits, scopes, consent),
            question=f"Resume {scopes_text(scopes)}?",
        )
        if not may_act:
            return
        for scope in scopes:
            lifted[scope] = resume(stack, scope, reason=reason, author=who)
            off |= still_off(stack, scope)
    if session.as_json:
        print_document(
            "tiering-resume",
            {
                "executed": True,
                "pauses": [_lifted(scope, changed) for scope, changed in lifted.items()],
                "permits": permits,
                "still_off": off,
            },
        )
        return
    for scope, changed in lifted.items():
        print_line(f"{scope}: {'resumed' if changed else 'there was no such pause'}")
    for name, why in off.items():
        print_line(f"{name} stays {why}")


def _print_permits(
    session: Session, permits: Permits, scopes: Sequence[Scope], consent: Consent
) -> None:
    if session.as_json:
        pauses = [_lifted(scope, False) for scope in scopes]
        plan = {"executed": False, "pauses": pauses, "permits": permits, "still_off": {}}
        print_document("tiering-resume", plan)
        return
    for scope in scopes:
        print_line(f"the pause of {scope} would go")
    print_line(
        f"permits copies and publications of {permits.topics} topics, of which {permits.ledgers} "
        f"ledgers are sealed and not offloaded{consent.nothing_done}"
    )


def _lifted(scope: Scope, changed: bool) -> dict[str, object]:
    return {"scope": scope.kind, "name": scope.name, "changed": changed}


@command(
    app,
    "list",
    examples=("tierkeeper tiering list", "tierkeeper tiering list --json"),
    reads_only=ALWAYS,
)
def list_pauses(session: Session) -> None:
    """List every pause with its author and reason. What tiering.toml says: `policy show`."""
    from tiering_assets.look.brakes.brake import PAUSE, list_brakes

    with session.stack() as stack:
        found = [*list_brakes(stack, PAUSE)]
    print_brakes(
        found,
        document="tiering-list",
        plural="pauses",
        columns={
            "scope": "scope",
            "name": "name",
            "mode": "mode",
            "author": "author",
            "since": "paused_at",
            "reason": "reason",
        },
        as_json=session.as_json,
    )
