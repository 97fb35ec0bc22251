"""Which ledgers and topics the arguments of a command mean.

Owns: a name that names nothing is a usage error before anything is done, never an empty success.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack

LedgerIds = Annotated[list[int] | None, typer.Argument(metavar="ID", min=0, help="Ledger ids.")]
SomeLedgerIds = Annotated[list[int], typer.Argument(metavar="ID", min=0, help="Ledger ids.")]
Topic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="tenant/namespace/topic or persistent://…; a partitioned topic means all partitions.",
    ),
]


Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="TENANT/NAMESPACE", help="All topics of a namespace."),
]


AskTopics = Annotated[
    bool,
    typer.Option(
        "--ask-topics",
        help="Ask topics' own policies even where no broker owns their bundle: one will, and loads "
        "topics for it.",
    ),
]


def require_one_choice(**choices: object) -> None:
    """Usage error unless exactly one of the ways to choose ledgers was taken."""
    taken = [name for name, value in choices.items() if value]
    if len(taken) != 1:
        ways = ", ".join(choices)
        found = f"found {' and '.join(taken)}" if taken else "found none"
        raise typer.BadParameter(f"choose ledgers by exactly one of {ways}; {found}")


def managed_ledgers(stack: Stack, topic: str) -> list[str]:
    """Managed ledgers of a topic, or of each partition. Usage error when metadata has none."""
    from tiering_assets.resources.errors import FormatError
    from tiering_assets.resources.metastore.topic_names import parse_topic_name, with_scheme

    full = with_scheme(topic)
    try:
        name = parse_topic_name(full).managed_ledger_name
    except FormatError as error:
        raise typer.BadParameter(f"--topic: {error}") from None
    if stack.topics.read(name) is not None:
        return [name]
    prefix = f"{name}-partition-"
    partitions = [
        found
        for found in stack.topics.iter_managed_ledgers()
        if found.startswith(prefix) and found.removeprefix(prefix).isdecimal()
    ]
    if not partitions:
        raise typer.BadParameter(
            f"--topic {full}: the metadata store has no such topic; check the name with "
            f"`tierkeeper ledger list`"
        )
    return sorted(partitions, key=lambda found: int(found.removeprefix(prefix)))


def by_topic(stack: Stack, ledger_ids: Sequence[int]) -> dict[str, list[int]]:
    """Ledgers grouped by their managed ledger. LedgerNotFoundError for one that nobody knows."""
    from tiering_assets.look.ledger.survey import ml_names_of
    from tiering_assets.resources.errors import LedgerNotFoundError

    names = ml_names_of(stack, ledger_ids)
    unknown = sorted(set(ledger_ids) - set(names))
    if unknown:
        raise LedgerNotFoundError(
            f"ledgers {', '.join(map(str, unknown))}: no topic and no record names them; "
            f"`tierkeeper ledger list` prints those that exist"
        )
    groups: dict[str, list[int]] = {}
    for ledger_id in sorted(set(ledger_ids)):
        groups.setdefault(names[ledger_id], []).append(ledger_id)
    return groups
