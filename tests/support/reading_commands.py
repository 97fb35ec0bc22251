"""Which commands the command line itself calls reading, and how the tour calls each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import typer

from tiering_assets.cli import main as cli

Words = tuple[str, ...]
# {topic} has a sealed {ledger}, a {published} one with the object {key} in {bucket}, and a released
# one.
TOUR: Mapping[Words, tuple[str, ...]] = {
    ("audit", "verify"): ("--all", "{published} --deep"),
    ("auto", "status"): ("",),
    ("broker", "list"): ("",),
    ("budget", "show"): ("",),
    ("catalogue", "sql"): ('select*from"blocks"',),
    ("catalogue", "status"): ("",),
    ("completion",): ("bash",),
    ("config", "check"): ("",),
    ("config", "show"): ("",),
    ("dagster", "prune"): ("--older-than 1d --plan",),
    ("dagster", "rebuild"): ("--plan",),
    ("doctor",): ("",),
    ("expired-copy", "list"): ("",),
    ("gone-record", "list"): ("",),
    ("hold", "list"): ("",),
    ("ledger", "give-up"): ("{published} --reason tour --plan",),
    ("ledger", "list"): ("", "--topic {topic}"),
    ("ledger", "offload"): ("{ledger} --plan", "--topic {topic} --plan"),
    ("ledger", "plan"): ("{ledger}",),
    ("ledger", "show"): ("{ledger}", "{published}"),
    ("ledger", "why"): ("{ledger}", "{published}"),
    ("lineage", "coverage"): ("--all", "{topic}"),
    ("lineage", "message"): ("{published}:0 --show --prove",),
    ("lineage", "object"): ("{key} --offset 0",),
    ("lineage", "topic"): ("{topic} --at 2026-11-25",),
    ("metrics", "print"): ("",),
    ("object", "scan"): ("{bucket} --shallow",),
    ("object", "show"): ("{key}",),
    ("orphan", "list"): ("",),
    ("orphan", "sweep"): ("--plan",),
    ("policy", "check"): ("",),
    ("policy", "show"): ("{topic}",),
    ("schema", "list"): ("{topic}",),
    ("schema", "show"): ("{topic}",),
    ("scrub", "run"): ("--plan", "--plan --topic {topic}"),
    ("scrub", "status"): ("",),
    ("stack", "status"): ("--dir {stack}",),
    ("stream", "give-up"): ("{streamed} --reason tour --plan",),
    ("stream", "status"): ("{topic}", "{streamed}"),
    ("tiering", "list"): ("",),
    ("tiering", "resume"): ("--topic {topic} --reason tour --plan",),
    ("topic", "backlog"): ("", "{topic}"),
    ("topic", "expiry"): ("", "{topic}"),
    ("topic", "list"): ("",),
    ("topic", "offload"): ("{topic} --plan", "--all --plan"),
    ("topic", "offload-status"): ("{topic}",),
    ("topic", "read"): ("{topic} --from 2026-11-25",),
}


@cache
def reading_commands() -> dict[Words, str]:
    """When each command reads only, in its own words; "" is always."""
    return {
        words: found.callback.reads_only
        for words, found in all_commands().items()
        if hasattr(found.callback, "reads_only")
    }


@cache
def all_commands() -> dict[Words, Any]:
    """Every command of the command line by its words, as typer built it."""
    return dict(_commands(typer.main.get_command(cli.app), ()))


def _commands(group: Any, words: Words) -> Iterator[tuple[Words, Any]]:
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from _commands(found, (*words, name))
        else:
            yield (*words, name), found


def tour_of(names: Mapping[str, str]) -> list[Words]:
    """Whole command lines, `names` put in."""
    return [
        (*command, *line.format(**names).split())
        for command, lines in TOUR.items()
        for line in lines
    ]
