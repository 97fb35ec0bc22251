"""What is wrong with a command line, in a sentence of ours: exit code 2, and nothing was done."""

from __future__ import annotations

import typer


class UsageError(typer.BadParameter):
    """Printed with the command's usage, or as JSON."""

    def format_message(self) -> str:
        return str(self.message)  # the class above puts "Invalid value" before it
