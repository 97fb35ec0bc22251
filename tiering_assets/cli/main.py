"""The `tierkeeper` command: mounts the sub-commands and is the edge where errors become exit codes.

Owns: an expected error is one line on standard error (with --json one JSON object) and its class's
exit code; an unexpected one keeps its traceback. The sub-commands import what they need when they
run, because `tierkeeper --help` must not wait for Spark, Dagster or boto3.
"""

from __future__ import annotations

import json
import os
import select
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tiering_assets.cli.grammar.command import with_common_options
from tiering_assets.cli.grammar.completion import answer_shell
from tiering_assets.cli.grammar.start_page import StartGroup, start_page
from tiering_assets.cli.shared.exit_codes import DONE, UNEXPECTED, USAGE, exit_codes
from tiering_assets.cli.shared.output import error_document, print_error, print_line
from tiering_assets.cli.shared.session import Session
from tiering_assets.resources import ending
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.garbage import collect_seldom

# In the order in which help lists them; those that are not used join a group.
# isort: off
from tiering_assets.cli.audit import audit_cmd
from tiering_assets.cli.automation import auto_cmd
from tiering_assets.cli import broker_cmd
from tiering_assets.cli.catalogue import catalogue_cmd
from tiering_assets.cli.catalogue import upkeep_cmd  # noqa: F401
from tiering_assets.cli import completion_cmd
from tiering_assets.cli.brakes import budget_cmd
from tiering_assets.cli.policy import config_cmd
from tiering_assets.cli.automation import dagster_cmd
from tiering_assets.cli import demo_cmd
from tiering_assets.cli import doctor_cmd
from tiering_assets.cli.brakes import hold_cmd
from tiering_assets.cli.explain import ledger_cmd
from tiering_assets.cli.batch import ledger_copy_cmd  # noqa: F401
from tiering_assets.cli.scrub import ledger_give_up_cmd  # noqa: F401
from tiering_assets.cli.batch import ledger_release_cmd  # noqa: F401
from tiering_assets.cli.lineage import lineage_cmd
from tiering_assets.cli.lineage import lineage_coverage_cmd  # noqa: F401
from tiering_assets.cli.explain import metrics_cmd
from tiering_assets.cli.audit import object_cmd
from tiering_assets.cli.audit import object_scan_cmd  # noqa: F401
from tiering_assets.cli.clean import orphan_cmd
from tiering_assets.cli.clean import expired_copy_cmd
from tiering_assets.cli.clean import gone_record_cmd
from tiering_assets.cli.policy import policy_cmd
from tiering_assets.cli import schema_cmd
from tiering_assets.cli.scrub import scrub_cmd
from tiering_assets.cli import key_cmd
from tiering_assets.cli import stack_cmd
from tiering_assets.cli import stream_cmd
from tiering_assets.cli.brakes import tiering_cmd
from tiering_assets.cli.explain import topic_cmd
from tiering_assets.cli.retention import topic_expiry_cmd  # noqa: F401
from tiering_assets.cli.explain import topic_list_cmd  # noqa: F401
from tiering_assets.cli.retention import topic_load_cmd  # noqa: F401
from tiering_assets.cli.lineage import topic_read_cmd  # noqa: F401
from tiering_assets.cli.batch import topic_offload_cmd  # noqa: F401
from tiering_assets.cli.batch import topic_status_cmd  # noqa: F401
# isort: on

_CODES = "\n".join(
    f"  {row.code:>3}  {row.name + ': ' if row.name else ''}{row.meaning}" for row in exit_codes()
)
_EPILOG = f"""\b
Examples:
  tierkeeper doctor
  tierkeeper ledger list --topic public/default/orders
  tierkeeper ledger offload --topic public/default/orders
  tierkeeper ledger release --due --execute

\b
Settings come from flags, TIERKEEPER_SECTION_FIELD variables, a TOML file and defaults,
in this order: `tierkeeper config show` prints them with their origins.

\b
Exit codes:
{_CODES}
"""
ERROR_SCHEMA = "tierkeeper/error/1"
_ClickError = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain text: examples are to be copied, and pipes are not 80 wide
    pretty_exceptions_enable=False,  # it prints local variables, and those hold secrets
    add_completion=False,  # it installs itself into a person's start-up files; see completion_cmd
    cls=StartGroup,
    epilog=_EPILOG,
)
for group in (
    ledger_cmd,
    object_cmd,
    audit_cmd,
    catalogue_cmd,
    lineage_cmd,
    hold_cmd,
    broker_cmd,
    orphan_cmd,
    expired_copy_cmd,
    gone_record_cmd,
    policy_cmd,
    tiering_cmd,
    auto_cmd,
    budget_cmd,
    topic_cmd,
    schema_cmd,
    scrub_cmd,
    metrics_cmd,
    dagster_cmd,
    config_cmd,
    key_cmd,
    stack_cmd,
    stream_cmd,
):
    app.add_typer(group.app)
for single in (doctor_cmd, demo_cmd, completion_cmd):
    single.declare(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # a sixth of what `--help` would import

        print_line(f"tierkeeper {version('tierkeeper')}")
        raise typer.Exit


@app.callback()
@with_common_options
def tierkeeper(
    _session: Session,
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Print it and end."),
    ] = False,
) -> None:
    """Tier sealed Pulsar ledgers from BookKeeper to an object store, and prove every byte."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; nothing of ours escapes."""
    session = Session()
    args = list(sys.argv[1:] if arguments is None else arguments)
    root = typer.main.get_command(app)
    try:
        if not args:
            return _print_start_page(root)
        with root.make_context("tierkeeper", args, obj=session) as context:
            root.invoke(context)
    except TierkeeperError as error:
        code = _print_error(session, error)
        return ending.INTERRUPTED if ending.asked() else code  # what Ctrl-C broke, fails
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted; the same command goes on where this one stopped\n")
        return ending.INTERRUPTED
    except (
        SystemExit
    ):  # nothing of ours asks for it; a library that does must not look like success
        traceback.print_exc()
        return UNEXPECTED
    except Exception as error:  # noqa: BLE001  the process edge
        if isinstance(error, _ClickError):
            return _print_usage_error(error, as_json=session.as_json or "--json" in args)
        if isinstance(error, BrokenPipeError) and _reader_gone():
            return DONE  # whoever read our output has seen enough
        traceback.print_exc()
        return UNEXPECTED
    return DONE


def _print_start_page(root: Any) -> int:
    for line in start_page(root):
        print_line(line)
    sys.stdout.flush()  # where nobody reads, it fails here and not when the process leaves
    return DONE


def _print_error(session: Session, error: TierkeeperError) -> int:
    if session.as_json:
        sys.stderr.write(_one_line({"schema": ERROR_SCHEMA, **error_document(error)}))
    else:
        print_error(error)
    return error.exit_code


def _print_usage_error(error: Any, *, as_json: bool) -> int:
    if as_json:
        said = {"error": "UsageError", "message": error.format_message(), "exit_code": USAGE}
        sys.stderr.write(_one_line({"schema": ERROR_SCHEMA, **said, "retryable": False}))
    else:
        error.show(file=sys.stderr)
    return USAGE


def _one_line(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False) + "\n"


def main() -> None:
    """Entry point of the `tierkeeper` script."""
    collect_seldom()
    ending.obey_ctrl_c()
    if answer_shell(lambda: typer.main.get_command(app)):
        return
    code = run()
    if _reader_gone():  # or the interpreter would complain about what it cannot flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _reader_gone() -> bool:
    """Whether standard output is a pipe that nobody reads any more, as after `| head`."""
    try:
        waiting = select.poll()
        waiting.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):  # no file behind it, as in tests
        return False
    return any(event & select.POLLERR for _fd, event in waiting.poll(0))
