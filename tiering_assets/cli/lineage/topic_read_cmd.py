"""`tierkeeper topic read`: messages of a time, out of their objects, without a broker."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tiering_assets.cli.explain.topic_cmd import app
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.lineage.lineage_cmd import OneTopic, Until, understood
from tiering_assets.cli.lineage.message_rows import Format, documents, line_of, messages_file
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.lineage.asked import USUAL


class Transactions(StrEnum):
    """Whose messages are meant."""

    ALL = "all"
    COMMITTED = "committed"


@command(
    app,
    "read",
    examples=(
        "tierkeeper topic read public/default/orders --from 2026-11-25",
        "tierkeeper topic read public/default/orders --from 2026-11-25T13:00 --until 2026-11-25T14:00 "
        "--columns publish_time,key,payload",
        "tierkeeper topic read public/default/orders --from 2026-11-01 --until 2026-11-30 --limit 0 "
        "--format parquet --output orders.parquet",
        "tierkeeper topic read public/default/orders --from 2026-11-25 --columns key --value",
    ),
    reads_only=ALWAYS,
)
def read_topic(
    session: Session,
    *,
    topic: OneTopic,
    begin: Annotated[
        str,
        typer.Option("--from", metavar="TIME", help="A time, a minute or a day; UTC if not said."),
    ],
    until: Until = None,
    columns: Annotated[
        str, typer.Option("--columns", metavar="NAMES", help="With commas; all is every one.")
    ] = USUAL,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="At most so many messages; 0 is all of them.")
    ] = 10_000,
    kind: Annotated[
        Format, typer.Option("--format", help="How messages are written.")
    ] = Format.JSONL,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="A new file; arrow and parquet need one."),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Judge the CRC32C of each entry.")
    ] = False,
    markers: Annotated[
        bool, typer.Option("--markers", help="Also what brokers wrote, and no consumer sees.")
    ] = False,
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Pieces of large messages as they are stored.")
    ] = False,
    transactions: Annotated[
        Transactions,
        typer.Option("--transactions", help="committed leaves out aborted messages."),
    ] = Transactions.ALL,
    include_hot: Annotated[
        bool,
        typer.Option("--include-hot", help="Also sealed ledgers that are on bookies alone."),
    ] = False,
    value: Annotated[
        bool,
        typer.Option("--value", help="Payloads as values, by the schemas that the bucket keeps."),
    ] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="A line of its own for what cannot be read.")
    ] = False,
) -> None:
    """Read messages of a time from their objects. Asks no broker.

    Which blocks may have some the catalogue says: what is offloaded and posted. Messages come in
    the order of the topic, of partitions one after the other. Encrypted ones stay closed. A large
    message that lies in pieces stands at its last one; the others are looked for in blocks before.
    """
    from tiering_assets.cli.catalogue.catalogue_cmd import document_of
    from tiering_assets.lineage.asked import parse_span, parse_topic
    from tiering_assets.lineage.messages.options import (
        ColdOptions,
        named_columns,
        require_whole,
    )
    from tiering_assets.lineage.messages.plan import plan_messages, reading
    from tiering_assets.lineage.messages.read_messages import MessagesAsked, read_messages
    from tiering_assets.lineage.messages.topic_schemas import with_schemas

    with understood():
        name, span = parse_topic(topic), parse_span(begin, until)
        on_error = "row" if keep_going else "fail"
        names = named_columns(columns, on_error, value=value)
    if kind is not Format.JSONL and output is None:
        raise UsageError(f"--format {kind.value} needs --output FILE")
    if output is not None and output.exists():
        raise UsageError(f"--output {output}: there is such a file already")
    wanted = MessagesAsked(
        span=span,
        columns=names,
        markers=markers,
        verify=verify,
        on_error=on_error,
        pieces=pieces,
        committed=transactions is Transactions.COMMITTED,
    )
    with understood():
        require_whole(wanted)
    count, of_blocks, cut = 0, 0, False
    rows: list[dict[str, Any]] = []

    def show(found: Any) -> None:
        if session.as_json:
            rows.extend(documents(found))
        else:
            for row in documents(found):
                print_line(line_of(row))

    options = ColdOptions(topic=topic, messages=wanted, include_hot=include_hot)
    with ExitStack() as opened:
        stack = opened.enter_context(session.stack())
        options = with_schemas(stack, options)
        wanted, made = options.messages, options.schema
        sink = nullcontext(show) if output is None else messages_file(output, kind, made)
        plan = plan_messages(stack, options)
        read, write = opened.enter_context(reading(stack, plan)), opened.enter_context(sink)
        blocks = len(plan.blocks)
        for of_blocks, found in read_messages(
            read, plan.blocks, wanted, before=plan.before, after=plan.after
        ):
            cut = bool(limit) and found.num_rows > limit - count
            found = found.slice(0, limit - count) if cut else found
            count += found.num_rows
            write(found)
            session.progress(f"{of_blocks} of {blocks} blocks, {count} messages")
            if cut:
                break
        said = f"{count} messages of {of_blocks} of {blocks} blocks; {plan.said}"
        if cut:
            said += f"; there are more: --limit {limit} cut them"
        session.progress(said)
    if session.as_json:
        print_document(
            "topic-read",
            {
                "topic": str(name),
                "first": span.first,
                "last": span.last,
                "blocks": of_blocks,
                "messages": count,
                "cut": cut,
                "rows": rows,
                "output": output,
                "as_of": None if plan.as_of is None else document_of(plan.as_of),
                "on_bookies": sorted(plan.sources),
            },
        )
