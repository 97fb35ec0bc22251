"""`tierkeeper topic expiry`: what retention and TTL let go of, when, and what keeps the rest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.explain.topic_cmd import CHOSEN, app
from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.selected import names_of
from tiering_assets.cli.grammar.selection import AskTopics, Chosen
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import (
    human_bytes,
    print_document,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.policy.policy import EffectivePolicy, Value
    from tiering_assets.retention.expiry import AgingTopic


@command(
    app,
    "expiry",
    examples=(
        "tierkeeper topic expiry",
        "tierkeeper topic expiry public/default/orders",
        "tierkeeper topic expiry --json",
    ),
    reads_only="without --ask-topics",
)
def expiry(
    session: Session, *, chosen: Annotated[Chosen, CHOSEN], ask_topics: AskTopics = False
) -> None:
    """Say what retention and TTL let go of, and when.

    From metadata alone, by the broker's own rule. Topics that are named have their own policies
    asked, too, where a broker owns their bundles; of the others the namespace's retention counts.
    Whether a topic is loaded is asked only where something is overdue. Ends with 1 when a topic
    could not be read.
    """
    from tiering_assets.retention.expiry import survey_expiry

    with session.stack() as stack:
        found = survey_expiry(stack, names_of(stack, chosen), loads_nothing=not ask_topics)
    if session.as_json:
        print_document(
            "topic-expiry", {"topics": [_document(one, not chosen.everything) for one in found]}
        )
    else:
        _print(found)
    if any(one.error for one in found):
        raise typer.Exit(FINDINGS)


def _print(found: list[AgingTopic]) -> None:
    columns = (
        Column("TOPIC", ValueKind.TOPIC),
        Column("LOADED", ValueKind.STATE),
        Column("RETENTION"),
        Column("TTL"),
        Column("LEDGERS", ValueKind.NUMBER),
        Column("OVERDUE", ValueKind.NUMBER, 60),
        Column("SIZE", ValueKind.SIZE),
        Column("NEXT DUE", ValueKind.TIME, 60),
        Column("KEPT BY"),
    )
    print_table(columns, [_row(one) for one in found if one.expiry is not None])
    for one in found:
        if one.error is not None:
            print_line(f"{one.topic}: {one.error}")
        elif not one.certain:
            print_line(f"{one.topic}: its own policies were not asked and may say otherwise")
        for late in one.expiry.ttl if one.expiry is not None else ():
            print_line(
                f"{one.topic}: subscription {late.subscription} has {late.entries} entries in "
                f"{late.ledgers} ledgers ({human_bytes(late.bytes)}) past their TTL; the broker "
                f"expires them while it has the topic loaded"
            )


def _row(one: AgingTopic) -> tuple[object, ...]:
    expiry, policy = one.expiry, one.policy
    if expiry is None or policy is None:
        return (one.topic,)
    return (
        one.topic,
        "not asked" if one.place is None else one.place.load,
        retention_text(policy),
        f"{policy.ttl_s.value} s" if policy.ttl_s.value else "none",
        len(expiry.ledgers),
        len(expiry.overdue),
        expiry.overdue_bytes,
        _moment(expiry.next_due_ms),
        ", ".join(expiry.kept_by),
    )


def retention_text(policy: EffectivePolicy) -> str:
    """`60 min (topic), unlimited MB (topic)`: both limits, each with the level it comes from."""
    return f"{_limit(policy.retention_minutes, 'min')}, {_limit(policy.retention_megabytes, 'MB')}"


def _limit(found: Value[int], unit: str) -> str:
    value = found.value
    amount = "unknown" if value is None else "unlimited" if value < 0 else str(value)
    return f"{amount} {unit} ({found.origin.value})"


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _document(one: AgingTopic, named: bool) -> dict[str, Any]:
    expiry, policy = one.expiry, one.policy
    answer: dict[str, Any] = {
        "topic": one.topic,
        "ml_name": one.ml_name,
        "load": None if one.place is None else one.place.load,
        "error": one.error,
        "certain": one.certain,
    }
    if policy is not None:
        answer |= {
            "retention_minutes": policy.retention_minutes,
            "retention_megabytes": policy.retention_megabytes,
            "ttl_s": policy.ttl_s,
        }
    if expiry is not None:
        answer |= {
            "listed": len(expiry.ledgers),
            "overdue": one.overdue,
            "overdue_bytes": expiry.overdue_bytes,
            "next_due_at": _moment(expiry.next_due_ms),
            "kept_by": expiry.kept_by,
            "ttl_backlogs": expiry.ttl,
        }
        if named:
            answer["ledgers"] = [
                {
                    "ledger_id": ledger.ledger_id,
                    "bytes": ledger.bytes,
                    "kept": ledger.kept,
                    "due_at": _moment(ledger.due_at_ms),
                }
                for ledger in expiry.ledgers
            ]
    return answer
