"""The sentences of every `--help`: of commands, groups, arguments and options; and what each exit
code means, which stands beside them in docs/cli.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer

from tests.support.sentences.text import Sentence, sentences_of
from tiering_assets.cli import main as cli
from tiering_assets.cli.shared.exit_codes import exit_codes

PART = "help"


def of_commands() -> Iterator[Sentence]:
    yield from dict.fromkeys(_of(typer.main.get_command(cli.app), "tierkeeper"))
    for row in exit_codes():
        yield from sentences_of(PART, f"exit code {row.code}", row.meaning)


def _of(found: Any, place: str) -> Iterator[Sentence]:
    for paragraph in inspect.cleandoc(found.help or "").replace("\b", "").split("\n\n"):
        yield from sentences_of(PART, place, paragraph)
    for parameter in found.params:
        name = parameter.opts[0]
        common = parameter.name.startswith("common_")
        where = "tierkeeper" if common else place
        yield from sentences_of(PART, f"{where}:{name}", getattr(parameter, "help", "") or "")
    for name, child in getattr(found, "commands", {}).items():
        yield from _of(child, f"{place} {name}")
