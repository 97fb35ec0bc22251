"""`tierkeeper hold set|lift|list`: bans on deleting bookie copies, the kill switch among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.brakes.brake_list import print_brakes
from tiering_assets.cli.brakes.permits import Permits, releases_permitted, scopes_text
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.grammar.selected import managed_ledgers, scopes_of
from tiering_assets.cli.grammar.selection import Chosen, ledger_selection
from tiering_assets.cli.shared.authorship import Author, Reason, author_or_user
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session

if TYPE_CHECKING:
    from tiering_assets.look.brakes.scopes import Scope

app = typer.Typer(
    name="hold",
    help="Bans on deleting bookie copies; --all stops everything.",
    no_args_is_help=True,
)

CHOSEN = ledger_selection()
CONSENT = consent_options(
    does="Lift it.", plan_help="Print what may then be released, and end with 0."
)


@command(
    app,
    "set",
    examples=(
        "tierkeeper hold set 12345 --reason audit-2026-4",
        "tierkeeper hold set --topic public/default/orders --reason lawsuit",
        "tierkeeper hold set --all --reason disk-incident",
    ),
)
def set_hold(
    session: Session,
    *,
    reason: Reason,
    chosen: Annotated[Chosen, CHOSEN],
    author: Author = None,
) -> None:
    """Forbid releases: of ledgers, topics, namespaces, or all.

    Binds what tierkeeper deletes, from now on and in runs that have begun. What else can still
    delete a topic's data is printed with it. A partitioned topic is held with all its partitions,
    those that it will have, too. Acts at once.
    """
    from tiering_assets.look.brakes.holds import hold, what_a_hold_cannot_stop

    scopes = scopes_of(chosen)
    with session.stack() as stack:
        ml_names = [name for topic in chosen.topics for name in managed_ledgers(stack, topic)]
        who = author_or_user(author)
        fresh = {scope: hold(stack, scope, reason=reason, author=who) for scope in scopes}
        beyond = {name: what_a_hold_cannot_stop(stack, name) for name in ml_names}
    if session.as_json:
        holds = {str(scope): one for scope, one in fresh.items()}
        print_document("hold-set", {"holds": holds, "cannot_stop": beyond})
        return
    for scope, one in fresh.items():
        print_line(f"{scope}: {'held' if one else 'was held before; the first reason stays'}")
    for ml_name, lines in beyond.items():
        print_line(f"What a hold of {ml_name} cannot stop:")
        for line in lines:
            print_line(f"  - {line}")


@command(
    app,
    "lift",
    examples=(
        "tierkeeper hold lift 12345 --reason audit-done --plan",
        "tierkeeper hold lift 12345 --reason audit-done --execute",
    ),
)
def lift(
    session: Session,
    *,
    reason: Reason,
    chosen: Annotated[Chosen, CHOSEN],
    consent: Annotated[Consent, CONSENT],
    author: Author = None,
) -> None:
    """Take holds away. Who did so, and why, stays in the records.

    Takes away the holds of exactly these ledgers, topics, namespaces, or of everything. Which
    releases that permits is printed first. What else still holds the topics, a wider hold or that
    of a partition, is printed last.
    """
    from tiering_assets.look.brakes.brake import HOLD
    from tiering_assets.look.brakes.holds import lift_hold, require_holds, still_held
    from tiering_assets.look.brakes.scopes import topics_covered

    scopes = scopes_of(chosen)
    held: dict[str, str] = {}
    with session.stack() as stack:
        require_holds(stack, scopes)
        permits = releases_permitted(stack, scopes)
        body = {"holds": [HOLD.key(scope) for scope in scopes], "permits": permits}
        may_act = consent.given(
            session,
            show=lambda: _print_permits(session, body, permits, scopes, consent),
            question=f"Lift {scopes_text(scopes)}?",
        )
        if not may_act:
            return
        for scope in scopes:
            lift_hold(stack, scope, reason=reason, author=author_or_user(author))
            covered = topics_covered(stack, scope) if scope.kind == "topic" else []
            held |= still_held(stack, covered)
    if session.as_json:
        print_document("hold-lift", {"executed": True, **body, "still_held": held})
        return
    print_line("the hold is lifted" if len(scopes) == 1 else f"{len(scopes)} holds are lifted")
    for name, why in held.items():
        print_line(f"{name} stays held: {why}")


def _print_permits(
    session: Session,
    body: dict[str, Any],
    permits: Permits,
    scopes: Sequence[Scope],
    consent: Consent,
) -> None:
    if session.as_json:
        print_document("hold-lift", {"executed": False, **body, "still_held": {}})
        return
    for scope in scopes:
        print_line(f"the hold of {scope} would go")
    print_line(
        f"permits the release of {permits.ledgers} ledgers that are due, of {permits.topics} "
        f"topics, and of others when they are due{consent.nothing_done}"
    )


@command(
    app,
    "list",
    examples=("tierkeeper hold list", "tierkeeper hold list --json"),
    reads_only=ALWAYS,
)
def list_all(session: Session) -> None:
    """List every hold with its author and reason."""
    from tiering_assets.look.brakes.brake import HOLD, list_brakes

    with session.stack() as stack:
        found = [*list_brakes(stack, HOLD)]
    print_brakes(
        found,
        document="hold-list",
        plural="holds",
        columns={
            "scope": "scope",
            "name": "name",
            "author": "author",
            "since": "held_at",
            "reason": "reason",
        },
        as_json=session.as_json,
    )
