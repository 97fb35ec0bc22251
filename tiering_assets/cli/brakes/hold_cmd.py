"""`tierkeeper hold set|lift|list`: bans on deleting bookie copies, the kill switch among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.brakes.brake_list import print_brakes
from tiering_assets.cli.brakes.brake_scope import chosen_scope
from tiering_assets.cli.shared.authorship import Author, Reason, author_or_user
from tiering_assets.cli.shared.command import ALWAYS, command
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.selection import Namespace, Topic, managed_ledgers
from tiering_assets.cli.shared.session import Session

if TYPE_CHECKING:
    from tiering_assets.look.brakes.scopes import Scope

app = typer.Typer(
    name="hold",
    help="Bans on deleting bookie copies; --all stops everything.",
    no_args_is_help=True,
)

Ledger = Annotated[int | None, typer.Option("--ledger", metavar="ID", min=0, help="One ledger.")]
All = Annotated[bool, typer.Option("--all", help="Everything: the kill switch.")]


@command(
    app,
    "set",
    examples=(
        "tierkeeper hold set --ledger 12345 --reason audit-2026-4",
        "tierkeeper hold set --topic public/default/orders --reason lawsuit",
        "tierkeeper hold set --all --reason disk-incident",
    ),
)
def set_hold(
    session: Session,
    *,
    reason: Reason,
    ledger: Ledger = None,
    topic: Topic = None,
    namespace: Namespace = None,
    everything: All = False,
    author: Author = None,
) -> None:
    """Forbid the release of a ledger, of a topic, of a namespace, or of everything.

    Binds what tierkeeper deletes, from now on and in runs that have begun. What else can still
    delete a topic's data is printed with it. A partitioned topic is held with all its partitions,
    those that it will have, too.
    """
    from tiering_assets.look.brakes.holds import hold, what_a_hold_cannot_stop

    scope = _scope(ledger, topic, namespace, everything)
    with session.stack() as stack:
        ml_names = [] if topic is None else managed_ledgers(stack, topic)
        fresh = hold(stack, scope, reason=reason, author=author_or_user(author))
        beyond = {name: what_a_hold_cannot_stop(stack, name) for name in ml_names}
    if session.as_json:
        print_document("hold-set", {"holds": {str(scope): fresh}, "cannot_stop": beyond})
        return
    print_line(f"{scope}: {'held' if fresh else 'was held before; the first reason stays'}")
    for ml_name, lines in beyond.items():
        print_line(f"What a hold of {ml_name} cannot stop:")
        for line in lines:
            print_line(f"  - {line}")


@command(
    app,
    "lift",
    examples=("tierkeeper hold lift --ledger 12345 --reason audit-done",),
)
def lift(
    session: Session,
    *,
    reason: Reason,
    ledger: Ledger = None,
    topic: Topic = None,
    namespace: Namespace = None,
    everything: All = False,
    author: Author = None,
) -> None:
    """Take a hold away. Who did so, and why, stays in the records.

    Takes away the hold of exactly this ledger, topic, namespace or everything. What else still
    holds the topic, a wider hold or that of a partition, is printed.
    """
    from tiering_assets.look.brakes.brake import HOLD
    from tiering_assets.look.brakes.holds import lift_hold, still_held
    from tiering_assets.look.brakes.scopes import topics_covered

    scope = _scope(ledger, topic, namespace, everything)
    with session.stack() as stack:
        lift_hold(stack, scope, reason=reason, author=author_or_user(author))
        covered = topics_covered(stack, scope) if scope.kind == "topic" else []
        held = still_held(stack, covered)
    if session.as_json:
        print_document("hold-lift", {"holds": [HOLD.key(scope)], "still_held": held})
        return
    print_line("the hold is lifted")
    for name, why in held.items():
        print_line(f"{name} stays held: {why}")


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


def _scope(ledger: int | None, topic: str | None, namespace: str | None, everything: bool) -> Scope:
    return chosen_scope(
        topic, namespace, everything, of_topic=_topic, of_namespace=_namespace, ledger=ledger
    )


def _topic(topic: str) -> Scope:
    from tiering_assets.look.brakes.scopes import topic_scope
    from tiering_assets.resources.errors import FormatError

    try:
        return topic_scope(topic)
    except FormatError as error:
        raise typer.BadParameter(f"--topic: {error}") from None


def _namespace(namespace: str) -> Scope:
    from tiering_assets.look.brakes.scopes import Scope

    if namespace.count("/") != 1:
        raise typer.BadParameter(f"--namespace {namespace}: expected tenant/namespace")
    return Scope("namespace", namespace)
