"""`tierkeeper lineage message|topic|object`: from a message, a time or a byte to proof and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.completion import topics_like
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError

if TYPE_CHECKING:
    from tiering_assets.catalogue.view import AsOf, Tables
    from tiering_assets.ground.stack import Stack

app = typer.Typer(
    name="lineage",
    help="Follow messages, times and bytes through the catalogue.",
    no_args_is_help=True,
)
Prove = Annotated[
    bool,
    typer.Option(
        "--prove", help="Read certificates and objects again, and tell what still agrees."
    ),
]
OneTopic = Annotated[
    str, typer.Argument(metavar="TOPIC", help="Topic.", autocompletion=topics_like)
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="The end, which belongs to it.")
]
_KEY = "3f1c9a52-5d6e-4a7b-8c9d-0e1f2a3b4c5d-ledger-12345"


@contextmanager
def asked(session: Session) -> Iterator[tuple[Stack, Tables, AsOf]]:
    """The stack, the tables at one version each, and how far they go."""
    from tiering_assets.catalogue.view import Catalogue, least

    with session.stack() as stack:
        catalogue = Catalogue.of(stack)
        tables = catalogue.opened()
        yield stack, tables, least(catalogue, tables)


@contextmanager
def understood() -> Iterator[None]:
    """A ValueError of what was typed is a usage error."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


@command(
    app,
    "message",
    examples=(
        "tierkeeper lineage message 12345:250",
        "tierkeeper lineage message 12345:250:7 --show",
        "tierkeeper lineage message 12345:250 --prove --json",
    ),
    reads_only=ALWAYS,
)
def show_message(
    session: Session,
    *,
    place: Annotated[
        str, typer.Argument(metavar="ID", help="Message id: LEDGER:ENTRY or LEDGER:ENTRY:INDEX.")
    ],
    show: Annotated[
        bool, typer.Option("--show", help="Read the entry from its object, and print messages.")
    ] = False,
    prove: Prove = False,
) -> None:
    """Show which bytes hold a message, and who proved them.

    Ledger, object, version, byte range, block, SHA-256, attempt, run, certificate and bookie copy,
    as the catalogue has them. With --prove it ends with 1 if anything does not agree.
    """
    from tiering_assets.cli.catalogue.catalogue_cmd import document_of
    from tiering_assets.cli.lineage import lineage_output as output
    from tiering_assets.lineage.asked import parse_place
    from tiering_assets.lineage.find import block_of_message
    from tiering_assets.lineage.proof import prove_blocks
    from tiering_assets.lineage.read_entry import read_entry
    from tiering_assets.lineage.shown_entry import show_entry

    with understood():
        wanted = parse_place(place)
    entry = None
    with asked(session) as (stack, tables, as_of):
        block = block_of_message(tables, wanted, as_of)
        if show:
            stored = read_entry(stack, block, wanted.entry_id)
            with understood():
                entry = show_entry(stored, wanted)
        proof = prove_blocks(stack, [block]) if prove else []
    if session.as_json:
        print_document(
            "lineage-message",
            {
                "message": str(wanted),
                "block": output.block_document(block),
                "entry": None if entry is None else output.entry_document(entry),
                "proof": proof,
                "as_of": document_of(as_of),
            },
        )
    else:
        output.print_block(block)
        if entry is not None:
            output.print_entry(entry)
        output.print_proof(proof)
        print_line(str(as_of))
    output.end_by(proof, entry)


@command(
    app,
    "topic",
    examples=(
        "tierkeeper lineage topic public/default/orders --at 2026-11-25T13:19:21Z",
        "tierkeeper lineage topic public/default/orders --at 2026-11-25 --until 2026-11-26 --json",
    ),
    reads_only=ALWAYS,
)
def show_topic(
    session: Session,
    *,
    topic: OneTopic,
    at: Annotated[
        str,
        typer.Option("--at", metavar="TIME", help="A time, a minute or a day; UTC if not said."),
    ],
    until: Until = None,
    prove: Prove = False,
) -> None:
    """Show the blocks that may hold messages of a time.

    In the order of the topic, by the publish times that producers wrote. A block of which they are
    not known is always shown.
    With --prove it ends with 1 if anything does not agree.
    """
    from tiering_assets.cli.catalogue.catalogue_cmd import document_of
    from tiering_assets.cli.lineage import lineage_output as output
    from tiering_assets.lineage.asked import parse_span, parse_topic
    from tiering_assets.lineage.find import blocks_of_span, require_topic
    from tiering_assets.lineage.proof import prove_blocks

    with understood():
        name, span = parse_topic(topic), parse_span(at, until)
    with asked(session) as (stack, tables, as_of):
        with understood():
            blocks = blocks_of_span(tables, name, span)
        if not blocks:
            require_topic(tables, name, as_of)
        proof = prove_blocks(stack, blocks) if prove else []
    unknown = sum(one.publish_min is None or one.publish_max is None for one in blocks)
    if session.as_json:
        print_document(
            "lineage-topic",
            {
                "topic": str(name),
                "first": span.first,
                "last": span.last,
                "blocks": [output.block_document(one) for one in blocks],
                "without_time": unknown,
                "proof": proof,
                "as_of": document_of(as_of),
            },
        )
    else:
        output.print_blocks(blocks)
        output.print_proof(proof)
        if unknown:
            print_line(f"of {unknown} blocks it is not known when their messages were published")
        print_line(f"{len(blocks)} blocks; {as_of}")
    output.end_by(proof)


@command(
    app,
    "object",
    examples=(
        f"tierkeeper lineage object {_KEY} --offset 1048576",
        f"tierkeeper lineage object {_KEY} --offset 0 --prove --json",
    ),
    reads_only=ALWAYS,
)
def show_object(
    session: Session,
    *,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key of a data object.")],
    offset: Annotated[
        int, typer.Option("--offset", metavar="BYTE", min=0, help="A byte of it, counted from 0.")
    ],
    prove: Prove = False,
) -> None:
    """Show which block, entry and messages a byte belongs to.

    Reads the entry from the object, and tells what it took. With --prove it ends with 1 if anything
    does not agree.
    """
    from tiering_assets.cli.catalogue.catalogue_cmd import document_of
    from tiering_assets.cli.lineage import lineage_output as output
    from tiering_assets.lineage.asked import MessagePlace
    from tiering_assets.lineage.find import block_of_byte
    from tiering_assets.lineage.proof import prove_blocks
    from tiering_assets.lineage.read_entry import read_at
    from tiering_assets.lineage.shown_entry import NoEntry, show_entry

    entry = None
    with asked(session) as (stack, tables, as_of):
        with understood():
            block = block_of_byte(tables, key, offset, as_of)
        stored = read_at(stack, block, offset)
        if not isinstance(stored, NoEntry):
            entry = show_entry(stored, MessagePlace(block.ledger_id, stored.entry_id))
        proof = prove_blocks(stack, [block]) if prove else []
    belongs = stored.what if isinstance(stored, NoEntry) else "entry"
    if session.as_json:
        print_document(
            "lineage-object",
            {
                "key": key,
                "offset": offset,
                "belongs_to": belongs,
                "read": stored.cost,
                "block": output.block_document(block),
                "entry": None if entry is None else output.entry_document(entry),
                "proof": proof,
                "as_of": document_of(as_of),
            },
        )
    else:
        output.print_block(block)
        if entry is None:
            print_line(f"byte {offset} is of the block's {belongs}, and of no entry")
            print_line(output.cost_text(stored.cost))
        else:
            output.print_entry(entry)
        output.print_proof(proof)
        print_line(str(as_of))
    output.end_by(proof, entry)
