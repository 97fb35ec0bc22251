"""How `tierkeeper ledger show` lays out one ledger: the answer first, then the evidence."""

from __future__ import annotations

from typing import Any

from tiering_assets.cli.shared.output import (
    NOTHING,
    human_bytes,
    human_time,
    print_facts,
    print_line,
    print_table,
)
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.cli.terminal.words import by_finding
from tiering_assets.explain.ledger_report import AttemptReport, LedgerReport
from tiering_assets.records.models import Publication, Quarantine, Release, ReleaseIntent
from tiering_assets.resources.object_store.store import ObjectHead


def page_document(report: LedgerReport) -> dict[str, Any]:
    """The same for --json; nodes appear decoded, without the ledger password."""
    sight = report.sight
    return {
        "ledger_id": report.ledger_id,
        "state": report.state,
        "reasons": report.reasons,
        "next_step": report.next_step,
        "ml_name": report.ml_name,
        "topic": None if report.view is None else report.view.topic,
        "bookkeeper": None
        if sight.node is None
        else {
            "path": sight.node.path,
            "version": sight.node.stat.version,
            "metadata": sight.node.metadata,
        },
        "managed_ledger": None
        if sight.topic_node is None
        else {
            "path": sight.topic_node.path,
            "version": sight.topic_node.stat.version,
            "listed": sight.listed,
        },
        "under_replicated": report.under_replicated,
        "claim": report.claim,
        "hold": report.hold,
        "attempts": report.attempts,
    }


def print_page(report: LedgerReport) -> None:
    topic = report.ml_name if report.view is None else report.view.topic
    state = "in no topic's list" if report.state is None else report.state.value
    print_line(f"ledger {report.ledger_id}: {state}", lead=state)
    for reason in report.reasons:
        first, *more = by_finding(reason)
        print_line(f"  because {first}")
        for finding in more:
            print_line(f"    {finding}")
    print_line(f"  next: {report.next_step}")
    print_line()
    print_facts({"topic": topic, **_bookkeeper(report), **_managed_ledger(report)})
    for attempt in report.attempts:
        print_line()
        _print_attempt(attempt)


def _bookkeeper(report: LedgerReport) -> dict[str, object]:
    node = report.sight.node
    if node is None:
        return {"BookKeeper": "has no such ledger"}
    found = node.metadata
    copies = (
        f"ensemble {found.ensemble_size}, write {found.write_quorum}, ack {found.ack_quorum}, "
        f"digest {found.digest_type.name}"
    )
    facts: dict[str, object] = {
        "BookKeeper": f"{found.state.name}, {found.entries} entries, "
        f"{human_bytes(found.length)}, {copies}",
        "node": f"{node.path} version {node.stat.version}",
        "under-replicated": {None: "unknown", True: "yes", False: "no"}[report.under_replicated],
    }
    for segment in found.segments:
        facts[f"bookies from {segment.first_entry_id}"] = ", ".join(segment.bookies)
    return facts


def _managed_ledger(report: LedgerReport) -> dict[str, object]:
    sight, facts = report.sight, dict[str, object]()
    listed, node = sight.listed, sight.topic_node
    if listed is None or node is None:
        facts["managed ledger"] = "does not list it" if node is not None else "not found"
    else:
        closed = "open" if listed.is_open else f"{listed.entries} entries, {listed.size} bytes"
        facts["managed ledger"] = f"{closed}; {node.path} version {node.stat.version}"
        context = listed.offload
        if context is None:
            facts["offload context"] = NOTHING
        else:
            facts["offload context"] = (
                f"{context.uid} {'complete' if context.complete else 'not complete'}, "
                f"bookkeeperDeleted {str(context.bookkeeper_deleted).lower()}"
            )
            facts["driver"] = " ".join(f"{k}={v}" for k, v in context.properties.items())
    if report.claim is not None:
        expires = human_time(report.claim.expires_at)
        facts["claimed"] = f"by run {report.claim.run_id} until {expires}"
    if report.hold is not None:
        facts["hold"] = report.hold
    return facts


def _print_attempt(attempt: AttemptReport) -> None:
    print_line(f"attempt {attempt.uid}")
    print_facts({"  data": _head(attempt.data), "  index": _head(attempt.index)})
    print_table(
        (
            Column("RECORD", ValueKind.ID),
            Column("STORED", ValueKind.TIME),
            Column("CHAIN", ValueKind.STATE),
            Column("KEY", ValueKind.DIGEST),
        ),
        [
            (
                f"{link.record.kind.split('/')[1]}",
                link.stored_at,
                "intact" if link.follows else "BROKEN",
                link.key,
            )
            for link in attempt.chain
        ],
    )
    for link in attempt.chain:
        if isinstance(link.record, Quarantine):
            first, *more = by_finding(f"quarantined: {link.record.reason}")
            print_line(f"  {first}", lead="quarantined")
            for finding in more:
                print_line(f"    {finding}")
        elif isinstance(link.record, Publication):
            print_line(f"  publication confirmed: {link.record.confirmed_by}")
        elif isinstance(link.record, ReleaseIntent):
            print_line(f"  to be released on certificate {link.record.certificate_sha256}")
        elif isinstance(link.record, Release):
            writer = link.record.writer
            print_line(f"  released by run {writer.run_id}, {writer.host}")


def _head(head: ObjectHead | None) -> str:
    if head is None:
        return "not there"
    version = f", version {head.version_id}" if head.version_id else ""
    stored = human_time(head.last_modified)
    return f"{head.key}, {human_bytes(head.size)}, ETag {head.etag}, stored {stored}{version}"
