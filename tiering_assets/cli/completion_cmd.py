"""`tierkeeper completion bash|zsh|fish`: what a shell needs to complete command lines."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.completion import PROGRAM, VARIABLE
from tiering_assets.cli.shared.output import print_document
from tiering_assets.cli.shared.session import Session


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def declare(app: typer.Typer) -> None:
    """Add the command; it has no group."""
    command(
        app,
        "completion",
        examples=(
            "tierkeeper completion bash",
            "tierkeeper completion zsh",
            "tierkeeper completion fish",
        ),
        reads_only=ALWAYS,
    )(completion)


def completion(
    session: Session,
    *,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print what bash, zsh or fish needs for completion.

    Topics and ids are those that `ledger list` and `topic list` showed on this machine: a Tab asks
    no server. Load it with `source <(tierkeeper completion bash)`.
    """
    import sys

    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value)
    if session.as_json:
        print_document("completion", {"shell": shell.value, "script": script})
    else:
        sys.stdout.write(script + "\n")
