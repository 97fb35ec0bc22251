"""How a command is declared: its name, its examples, and the options that all commands share.

Owns: every command takes --config, --set, --json, -v and --log-format, before or after its name,
and shows examples in its --help. A command function gets the Session as its first argument.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tiering_assets.cli.grammar.help_page import COMMON_PANEL, HelpPage
from tiering_assets.cli.grammar.option_group import group_of
from tiering_assets.cli.shared.session import LogFormat, Session, parse_flags


def _shared(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=COMMON_PANEL, **more)


_COMMON: dict[str, Any] = {
    "common_config": Annotated[
        Path | None,
        _shared(
            "--config",
            metavar="FILE",
            help="Settings file [default: tierkeeper.toml if it exists].",
        ),
    ],
    "common_set": Annotated[
        list[str] | None,
        _shared(
            "--set", metavar="SECTION.FIELD=VALUE", help="One setting; beats environment and file."
        ),
    ],
    "common_json": Annotated[bool, _shared("--json", help="One JSON document on standard output.")],
    "common_verbose": Annotated[
        int,
        _shared("-v", "--verbose", count=True, help="A line for each effect; -vv for all logs."),
    ],
    "common_log_format": Annotated[
        LogFormat | None, _shared("--log-format", help="Form of logs and progress.")
    ],
}
_DEFAULTS: dict[str, Any] = {"common_json": False, "common_verbose": 0}
Declare = Callable[[Callable[..., None]], Callable[..., None]]


ALWAYS = ""  # reads only, whatever its options


def command(
    app: typer.Typer, name: str, *, examples: tuple[str, ...], reads_only: str | None = None
) -> Declare:
    """Declare a command of `app`. `examples` are whole command lines.

    `reads_only` says when it changes nothing in any system and has no broker load a topic: ALWAYS,
    or words such as "without --execute"; None where it is made to change something.
    """

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
        run = with_common_options(function)
        if reads_only is not None:
            when = f" {reads_only}" if reads_only else ""
            run.__doc__ = (
                f"{inspect.getdoc(function)}\n\nReads only{when}: it changes nothing in any system, and "
                f"loads no topic."
            )
            run.reads_only = reads_only  # type: ignore[attr-defined]
        app.command(name, epilog=epilog, cls=HelpPage)(run)
        return function

    return declare


def with_common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a function that takes a Session the shared options and a typer.Context instead."""
    signature = inspect.signature(function, eval_str=True)
    _session, *own = signature.parameters.values()
    groups = {one.name: group for one in own if (group := group_of(one)) is not None}

    @functools.wraps(function)
    def run(ctx: typer.Context, **values: Any) -> None:
        session: Session = ctx.find_root().ensure_object(Session)
        session.command = f"tierkeeper {ctx.command_path.partition(' ')[2]}"
        _apply(session, {name: values.pop(name) for name in _COMMON})
        made = {name: group.value(session, values) for name, group in groups.items()}
        function(session, **values, **made)

    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    shared = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_DEFAULTS.get(name),
            annotation=annotation,
        )
        for name, annotation in _COMMON.items()
    ]
    asked = [
        parameter
        for one in own
        for parameter in (groups[one.name].parameters() if one.name in groups else [one])
    ]
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in asked]
    parameters = [context, *own, *shared]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    del run.__wrapped__
    return run


def _apply(session: Session, values: dict[str, Any]) -> None:
    session.config = values["common_config"] or session.config
    session.flags |= parse_flags(values["common_set"] or [])
    session.as_json = values["common_json"] or session.as_json
    session.verbosity = max(values["common_verbose"], session.verbosity)
    session.log_format = values["common_log_format"] or session.log_format
    session.start_logging()
