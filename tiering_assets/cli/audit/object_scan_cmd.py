"""`tierkeeper object scan`: every damaged object of a bucket, what it costs, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.audit.object_cmd import app
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import human_bytes, print_document, print_facts, print_line
from tiering_assets.cli.shared.session import Session

if TYPE_CHECKING:
    from tiering_assets.audit.scan.object_scan import DamagedAttempt, ScanCounts


@command(
    app,
    "scan",
    examples=(
        "tierkeeper object scan pulsar-offload",
        "tierkeeper object scan pulsar-offload --shallow",
        "tierkeeper object scan pulsar-offload --prefix 3f --json",
    ),
    reads_only=ALWAYS,
)
def scan(
    session: Session,
    *,
    bucket: Annotated[str, typer.Argument(metavar="BUCKET", help="The bucket to look through.")],
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="KEY", help="Only keys that begin so.")
    ] = "",
    shallow: Annotated[
        bool,
        typer.Option(
            "--shallow", help="Read indexes and sizes alone: finds no bad bytes in data objects."
        ),
    ] = False,
) -> None:
    """Find damaged and truncated offload objects, whoever wrote them. Reads every byte, writes
    none.

    Each is printed with its kind, the entries that it does not give, whether BookKeeper still has
    the ledger, and the next step. A broker's offloader truncates a ledger with an entry larger than
    its block and reports success: such objects are named as truncated. Needs no cluster; without
    metadata.store it is unknown whether bookie copies live. Ends with 1 if anything is damaged or
    unread.
    """
    from tiering_assets.audit.scan.object_scan import ScanCounts, open_bucket, scan_objects

    session.flags = session.flags | {"store.bucket": bucket}
    counts, found = ScanCounts(), []
    with open_bucket(session.settings, narrate=session.progress) as (stack, away):
        if away is not None:
            session.progress(f"bookie copies are unknown: {away}")
        for damage in scan_objects(stack, counts, prefix=prefix, shallow=shallow):
            found.append(damage)
            if not session.as_json:
                _print(damage)
    if session.as_json:
        print_document("object-scan", _document(bucket, prefix, shallow, away, counts, found))
    else:
        for one in counts.unread:
            print_line(f"{one.key}: could not be read: {one.error}")
        print_line(
            f"{counts.pairs} attempts in {counts.listed} objects, {human_bytes(counts.bytes)}"
            f"{', data not read' if shallow else ''}: {counts.damaged} damaged, "
            f"{len(counts.unread)} could not be read"
        )
    if found or counts.unread:
        raise typer.Exit(FINDINGS)


def _document(
    bucket: str,
    prefix: str,
    shallow: bool,
    away: str | None,
    counts: ScanCounts,
    found: list[DamagedAttempt],
) -> dict[str, Any]:
    return {
        "bucket": bucket,
        "prefix": prefix,
        "shallow": shallow,
        "metadata_unknown": away,
        "counts": counts,
        "damaged": [{**_fields(one), "lost": one.lost} for one in found],
    }


def _fields(damage: DamagedAttempt) -> dict[str, Any]:
    from dataclasses import fields

    return {f.name: getattr(damage, f.name) for f in fields(damage)}


def _print(damage: DamagedAttempt) -> None:
    from tiering_assets.cli.scrub.scrub_cmd import spans

    print_line(f"{damage.key}: {damage.kind}")
    entries = "all of them" if damage.unreadable is None else spans(damage.unreadable) or "none"
    of_all = "" if damage.entries is None else f" of {damage.entries}"
    facts: dict[str, object] = {
        "  written by": damage.written_by,
        "  topic": damage.topic,
        "  entries not readable here": f"{entries}{of_all}",
        "  bookie copy": damage.bookie_copy,
        "  brokers": damage.readers,
        "  next step": damage.next_step,
    }
    for number, finding in enumerate(damage.findings, start=1):
        facts[f"  finding {number}"] = finding
    print_facts(facts)
