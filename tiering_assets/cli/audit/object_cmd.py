"""`tierkeeper object show|verify`: one attempt's data and index object, whoever wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import (
    human_bytes,
    human_time,
    print_document,
    print_facts,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.records.models import EntryRange
    from tiering_assets.resources.object_store.store import ObjectHead
    from tiering_assets.verify.object_check import ObjectSight

app = typer.Typer(
    name="object", help="Objects in the bucket: what is in them.", no_args_is_help=True
)
Key = Annotated[
    str,
    typer.Argument(metavar="KEY", help="Key of a data object or of its index object."),
]
_EXAMPLE_KEY = "3f1c9a52-5d6e-4a7b-8c9d-0e1f2a3b4c5d-ledger-12345"


@command(
    app,
    "show",
    examples=(
        f"tierkeeper object show {_EXAMPLE_KEY}",
        f"tierkeeper object show {_EXAMPLE_KEY}-index --json",
    ),
    reads_only=ALWAYS,
)
def show(session: Session, *, key: Key) -> None:
    """Show both objects of an attempt, the index decoded."""
    from tiering_assets.verify.object_check import look_at_object

    with session.stack() as stack:
        sight = look_at_object(stack, key)
    if session.as_json:
        print_document("object-show", _document(sight))
        return
    print_line(f"ledger {sight.ledger_id}, attempt {sight.uid}")
    certificate = "none" if sight.certificate is None else sight.certificate.key
    print_facts({"certificate": certificate})
    _print_head("data", sight.data)
    _print_head("index", None if sight.index is None else sight.index.head)
    if sight.metadata is not None:
        found = sight.metadata
        print_line(
            f"ledger metadata in the index: {found.state.name}, {found.entries} entries, "
            f"{found.length} bytes, digest {found.digest_type.name}"
        )
    if sight.decoded is not None:
        print_line(f"index: data object of {sight.decoded.data_object_length} bytes")
        print_table(
            (
                Column("BLOCK", ValueKind.ID),
                Column("FIRST ENTRY", ValueKind.NUMBER),
                Column("OFFSET", ValueKind.NUMBER),
                Column("BYTES", ValueKind.NUMBER),
            ),
            [
                (number, block.first_entry_id, block.offset, block.length)
                for number, block in enumerate(sight.blocks, start=1)
            ],
        )
    for problem in sight.problems:
        print_line(f"problem: {problem}", lead="problem")


def _document(sight: ObjectSight) -> dict[str, Any]:
    return {
        "ledger_id": sight.ledger_id,
        "uid": sight.uid,
        "data": sight.data,
        "index": None if sight.index is None else sight.index.head,
        "data_object_length": None if sight.decoded is None else sight.decoded.data_object_length,
        "ledger_metadata": sight.metadata,
        "blocks": [
            {"part_number": number, **block._asdict()}
            for number, block in enumerate(sight.blocks, start=1)
        ],
        "certificate": None if sight.certificate is None else sight.certificate.key,
        "problems": sight.problems,
    }


def _print_head(name: str, head: ObjectHead | None) -> None:
    if head is None:
        print_line(f"{name} object: not there")
        return
    print_line(f"{name} object {head.key}")
    facts = {
        "  size": f"{head.size} bytes ({human_bytes(head.size)})",
        "  ETag": head.etag,
        "  stored": human_time(head.last_modified),
        "  version": head.version_id,
        "  expiration": head.expiration,
    }
    print_facts(facts | {f"  {k}": v for k, v in sorted(head.metadata.items())})


@command(app, "verify", examples=(f"tierkeeper object verify {_EXAMPLE_KEY}",))
def verify(session: Session, *, key: Key) -> None:
    """Check one object's blocks, index and certificate.

    Checks count, entry ids, padding and lengths. Finds a copy that stopped early: its index
    describes fewer bytes than the object has. Ends with 1 if anything is wrong.
    """
    from tiering_assets.cli.scrub.scrub_cmd import spans
    from tiering_assets.ground.damage_advice import next_step
    from tiering_assets.verify.entry_loss import lost_entries
    from tiering_assets.verify.object_check import topic_spending
    from tiering_assets.verify.verify_again import verify_object

    with session.stack() as stack:
        check = verify_object(stack, key)
        metadata = check.sight.metadata
        unreadable: tuple[EntryRange, ...] = ()
        if check.findings and metadata is not None:
            unreadable = lost_entries(stack, check.sight, last_entry_id=metadata.last_entry_id)
    if session.as_json:
        print_document(
            "object-verify",
            {
                "result": "findings" if check.findings else "ok",
                "findings": check.findings,
                "unreadable": unreadable,
                "entries": check.entries,
                "payload_bytes": check.payload_bytes,
                "seconds": check.seconds,
                **_document(check.sight),
            },
        )
    else:
        for finding in check.findings:
            print_line(f"finding: {finding}", lead="finding")
        if unreadable:
            print_line(f"unreadable in this copy: entries {spans(unreadable)}")
        if check.findings:
            print_line(f"what to do: {next_step(topic_spending(check.sight) or None)}")
        compared = "no certificate" if check.sight.certificate is None else "the certificate"
        print_line(
            f"{check.sight.data_key}: {len(check.sight.blocks)} blocks, {check.entries} entries, "
            f"{check.payload_bytes} payload bytes, compared with {compared}: "
            f"{f'{len(check.findings)} findings' if check.findings else 'ok'}"
        )
    if check.findings:
        raise typer.Exit(FINDINGS)
