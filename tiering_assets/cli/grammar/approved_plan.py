"""Plans that a person approves in between: listed, recorded by `--plan`, carried out by id.

Owns: what such a plan takes is gone for good, so its age is never replaced by a yes at a terminal;
a yes covers exactly what was shown before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer

from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import print_line
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack

CONSENT = consent_options(
    does="Delete what the approved plan lists.",
    plan_help="Record what may go as a plan, print its id, and end with 0; with --approved, print "
    "what that plan would take now.",
    approved="ID",
)


class _Recorded(Protocol):
    @property
    def digest(self) -> str: ...


class _Judged(Protocol):
    @property
    def why_kept(self) -> str: ...

    @property
    def error(self) -> str: ...


F = TypeVar("F", bound=_Judged)
K = TypeVar("K")


def delete_by_plan(
    session: Session,
    consent: Consent,
    *,
    command: str,
    record: Callable[[Stack], tuple[_Recorded | None, Sequence[F]]],
    preview: Callable[[Stack, str], Sequence[F]],
    carry_out: Callable[[Stack, str, Collection[K] | None], Sequence[F]],
    name_of: Callable[[F], K],
    show: Callable[[str | None, Sequence[F], bool], None],
) -> None:
    """Do what the options say. Ends with 1 where something could not be deleted.

    `show` gets the plan's id, what was found, and whether it was carried out.
    """
    if consent.approved is None and not consent.plans_only:
        raise UsageError(
            f"nothing was done: `tierkeeper {command} --plan` records a plan, and an hour later "
            f"`--approved ID --execute` carries it out"
        )
    with session.stack() as stack:
        if consent.approved is None:
            recorded, found = record(stack)
            digest = None if recorded is None else recorded.digest
            show(digest, found, False)
            if digest is not None and not session.as_json:
                print_line(f"plan {digest}")
                print_line(f"in an hour: tierkeeper {command} --approved {digest} --execute")
            return
        digest, only = consent.approved, None
        if not consent.acts:
            planned = preview(stack, digest)
            going = [one for one in planned if not one.why_kept]
            may_act = consent.given(
                session,
                show=lambda: show(digest, planned, False),
                question=f"Delete {len(going)} of them?" if going else "",
            )
            if not may_act:
                return
            only = [name_of(one) for one in going]
        found = carry_out(stack, digest, only)
    show(digest, found, True)
    if any(one.error for one in found):
        raise typer.Exit(FINDINGS)


def decision_and_reason(one: _Judged, *, done: bool, gone: str = "") -> tuple[str, str]:
    """What is said of one thing; `gone` is why it may go, or went."""
    if one.why_kept:
        return "keep", one.why_kept
    if one.error:
        return "failed", one.error
    return ("deleted" if done else "may go"), gone
