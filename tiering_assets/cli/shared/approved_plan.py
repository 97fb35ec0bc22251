"""`--plan` and `--execute PLAN`, the same for every command that deletes by an approved plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from tiering_assets.cli.shared.output import print_line
from tiering_assets.cli.shared.session import Session

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack

Plan = Annotated[
    bool,
    typer.Option("--plan", help="Record what may go as a plan, to be approved; delete nothing."),
]
Execute = Annotated[
    str | None,
    typer.Option("--execute", metavar="PLAN", help="Delete what a recorded plan lists, by its id."),
]


class _Recorded(Protocol):
    @property
    def digest(self) -> str: ...


F = TypeVar("F")


def find_plan_or_execute(
    session: Session,
    *,
    plan: bool,
    execute: str | None,
    find: Callable[[Stack], Sequence[F]],
    record: Callable[[Stack], tuple[_Recorded | None, Sequence[F]]],
    carry_out: Callable[[Stack, str], Sequence[F]],
) -> tuple[str | None, Sequence[F]]:
    """Do what the options say; return the plan's id, None where there is none, and what was
    found.
    """
    if plan and execute is not None:
        raise typer.BadParameter("--plan records a plan and --execute carries one out; take one")
    with session.stack() as stack:
        if execute is not None:
            return execute, carry_out(stack, execute)
        if not plan:
            return None, find(stack)
        recorded, found = record(stack)
        return (None if recorded is None else recorded.digest), found


class _Judged(Protocol):
    @property
    def why_kept(self) -> str: ...

    @property
    def error(self) -> str: ...


def decision_and_reason(one: _Judged, *, done: bool, gone: str = "") -> tuple[str, str]:
    """What is said of one thing; `gone` is why it may go, or went."""
    if one.why_kept:
        return "keep", one.why_kept
    if one.error:
        return "failed", one.error
    return ("deleted" if done else "may go"), gone


def print_next_step(command: str, digest: str) -> None:
    """The line for the one who looked at the plan."""
    print_line(f"plan {digest}")
    print_line(f"in an hour: tierkeeper {command} --execute {digest}")
