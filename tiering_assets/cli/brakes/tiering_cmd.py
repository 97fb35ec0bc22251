"""`tierkeeper tiering pause|resume|list`: no new copies for a topic, a namespace or everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.brakes.brake_list import print_brakes
from tiering_assets.cli.brakes.brake_scope import chosen_scope
from tiering_assets.cli.shared.authorship import Author, Reason, author_or_user
from tiering_assets.cli.shared.command import ALWAYS, command
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.selection import Namespace, Topic
from tiering_assets.cli.shared.session import Session

if TYPE_CHECKING:
    from tiering_assets.look.brakes.scopes import Scope

app = typer.Typer(
    name="tiering",
    help="Pause tiering and go on: no new copies; what is tiered stays readable.",
    no_args_is_help=True,
)

All = Annotated[bool, typer.Option("--all", help="Everything.")]


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
    topic: Topic = None,
    namespace: Namespace = None,
    everything: All = False,
    disable: Annotated[
        bool, typer.Option("--disable", help="Disabled for good, rather than paused for now.")
    ] = False,
    author: Author = None,
) -> None:
    """Make no new copies and publish none: of a topic, of a namespace, or of everything.

    Runs that have begun obey it at their next ledger and before they publish. What is published
    stays readable, is scrubbed and healed, and is released when it is due: `hold set` stops that.
    A partitioned topic is paused with all its partitions, those that it will have, too.
    """
    from tiering_assets.ground.own_policy import TieringMode
    from tiering_assets.look.brakes.pauses import pause
    from tiering_assets.look.brakes.scopes import require_topics, topics_covered

    mode = TieringMode.DISABLED if disable else TieringMode.PAUSED
    scope = _scope(topic, namespace, everything)
    with session.stack() as stack:
        require_topics(stack, [scope])
        fresh = pause(stack, scope, mode, reason=reason, author=author_or_user(author))
        covered = topics_covered(stack, scope)
    if session.as_json:
        said = {"scope": scope.kind, "name": scope.name, "mode": mode.value, "changed": fresh}
        print_document("tiering-pause", {**said, "topics": len(covered)})
        return
    print_line(f"{scope}: {mode.value}" + ("" if fresh else " before; the first reason stays"))
    print_line(f"covers {len(covered)} topics or partitions today")


@command(
    app,
    "resume",
    examples=("tierkeeper tiering resume --topic public/default/orders --reason migrated",),
)
def resume_tiering(
    session: Session,
    *,
    reason: Reason,
    topic: Topic = None,
    namespace: Namespace = None,
    everything: All = False,
    author: Author = None,
) -> None:
    """Take a pause away. Who did so, and why, stays in the records.

    Takes away the pause of exactly this topic, namespace or everything, paused or disabled. What
    else keeps a topic switched off, a wider pause or tiering.toml, is printed.
    """
    from tiering_assets.look.brakes.pauses import resume, still_off

    scope = _scope(topic, namespace, everything)
    with session.stack() as stack:
        lifted = resume(stack, scope, reason=reason, author=author_or_user(author))
        off = still_off(stack, scope)
    if session.as_json:
        said = {"scope": scope.kind, "name": scope.name, "changed": lifted}
        print_document("tiering-resume", {**said, "still_off": off})
        return
    print_line(f"{scope}: {'resumed' if lifted else 'there was no such pause'}")
    for name, why in off.items():
        print_line(f"{name} stays {why}")


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


def _scope(topic: str | None, namespace: str | None, everything: bool) -> Scope:
    from tiering_assets.look.brakes.scopes import namespace_scope, topic_scope
    from tiering_assets.resources.errors import FormatError

    try:
        return chosen_scope(
            topic, namespace, everything, of_topic=topic_scope, of_namespace=namespace_scope
        )
    except FormatError as error:
        raise typer.BadParameter(str(error)) from None
