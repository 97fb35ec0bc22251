"""`tierkeeper demo`: the whole story on real servers, with a summary at the end."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.screen import screen

SUMMARY = "demo-summary.json"


def declare(app: typer.Typer) -> None:
    """Add the command; it has no group."""
    command(app, "demo", examples=("tierkeeper demo", "tierkeeper demo --keep"))(demo)


def demo(
    _session: Session,
    *,
    directory: Annotated[Path, typer.Option("--dir", help="Where the servers' files lie.")] = Path(
        "build/demo-stack"
    ),
    build: Annotated[
        Path, typer.Option(help="Where logs and demo-summary.json are written.")
    ] = Path("build"),
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the servers running afterwards.")
    ] = False,
) -> None:
    """Tier real topics on local servers, and read all back."""
    from rich.console import Console

    from tiering_assets.demo.run import run_demo
    from tiering_assets.demo.summary import print_summary, write_summary
    from tiering_assets.resources.devstack.options import StackOptions
    from tiering_assets.resources.devstack.stack import DevStack
    from tiering_assets.resources.devstack.state import STATE_FILE

    began = time.monotonic()
    # Wide enough that no cell wraps where the output is not a terminal.
    on = screen()
    console = Console(width=on.width or 140, no_color=not on.colour)

    def report(line: str) -> None:
        sys.stderr.write(f"[{time.monotonic() - began:5.1f} s] {line}\n")
        sys.stderr.flush()

    if (directory / STATE_FILE).exists():
        DevStack.open(directory).stop()  # an earlier demo's; every demo begins with empty servers
    with ExitStack() as exits:
        options = StackOptions(short_lived=True)
        stack = exits.enter_context(DevStack.start(directory, options, report=report))
        summary = run_demo(stack, project=Path.cwd(), build=build.resolve(), report=report)
        if keep:
            stack.detach()
            exits.pop_all()
    write_summary(summary, build / SUMMARY)
    print_summary(summary, console)
    verdict = "every message read back equal" if summary.proven else "NOT PROVEN, see above"
    console.print(
        f"{len(summary.ledgers)} ledgers, "
        f"{sum(ledger.payload_bytes for ledger in summary.ledgers) / 1e6:.0f} MB, "
        f"{summary.seconds:.0f} s, peak memory {summary.peak_rss_bytes / 1e9:.1f} GB: {verdict}"
    )
    console.print(f"Summary: {build / SUMMARY}. Next: `make ui`, then open http://127.0.0.1:3000")
    if not summary.proven:
        raise typer.Exit(1)
