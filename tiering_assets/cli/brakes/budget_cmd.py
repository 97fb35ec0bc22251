"""`tierkeeper budget show|set`: rates of uploads, bookie reads and requests, without a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.shared.authorship import Author, author_or_user
from tiering_assets.cli.shared.output import (
    human_bytes,
    human_time,
    print_document,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.look.brakes.budget import BudgetLine, Wanted

app = typer.Typer(
    name="budget",
    help="Rates that tierkeeper never exceeds in any 10 s.",
    no_args_is_help=True,
)

_SAID = {"none": 0, "settings": None}
_OTHERS = "`none` for no bound, `settings` for what settings say"


def _option(name: str, what: str) -> typer.models.OptionInfo:
    example = "200" if "requests" in name else "50MiB/s"
    info: typer.models.OptionInfo = typer.Option(
        name, metavar="RATE", help=f"{what} per second, such as {example}; {_OTHERS}."
    )
    return info


Upload = Annotated[str | None, _option("--upload", "Bytes sent to the store")]
BookieRead = Annotated[str | None, _option("--bookie-read", "Bytes read from bookies")]
Requests = Annotated[str | None, _option("--requests", "Requests to the store")]
TopicUpload = Annotated[str | None, _option("--topic-upload", "Bytes sent for each topic")]
TopicRead = Annotated[str | None, _option("--topic-bookie-read", "Bytes read for each topic")]
TopicRequests = Annotated[str | None, _option("--topic-requests", "Requests for each topic")]


@command(
    app,
    "show",
    examples=("tierkeeper budget show", "tierkeeper budget show --json"),
    reads_only=ALWAYS,
)
def show_budget(session: Session) -> None:
    """Show every budget, and what one task gets of it."""
    from tiering_assets.look.brakes.budget import read_wanted

    with session.stack() as stack:
        wanted = read_wanted(stack)
    _print(session, "budget-show", wanted)


@command(
    app,
    "set",
    examples=(
        "tierkeeper budget set --upload 100MiB/s --bookie-read 100MiB/s",
        "tierkeeper budget set --requests 200 --topic-upload 20MiB/s",
        "tierkeeper budget set --upload none",
    ),
)
def set_budget(
    session: Session,
    *,
    upload: Upload = None,
    bookie_read: BookieRead = None,
    requests: Requests = None,
    topic_upload: TopicUpload = None,
    topic_bookie_read: TopicRead = None,
    topic_requests: TopicRequests = None,
    author: Author = None,
) -> None:
    """Change budgets of all that runs, within 10 s.

    Needs no restart. Budgets that are not named stay as they are. docs/budgets.md says how they are
    split.
    """
    from tiering_assets.look.brakes import budget

    given = {
        "upload_bytes_per_s": ("--upload", upload, True),
        "bookie_read_bytes_per_s": ("--bookie-read", bookie_read, True),
        "store_requests_per_s": ("--requests", requests, False),
        "topic_upload_bytes_per_s": ("--topic-upload", topic_upload, True),
        "topic_bookie_read_bytes_per_s": ("--topic-bookie-read", topic_bookie_read, True),
        "topic_store_requests_per_s": ("--topic-requests", topic_requests, False),
    }
    changes = {
        name: parse_rate(option, text, in_bytes=in_bytes)
        for name, (option, text, in_bytes) in given.items()
        if text is not None
    }
    if not changes:
        raise UsageError("name at least one budget, such as --upload 100MiB/s")
    with session.stack() as stack:
        wanted = budget.set_budget(stack, changes, author=author_or_user(author))
    _print(session, "budget-set", wanted)


def parse_rate(option: str, text: str, *, in_bytes: bool) -> int | None:
    """Units per second; None for `settings`. UsageError names the option and what it may be."""
    from tiering_assets.resources import quantity

    plain = text.strip()
    if plain in _SAID:
        return _SAID[plain]
    try:
        rate = quantity.parse_rate(plain) if in_bytes else int(plain)
    except ValueError:
        rate = 0
    if rate > 0:
        return rate
    expected = "a rate such as 50MiB/s" if in_bytes else "requests per second such as 200"
    raise UsageError(f"{option} {text}: expected {expected}, none or settings")


def _print(session: Session, name: str, wanted: Wanted) -> None:
    if session.as_json:
        print_document(name, {"budget": wanted})
        return
    print_table(
        (
            Column("BUDGET", ValueKind.ID),
            Column("RATE", ValueKind.NUMBER, 60),
            Column("FROM", ValueKind.TEXT),
            Column("ONE OF THE PARTS", ValueKind.NUMBER),
            Column("SMALLEST", ValueKind.NUMBER),
        ),
        [
            (line.name, _shown(line, line.rate), line.origin, _shown(line, line.part), line.least)
            for line in wanted.lines
        ],
    )
    print_line(f"each is split into {wanted.parts} parts: tasks and driver of budget.runs_max runs")
    if wanted.record is not None:
        print_line(f"set by {wanted.record.author} at {human_time(wanted.record.set_at)}")


def _shown(line: BudgetLine, rate: float) -> str:
    if line.rate == 0:
        return "no bound"
    return f"{human_bytes(int(rate))}/s" if "bytes" in line.name else f"{rate:g}/s"
