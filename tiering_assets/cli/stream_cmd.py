"""`tierkeeper stream on|off|status|cut|give-up`: segments of ledgers that are still written to."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.batch.offload_output import RunnerOption
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.completion import topics_like
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.grammar.selected import managed_ledgers
from tiering_assets.cli.shared.authorship import Author, Reason, author_or_user
from tiering_assets.cli.shared.exit_codes import worst
from tiering_assets.cli.shared.output import (
    print_document,
    print_error,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.segment_output import print_segments, segment_document
from tiering_assets.cli.shared.session import Runner, Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.stream.status import StreamStatus

app = typer.Typer(
    name="stream",
    help="Segments of ledgers that are still written to.",
    no_args_is_help=True,
)
OneTopic = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC",
        autocompletion=topics_like,
        help="tenant/namespace/topic or persistent://…; one partition by its name.",
    ),
]
CONSENT = consent_options(does="Give the segment up; the next one may be assigned then.")
_COLUMNS = (
    Column("TOPIC", ValueKind.TOPIC),
    Column("STATE", ValueKind.STATE),
    Column("SEGMENTS", ValueKind.NUMBER),
    Column("NEWEST", ValueKind.STATE),
    Column("NEXT ENTRY", ValueKind.ID),
    Column("WAITING", ValueKind.SIZE),
    Column("DETAIL", ValueKind.FINDINGS),
)


@command(
    app,
    "on",
    examples=(
        "tierkeeper stream on public/default/orders",
        "tierkeeper stream on public/default/orders --author ops@example.com --json",
    ),
)
def switch_on(session: Session, *, topic: OneTopic, author: Author = None) -> None:
    """Open a stream for a topic, or for each of its partitions.

    It begins with the ledger that the topic writes to. Sealed ledgers go the usual way. This one
    does, too, once it is sealed: brokers read no segment. May be repeated.
    """
    from tiering_assets.records import keys
    from tiering_assets.records.stored import Stored
    from tiering_assets.stream.switch import open_stream

    rows: list[dict[str, Any]] = []
    with session.stack() as stack:
        for ml_name in managed_ledgers(stack, topic):
            found = open_stream(stack, ml_name, author=author_or_user(author))
            fresh = isinstance(found, Stored)
            stream = found.record.stream if isinstance(found, Stored) else found.stream
            row = {"topic": _name(ml_name), "stream": keys.which_stream(stream), "fresh": fresh}
            rows.append(row)
    if session.as_json:
        print_document("stream-on", {"topics": rows})
        return
    for row in rows:
        said = "is open" if row["fresh"] else "was open before"
        print_line(f"{row['topic']}: stream {row['stream']} {said}")
    print_line(f"`tierkeeper stream cut {topic}` puts what was written into the bucket")


@command(
    app,
    "off",
    examples=("tierkeeper stream off public/default/orders --reason consumers-left",),
)
def switch_off(session: Session, *, topic: OneTopic, reason: Reason, author: Author = None) -> None:
    """End the stream of a topic behind its newest segment.

    Its segments stay. Refused while the newest is neither offloaded nor given up. Switched on
    again, the topic gets another stream.
    """
    from tiering_assets.stream.cut import open_chain
    from tiering_assets.stream.switch import close_stream

    rows: list[dict[str, Any]] = []
    with session.stack() as stack:
        for ml_name in managed_ledgers(stack, topic):
            chain = open_chain(stack, ml_name)
            author_name = author_or_user(author)
            done = close_stream(stack, chain, reason=reason, author=author_name)
            rows.append({"topic": _name(ml_name), "segments": done.record.segments})
    if session.as_json:
        print_document("stream-off", {"topics": rows})
        return
    for row in rows:
        print_line(f"{row['topic']}: the stream ended behind {row['segments']} segments")


@command(
    app,
    "status",
    examples=(
        "tierkeeper stream status public/default/orders",
        "tierkeeper stream status public/default/orders --json",
    ),
    reads_only=ALWAYS,
)
def status(session: Session, *, topic: OneTopic) -> None:
    """Show how far the stream of a topic is.

    And what is proven behind it, one segment's worth at most (WAITING). It loads no topic, and
    fences no ledger.
    """
    from tiering_assets.stream.status import stream_status

    with session.stack() as stack:
        found = [stream_status(stack, name) for name in managed_ledgers(stack, topic)]
    if session.as_json:
        rows = [{"topic": _name(one.ml_name), **asdict(one)} for one in found]
        print_document("stream-status", {"topics": rows})
        return
    print_table(_COLUMNS, [_row(one) for one in found])


@command(
    app,
    "cut",
    examples=(
        "tierkeeper stream cut public/default/orders",
        "tierkeeper stream cut public/default/orders --runner spark",
        "tierkeeper stream cut public/default/orders --json",
    ),
)
def cut(session: Session, *, topic: OneTopic, runner: RunnerOption = Runner.LOCAL) -> None:
    """Put all that a topic has now into segments, and prove them.

    What a segment lacks that an earlier run assigned is done first. Where nothing is new it is done
    at once. It loads no topic, and fences no ledger.
    """
    from tiering_assets.copy.ask_first import require_proven
    from tiering_assets.resources.errors import TierkeeperError
    from tiering_assets.stream.cut import cut_stream

    rows: list[dict[str, Any]] = []
    errors: list[TierkeeperError] = []
    with session.stack(runner) as stack:
        require_proven(stack)
        for ml_name in managed_ledgers(stack, topic):
            row: dict[str, Any] = {"topic": _name(ml_name), "segments": [], "error": None}
            try:
                row["segments"] = [segment_document(one) for one in cut_stream(stack, ml_name)]
            except TierkeeperError as error:
                row["error"] = error
                errors.append(error)
            rows.append(row)
    if session.as_json:
        print_document("stream-cut", {"topics": rows})
    else:
        for row in rows:
            if row["error"] is not None:
                print_error(row["error"])
            elif not row["segments"]:
                print_line(f"{row['topic']}: nothing is new")
            print_segments(row["topic"], row["segments"])
    if errors:
        raise typer.Exit(worst(errors))


@command(
    app,
    "give-up",
    examples=(
        "tierkeeper stream give-up public/default/orders --reason its-bookies-are-lost --plan",
        "tierkeeper stream give-up public/default/orders --reason its-bookies-are-lost --execute",
    ),
    reads_only="with --plan",
)
def give_up(
    session: Session,
    *,
    topic: OneTopic,
    reason: Reason,
    consent: Annotated[Consent, CONSENT],
    author: Author = None,
) -> None:
    """Skip the segment that a stream is stuck at.

    Its entries are in no segment then. The copy of the whole ledger has them, once that is sealed.
    Refused where all segments are offloaded or given up.
    """
    from tiering_assets.stream.cut import open_chain
    from tiering_assets.stream.give_up import give_up_segment, stuck_segment

    with session.stack() as stack:
        stuck = {
            ml_name: stuck_segment(open_chain(stack, ml_name))
            for ml_name in managed_ledgers(stack, topic)
        }
        rows = [
            {"topic": _name(name), "segment": one.number, "failed_attempts": len(one.failed)}
            for name, one in stuck.items()
        ]

        def show() -> None:
            if session.as_json:
                print_document("stream-give-up", {"executed": False, "topics": rows})
                return
            for row in rows:
                print_line(
                    f"{row['topic']}: segment {row['segment']} would be given up"
                    f"{consent.nothing_done}"
                )

        if not consent.given(session, show=show, question=f"Give up {len(rows)} segments?"):
            return
        for one in stuck.values():
            give_up_segment(stack, one, reason=reason, author=author_or_user(author))
    if session.as_json:
        print_document("stream-give-up", {"executed": True, "topics": rows})
        return
    for row in rows:
        print_line(f"{row['topic']}: segment {row['segment']} is given up")


def _row(one: StreamStatus) -> tuple[object, ...]:
    return (
        _name(one.ml_name),
        one.state,
        one.segments,
        one.newest or "",
        one.next_position,
        one.waiting_bytes,
        one.waits,
    )


def _name(ml_name: str) -> str:
    from tiering_assets.look.topic.topic_evidence import topic_of

    return topic_of(ml_name)
