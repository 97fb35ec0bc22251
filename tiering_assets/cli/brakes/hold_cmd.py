"""`tierkeeper hold set|lift|list`: bans on deleting bookie copies, the kill switch among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.shared.authorship import Author, Reason, author_or_user
from tiering_assets.cli.shared.command import ALWAYS, command
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.selection import (
    Namespace,
    Topic,
    managed_ledgers,
    require_one_choice,
)
from tiering_assets.cli.shared.session import Session

if TYPE_CHECKING:
    from tiering_assets.look.brakes.pauses import Scope

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
    delete a topic's data is printed with it. A partitioned topic is held with all its partitions, those
    that it will have, too.
    """
    from tiering_assets.look.brakes import holds

    _choose(ledger, topic, namespace, everything)
    who = {"reason": reason, "author": author_or_user(author)}
    with session.stack() as stack:
        ml_names = [] if topic is None else managed_ledgers(stack, topic)
        scope = None if topic is None else _topic(topic)
        done: dict[str, bool] = {}
        if ledger is not None:
            done[f"ledger {ledger}"] = holds.hold_ledger(stack, ledger, **who)
        if scope is not None:
            done[str(scope)] = holds.hold_topic(stack, scope.name, **who)
        if namespace is not None:
            done[f"namespace {namespace}"] = holds.hold_namespace(stack, namespace, **who)
        if everything:
            done["everything"] = holds.hold_all(stack, **who)
        beyond = {name: holds.what_a_hold_cannot_stop(stack, name) for name in ml_names}
    if session.as_json:
        print_document("hold-set", {"holds": done, "cannot_stop": beyond})
        return
    for what, fresh in done.items():
        print_line(f"{what}: {'held' if fresh else 'was held before; the first reason stays'}")
    for ml_name, lines in beyond.items():
        print_line(f"What a hold of {ml_name} cannot stop:")
        for line in lines:
            print_line(f"  - {line}")


@command(
    app,
    "lift",
    examples=("tierkeeper hold lift --ledger 12345 --reason audit-done",),
)
def lift_hold(
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

    Takes away the hold of exactly this ledger, topic, namespace or everything. What else still holds
    the topic, a wider hold or that of a partition, is printed.
    """
    from tiering_assets.look.brakes import holds, pauses

    _choose(ledger, topic, namespace, everything)
    scope = None if topic is None else _topic(topic)
    key = _key(ledger, scope, namespace)
    with session.stack() as stack:
        holds.lift_hold(stack, key, reason=reason, author=author_or_user(author))
        covered = [] if scope is None else pauses.topics_covered(stack, scope)
        held = holds.still_held(stack, covered)
    if session.as_json:
        print_document("hold-lift", {"holds": [key], "still_held": held})
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
def list_holds(session: Session) -> None:
    """List every hold with its author and reason."""
    from tiering_assets.look.brakes import holds

    with session.stack() as stack:
        found = [_document(one) for one in holds.list_holds(stack)]
    if session.as_json:
        print_document("hold-list", {"holds": found})
        return
    print_table(
        ("SCOPE", "NAME", "AUTHOR", "SINCE", "REASON"),
        [(h["scope"], h["name"], h["author"], h["held_at"], h["reason"]) for h in found],
    )
    print_line(f"{len(found)} holds")


def _choose(ledger: int | None, topic: str | None, namespace: str | None, everything: bool) -> None:
    given = {
        "--ledger": ledger is not None,
        "--topic": topic,
        "--namespace": namespace,
        "--all": everything,
    }
    require_one_choice(**given)
    if namespace is not None and namespace.count("/") != 1:
        raise typer.BadParameter(f"--namespace {namespace}: expected tenant/namespace")


def _topic(topic: str) -> Scope:
    from resources.errors import FormatError
    from tiering_assets.look.brakes.pauses import topic_scope

    try:
        return topic_scope(topic)
    except FormatError as error:
        raise typer.BadParameter(f"--topic: {error}") from None


def _key(ledger: int | None, topic: Scope | None, namespace: str | None) -> str:
    from tiering_assets.look.brakes.holds import hold_key
    from tiering_assets.records import keys

    if ledger is not None:
        return keys.hold(ledger)
    if namespace is not None:
        return keys.namespace_hold(namespace)
    return keys.HOLD_ALL if topic is None else hold_key(topic)


def _document(found: Any) -> dict[str, Any]:
    from tiering_assets.records.models import Hold

    if isinstance(found, str):
        return dict.fromkeys(("author", "held_at", "reason"), "unreadable") | {
            "scope": "?",
            "name": found,
        }
    record = found.record
    scope, name = (
        ("ledger", str(record.ledger_id))
        if isinstance(record, Hold)
        else (record.scope, record.name)
    )
    return {
        "scope": scope,
        "name": name,
        "author": record.author,
        "held_at": record.held_at.isoformat(),
        "reason": record.reason,
    }
