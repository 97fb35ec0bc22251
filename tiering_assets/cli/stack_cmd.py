"""`tierkeeper stack up|down|status`: the local servers for the demo, notebooks and trying things.

Owns: what is printed on standard output never holds a credential; those are in the stack's
environment.sh, mode 0600.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from resources.devstack.options import StackOptions
from resources.devstack.stack import ENVIRONMENT_FILE, DevStack
from resources.devstack.state import STATE_FILE

app = typer.Typer(help="Real servers on this machine: S3, ZooKeeper, bookies, a Pulsar broker.")

_SCHEMA = "tierkeeper.stack-status/1"
_MIB = 1024 * 1024

Directory = Annotated[Path, typer.Option("--dir", help="Where the stack's files lie.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command("up")
def up(
    *,
    directory: Directory = Path("build/stack"),
    bookies: Annotated[int, typer.Option(min=0, help="How many bookies.")] = 3,
    broker: Annotated[bool, typer.Option(help="Start a broker, too.")] = True,
    port: Annotated[
        list[str] | None, typer.Option(help="Fix a port: NAME=NUMBER, e.g. broker.web=8080.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start the servers and leave them running; does nothing if all of them run."""
    if (directory / STATE_FILE).exists():
        running = DevStack.open(directory)
        if all(server.alive for server in running.status()):
            _show(running, as_json=as_json)
            return
        running.stop()  # part of a stack is no stack
    options = StackOptions(bookies=bookies, with_broker=broker, ports=_ports(port or []))
    _show(DevStack.start(directory, options, attached=False), as_json=as_json)


@app.command("down")
def down(*, directory: Directory = Path("build/stack"), as_json: AsJson = False) -> None:
    """Stop the servers of this directory and no others. Their logs stay."""
    stopped: list[str] = []
    if (directory / STATE_FILE).exists():
        stack = DevStack.open(directory)
        stopped = [server.name for server in stack.status() if server.alive]
        stack.stop()
    if as_json:
        _print_json({"schema": _SCHEMA, "directory": str(directory), "stopped": stopped})
    else:
        typer.echo(f"stopped {', '.join(stopped)}" if stopped else f"nothing runs in {directory}")


@app.command("status")
def status(*, directory: Directory = Path("build/stack"), as_json: AsJson = False) -> None:
    """Show which servers run, and where. Ends with 1 if one of them is gone."""
    stack = DevStack.open(directory)
    _show(stack, as_json=as_json)
    if not all(server.alive for server in stack.status()):
        raise typer.Exit(1)


def _ports(pairs: list[str]) -> dict[str, int]:
    ports = {}
    for pair in pairs:
        name, _, number = pair.partition("=")
        if not number.isdecimal() or not 0 < int(number) < 65536 - 10_000:
            raise typer.BadParameter(f"{pair!r} is not NAME=NUMBER with a number below 55536")
        ports[name] = int(number)
    return ports


def _show(stack: DevStack, *, as_json: bool) -> None:
    ends, servers = stack.endpoints, stack.status()
    where = {
        "zookeeper": ends.zookeeper,
        "admin_url": ends.admin_url if stack.options.with_broker else None,
        "service_url": ends.service_url if stack.options.with_broker else None,
        "bookies": list(ends.bookies),
        "s3_endpoint": ends.s3_endpoint,
        "s3_bucket": ends.s3_bucket,
    }
    if as_json:
        _print_json(
            {
                "schema": _SCHEMA,
                "directory": str(stack.directory),
                "servers": [asdict(server) for server in servers],
                "endpoints": where,
            }
        )
        return
    for server in servers:
        state = (
            f"pid {server.pid}, {server.rss_bytes // _MIB} MiB" if server.alive else "not running"
        )
        typer.echo(f"{server.name:<10} {state}")
    for name, value in where.items():
        if value:
            typer.echo(f"{name:<12} {', '.join(value) if isinstance(value, list) else value}")
    typer.echo(f"settings     . {stack.directory / ENVIRONMENT_FILE}")


def _print_json(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
