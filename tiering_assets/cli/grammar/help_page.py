"""How `--help` of one command is laid out: what is its own first, what all commands share last."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

COMMON_PANEL = "Common options"
_FIRST = "Options"


class HelpPage(TyperCommand):
    """A command whose help has its options by the panel that each names."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], _FIRST: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                panel = "Arguments"
            elif parameter.name == "help":
                panel = COMMON_PANEL
            else:
                panel = getattr(parameter, "rich_help_panel", None) or _FIRST
            panels.setdefault(panel, []).append(record)
        last = panels.pop(COMMON_PANEL, [])
        for name, records in [*panels.items(), (COMMON_PANEL, last)]:
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
