"""Whether a command may do what it planned: `--plan`, `--execute`, or a yes at a terminal.

Owns: the one grammar of all that publishes, releases, heals, deletes, changes what brokers do, or
takes a brake off. It prints its plan; it acts with --execute or after a yes; without either, and
without a terminal, it ends with 2 before anything is opened. Nothing but `y` or `yes` is a yes, and
with --json nobody is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tiering_assets.cli.grammar.option_group import OptionGroup
from tiering_assets.cli.shared.exit_codes import USAGE
from tiering_assets.cli.shared.output import print_line
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.cli.terminal.screen import somebody_answers
from tiering_assets.resources.plain_text import plain

PANEL = "Consent"
_YES = frozenset({"y", "yes"})


class ConsentMode(StrEnum):
    """What the options ask for. SAFE: the half of the work that neither shows nor deletes."""

    PLAN = "plan"
    ASK = "ask"
    ACT = "act"
    SAFE = "safe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """`approved` names a plan that people have seen; `plan_file` is where to write the new one."""

    wanted: ConsentMode
    plan_file: Path | None = None
    approved: str | None = None

    @property
    def plans_only(self) -> bool:
        return self.wanted is ConsentMode.PLAN

    @property
    def acts(self) -> bool:
        """Whether --execute was given; one who is asked has not said yes yet."""
        return self.wanted is ConsentMode.ACT

    @property
    def nothing_done(self) -> str:
        """The end of a plan's last line where the plan is all that was asked for."""
        return "; nothing was done, --execute does it" if self.plans_only else ""

    def given(self, session: Session, *, show: Callable[[], None], question: str) -> bool:
        """Show the plan, and return whether to carry it out.

        With --json the plan is the document only where nothing else follows. `question` is empty
        where there is nothing to do. Leaves with 2 where the answer is no.
        """
        if self.plans_only or not session.as_json:
            show()
        if self.wanted is not ConsentMode.ASK:
            return self.acts
        if not question:
            return False
        if _ask(question):
            return True
        print_line("nothing was done")
        raise typer.Exit(USAGE)


def decide(
    *,
    execute: bool,
    plan: bool,
    terminal: bool,
    safe_half: bool = False,
    plan_file: Path | None = None,
    approved: str | None = None,
) -> ConsentMode:
    """What the options ask for. A usage error where they contradict each other or say nothing."""
    asked_for = "--plan" if plan else "--plan-file" if plan_file is not None else ""
    if execute and asked_for:
        raise UsageError(f"{asked_for} asks for the plan and --execute acts; take one")
    if plan_file is not None and approved is not None:
        raise UsageError("--approved names a plan that is written; drop --plan-file")
    if asked_for:
        return ConsentMode.PLAN
    if execute:
        return ConsentMode.ACT
    if safe_half:
        return ConsentMode.SAFE
    if terminal:
        return ConsentMode.ASK
    raise UsageError(
        "nothing was done: --plan prints what it would do, --execute does it; it cannot ask "
        "for a yes here"
    )


def _ask(question: str) -> bool:
    sys.stderr.write(f"{plain(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in _YES


def consent_options(
    *,
    does: str,
    safe_half: bool = False,
    plan_help: str = "Print what it would do, and end with 0; nothing is done.",
    plan_file: bool = False,
    approved: str = "",
) -> OptionGroup:
    """The options of one command. `does` is what --execute does, as its help says it.

    `approved` is how the command names a plan, FILE or ID; empty where it takes none.
    """
    options: dict[str, tuple[Any, Any]] = {
        "plan": (
            Annotated[bool, typer.Option("--plan", help=plan_help, rich_help_panel=PANEL)],
            False,
        ),
        "execute": (
            Annotated[bool, typer.Option("--execute", help=does, rich_help_panel=PANEL)],
            False,
        ),
    }
    if plan_file:
        options["plan_file"] = (
            Annotated[
                Path | None,
                typer.Option(
                    "--plan-file",
                    metavar="FILE",
                    help="As --plan, and write the plan to a new file, for review.",
                    rich_help_panel=PANEL,
                ),
            ],
            None,
        )
    if approved:
        options["approved"] = (
            Annotated[
                str | None,
                typer.Option(
                    "--approved",
                    metavar=approved,
                    help="Take exactly this plan, which people have seen.",
                    rich_help_panel=PANEL,
                ),
            ],
            None,
        )

    def make(session: Session, **values: Any) -> Consent:
        wanted = decide(
            terminal=not session.as_json and somebody_answers(), safe_half=safe_half, **values
        )
        return Consent(
            wanted=wanted, plan_file=values.get("plan_file"), approved=values.get("approved")
        )

    return OptionGroup(options, make)
