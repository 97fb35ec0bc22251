"""`tierkeeper topic offload-status`: how far topics are offloaded, from what is stored."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.explain.topic_cmd import app
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.completion import topics_like
from tiering_assets.cli.grammar.selected import managed_ledgers
from tiering_assets.cli.shared.output import (
    human_bytes,
    print_document,
    print_facts,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.batch.offload_status_rules import TopicStatus
    from tiering_assets.ground.stack import Stack

AnyTopic = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC",
        autocompletion=topics_like,
        help="tenant/namespace/topic or persistent://…; a partitioned topic means all partitions.",
    ),
]


@command(
    app,
    "offload-status",
    examples=(
        "tierkeeper topic offload-status public/default/orders",
        "tierkeeper topic offload-status public/default/orders --json",
    ),
    reads_only=ALWAYS,
)
def offload_status(session: Session, *, topic: AnyTopic) -> None:
    """Print how far a topic is offloaded, and what waits.

    The words are Pulsar's: NOT_RUN, RUNNING, SUCCESS, ERROR. They come from what is stored,
    so a reload forgets nothing. Loads no topic; its own policy is asked where a broker owns its
    bundle.
    """
    from tiering_assets.batch.offload_prefix import require_topic
    from tiering_assets.batch.offload_status import offload_status as read_status
    from tiering_assets.look.topic.topic_evidence import topic_of

    with session.stack() as stack:
        names = managed_ledgers(stack, topic)
        for ml_name in names:
            require_topic(stack, ml_name)
        found = {topic_of(ml_name): status for ml_name, status in read_status(stack, names)}
        undone = {topic_of(ml_name): _unconfirmed(stack, ml_name) for ml_name in names}
    if session.as_json:
        documents = [
            _status_document(name, status) | {"undo_unconfirmed": undone[name]}
            for name, status in found.items()
        ]
        print_document("topic-offload-status", {"topics": documents})
        return
    for name, status in found.items():
        _print_status(name, status)
        if undone[name]:
            print_line(
                f"undo unconfirmed: its broker may not know that ledgers "
                f"{', '.join(map(str, undone[name]))} were taken back; nothing of it is deleted"
            )


def _unconfirmed(stack: Stack, ml_name: str) -> list[int]:
    """Ledgers that were taken back, and whose broker may not know."""
    from tiering_assets.change.confirm import unconfirmed_of

    return sorted({i for one in unconfirmed_of(stack, ml_name) for i in one.record.ledger_ids})


def _status_document(topic: str, status: TopicStatus) -> dict[str, Any]:
    from tiering_assets.batch.offload_prefix_rules import position_text
    from tiering_assets.explain.reasons.next_steps import next_step

    return {
        "topic": topic,
        "status": status.status,
        "first_unoffloaded": position_text(status.first_unoffloaded),
        "offloaded": status.offloaded,
        "copying": status.copying,
        "pending": status.pending,
        "waiting": [
            {
                "ledger_id": ledger_id,
                "reason": because.reason,
                "detail": because.detail,
                "next_step": next_step(because, topic=topic, ledger_id=ledger_id),
            }
            for ledger_id, because in status.waiting.items()
        ],
    }


def _in_numbers(status: TopicStatus) -> str:
    """`2 of 6 ledgers offloaded, 4 excluded`: Pulsar's word does not say why the rest is not."""
    counts = Counter(because.reason.value for because in status.waiting.values())
    closed = status.offloaded.ledgers + status.copying.ledgers + status.pending.ledgers
    rest = "".join(f", {count} {reason}" for reason, count in counts.items())
    return f"{status.offloaded.ledgers} of {closed} ledgers offloaded{rest}"


def _print_status(topic: str, status: TopicStatus) -> None:
    from tiering_assets.batch.offload_prefix_rules import position_text
    from tiering_assets.explain.reasons.next_steps import next_step

    facts: dict[str, object] = {
        "topic": topic,
        "status": f"{status.status}: {_in_numbers(status)}",
        "first un-offloaded": position_text(status.first_unoffloaded),
    }
    for name, amount in (
        ("offloaded", status.offloaded),
        ("copying", status.copying),
        ("pending", status.pending),
    ):
        facts[name] = f"{amount.ledgers} ledgers, {human_bytes(amount.bytes)}"
    print_facts(facts)
    if status.waiting:
        print_table(
            (
                Column("LEDGER", ValueKind.ID),
                Column("REASON", ValueKind.STATE),
                Column("DETAIL", ValueKind.FINDINGS),
            ),
            [(i, because.reason, because.detail) for i, because in status.waiting.items()],
        )
        steps = {
            (because.reason.value, next_step(because, topic=topic))
            for because in status.waiting.values()
        }
        for reason, step in sorted(steps):
            print_line(f"next, {reason}: {step}")
