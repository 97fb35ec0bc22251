"""`tierkeeper stack up|down|status`: the local servers for the demo, notebooks and trying things.

Owns: what is printed on standard output never holds a credential; those are in the stack's
environment.sh, mode 0600.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import human_bytes, print_document, print_line
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError

if TYPE_CHECKING:
    from tiering_assets.resources.devstack.stack import DevStack

app = typer.Typer(
    name="stack",
    help="Real servers on this machine, Pulsar among them.",
    no_args_is_help=True,
)

CLUSTER = "stack"
DAGSTER_HOME = "dagster_home"
Directory = Annotated[Path, typer.Option("--dir", help="Where the stack's files lie.")]


@command(
    app,
    "up",
    examples=(
        "tierkeeper stack up",
        "tierkeeper stack up --bookies 1 --port broker.web=8080",
        ". build/stack/environment.sh && tierkeeper doctor",
        ". build/stack/environment.sh && make ui",
    ),
)
def up(
    session: Session,
    *,
    directory: Directory = Path("build/stack"),
    bookies: Annotated[int, typer.Option(min=0, help="How many bookies.")] = 3,
    broker: Annotated[bool, typer.Option(help="Start a broker, too.")] = True,
    port: Annotated[
        list[str] | None, typer.Option(help="Fix a port: NAME=NUMBER, e.g. broker.web=8080.")
    ] = None,
) -> None:
    """Start the servers and leave them running.

    Does nothing if all of them run. Their environment.sh names a DAGSTER_HOME and a cluster of
    their own, which go with them.
    """
    from tiering_assets.resources.devstack.options import StackOptions
    from tiering_assets.resources.devstack.stack import DevStack
    from tiering_assets.resources.devstack.state import STATE_FILE

    if (directory / STATE_FILE).exists():
        running = DevStack.open(directory)
        if all(server.alive for server in running.status()):
            _show(session, running)
            return
        running.stop()  # part of a stack is no stack
    options = StackOptions(bookies=bookies, with_broker=broker, ports=_ports(port or []))
    started = DevStack.start(directory, options, attached=False, report=session.progress)
    _give_dagster_home(started)
    _show(session, started)


@command(app, "down", examples=("tierkeeper stack down", "tierkeeper stack down --dir /srv/stack"))
def down(session: Session, *, directory: Directory = Path("build/stack")) -> None:
    """Stop the servers of this directory and no others. Their logs stay."""
    from tiering_assets.resources.devstack.stack import DevStack
    from tiering_assets.resources.devstack.state import STATE_FILE

    stopped: list[str] = []
    if (directory / STATE_FILE).exists():
        stack = DevStack.open(directory)
        stopped = [server.name for server in stack.status() if server.alive]
        stack.stop()
        shutil.rmtree(directory / DAGSTER_HOME, ignore_errors=True)
    if session.as_json:
        print_document("stack-down", {"directory": directory, "stopped": stopped})
    else:
        print_line(f"stopped {', '.join(stopped)}" if stopped else f"nothing runs in {directory}")


@command(
    app,
    "status",
    examples=("tierkeeper stack status", "tierkeeper stack status --json"),
    reads_only=ALWAYS,
)
def status(session: Session, *, directory: Directory = Path("build/stack")) -> None:
    """Show which servers run, and where. Ends with 1 if one of them is gone."""
    from tiering_assets.resources.devstack.stack import DevStack

    stack = DevStack.open(directory)
    _show(session, stack)
    if not all(server.alive for server in stack.status()):
        raise typer.Exit(FINDINGS)


def _give_dagster_home(stack: DevStack) -> None:
    """A Dagster instance and a cluster name of its own: ledger ids are those of the demo's, too.

    It goes with the stack's data: the next stack of this directory is another cluster.
    """
    from tiering_assets.resources.devstack.endpoints import environment_script
    from tiering_assets.resources.devstack.stack import ENVIRONMENT_FILE
    from tiering_assets.resources.devstack.state import write_private

    home, settings = stack.directory / DAGSTER_HOME, Path(DAGSTER_HOME) / "dagster.yaml"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    if settings.exists():  # in a checkout: limits of runs, and no telemetry
        shutil.copy(settings, home)
    own = {"DAGSTER_HOME": str(home.resolve()), "TIERKEEPER_DAGSTER_CLUSTER": CLUSTER}
    script = environment_script(stack.environment() | own)
    write_private(stack.directory / ENVIRONMENT_FILE, script)


def _ports(pairs: list[str]) -> dict[str, int]:
    ports = {}
    for pair in pairs:
        name, _, number = pair.partition("=")
        if not number.isdecimal() or not 0 < int(number) < 65536 - 10_000:
            raise UsageError(f"{pair!r} is not NAME=NUMBER with a number below 55536")
        ports[name] = int(number)
    return ports


def _show(session: Session, stack: DevStack) -> None:
    from tiering_assets.resources.devstack.stack import ENVIRONMENT_FILE

    ends, servers = stack.endpoints, stack.status()
    where = {
        "zookeeper": ends.zookeeper,
        "admin_url": ends.admin_url if stack.options.with_broker else None,
        "service_url": ends.service_url if stack.options.with_broker else None,
        "bookies": list(ends.bookies),
        "s3_endpoint": ends.s3_endpoint,
        "s3_bucket": ends.s3_bucket,
    }
    if session.as_json:
        print_document(
            "stack-status",
            {
                "directory": stack.directory,
                "servers": [asdict(server) for server in servers],
                "endpoints": where,
            },
        )
        return
    for server in servers:
        state = (
            f"pid {server.pid}, {human_bytes(server.rss_bytes)}" if server.alive else "not running"
        )
        print_line(f"{server.name:<10} {state}")
    for name, value in where.items():
        if value:
            print_line(f"{name:<12} {', '.join(value) if isinstance(value, list) else value}")
    print_line(f"settings     . {stack.directory / ENVIRONMENT_FILE}")
