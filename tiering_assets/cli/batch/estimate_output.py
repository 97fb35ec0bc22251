"""How the estimate of a dry run is printed, for people and as JSON."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tiering_assets.cli.shared.output import human_age, human_bytes, print_facts, print_table
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.batch.offload_estimate_rules import Estimate
    from tiering_assets.batch.request_count import RequestCount


def requests_document(requests: RequestCount) -> dict[str, int]:
    """By class, and what providers price as writes and reads."""
    by_class = {f.name: getattr(requests, f.name) for f in fields(requests)}
    return {**by_class, "writes": requests.writes, "reads": requests.reads}


def estimate_document(estimate: Estimate) -> dict[str, Any]:
    """All of it, by the names of its fields."""
    document = {f.name: getattr(estimate, f.name) for f in fields(estimate)}
    return {**document, "requests": requests_document(estimate.requests)}


def print_estimate(estimate: Estimate) -> None:
    """The totals, what bounds the time, and what is left out by reason."""
    said = estimate.requests
    computed = estimate.ledgers - estimate.exact_ledgers
    note = f" ({computed} ledgers computed from sizes)" if computed else ""
    print_facts(
        {
            "would offload": f"{estimate.ledgers} ledgers of {estimate.topics} topics, "
            f"{estimate.entries} entries, {human_bytes(estimate.payload_bytes)}",
            "would write": f"{estimate.objects} objects of "
            f"{human_bytes(estimate.object_bytes + estimate.index_bytes)}, "
            f"{estimate.parts} parts{note}",
            "requests": f"{said.put} PUT, {said.post} POST, {said.get} GET, {said.head} HEAD, "
            f"{said.list} LIST",
            "topic unloads": f"{estimate.unloads} if all the topics are loaded",
            "time": f"about {human_age(estimate.seconds)}",
        }
    )
    print_table(
        (
            Column("BOUND BY", ValueKind.ID),
            Column("TIME", ValueKind.AGE),
            Column("ORIGIN", ValueKind.TEXT),
        ),
        [(bound.what, bound.seconds, bound.origin) for bound in estimate.bounds],
    )
    print_table(
        (
            Column("NOT TAKEN", ValueKind.STATE),
            Column("LEDGERS", ValueKind.NUMBER),
            Column("SIZE", ValueKind.SIZE),
        ),
        [(row.reason, row.ledgers, row.bytes) for row in estimate.left_out],
    )
