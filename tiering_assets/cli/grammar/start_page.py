"""What a bare `tierkeeper` prints, and in which order `--help` lists the nouns: by what one wants.

Owns: every noun stands in one section. The page fits a screen of 24 lines and 80 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from typer.core import TyperGroup

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Tier": ("ledger", "topic", "stream", "policy"),
    "Prove": ("audit", "object", "scrub", "catalogue", "lineage", "schema"),
    "Brake": ("hold", "tiering"),
    "Pace": ("auto", "budget"),
    "Clean up": ("orphan", "expired-copy", "gone-record"),
    "Operate": ("doctor", "metrics", "broker", "dagster", "config", "key", "completion"),
    "Try": ("demo", "stack"),
}


class StartGroup(TyperGroup):
    """The command itself, whose help lists the nouns in their sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(map(len, self.commands))
        limit = formatter.width - 6 - widest
        for section, nouns in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl(
                    [(noun, self.commands[noun].get_short_help_str(limit)) for noun in nouns]
                )


def start_page(root: Any) -> list[str]:
    """The nouns with their verbs, and where to go on."""
    return [
        "tierkeeper: tier sealed Pulsar ledgers, and prove every byte.",
        *_nouns(root),
        "`tierkeeper doctor` first; `tierkeeper NOUN VERB --help` has examples.",
    ]


def _nouns(root: Any) -> Iterator[str]:
    """Those that have one verb or none share the first line of their section, as do two that have a
    section to themselves.
    """
    for section, nouns in SECTIONS.items():
        verbs = {noun: [*getattr(root.commands[noun], "commands", ())] for noun in nouns}
        two = len(nouns) == 2
        short = [" ".join((noun, *said)) for noun, said in verbs.items() if two or len(said) < 2]
        lines = [", ".join(short)] if short else []
        width = max(map(len, nouns))
        lines += [
            f"{noun:<{width}}  {' '.join(said)}"
            for noun, said in verbs.items()
            if not two and len(said) > 1
        ]
        for place, line in enumerate(lines):
            yield f"{'' if place else section:<9} {line}".rstrip()
