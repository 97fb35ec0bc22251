"""Who did something and why: options of every command whose doing is kept in the records."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the records.")]
Author = Annotated[
    str | None, typer.Option("--author", metavar="NAME", help="Who [default: the user's name].")
]


def author_or_user(author: str | None) -> str:
    """The name that was given, else that of the user who runs the command."""
    return author or getpass.getuser()
