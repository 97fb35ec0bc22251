"""What a selection means on a cluster: managed ledgers, ledgers by topic, scopes of brakes.

Owns: one that names nothing, or something that does not exist, is an error before anything is done;
an empty one is never "all". Topics' names are listed once, however many topics are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tiering_assets.cli.grammar.selection import Chosen
from tiering_assets.cli.shared.usage import UsageError

_NAMED_MAX = 20  # of ids that are unknown; a file of another cluster has thousands

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack
    from tiering_assets.look.brakes.scopes import Scope


def names_of(stack: Stack, chosen: Chosen) -> list[str] | None:
    """Managed ledgers that are meant, in name order; None for all. Usage error for none."""
    if chosen.everything:
        return None
    if chosen.ledger_ids:
        return sorted(by_topic(stack, chosen.ledger_ids))
    return sorted(_named(stack, chosen.topics, chosen.namespaces))


def scopes_of(chosen: Chosen) -> list[Scope]:
    """What a brake of this selection is put on: topics as named, with partitions to come."""
    from tiering_assets.look.brakes.scopes import (
        EVERYTHING,
        ledger_scope,
        namespace_scope,
        topic_scope,
    )
    from tiering_assets.resources.errors import FormatError

    try:
        return [
            *map(ledger_scope, chosen.ledger_ids),
            *map(topic_scope, chosen.topics),
            *map(namespace_scope, chosen.namespaces),
        ] or [EVERYTHING]
    except FormatError as error:
        raise UsageError(str(error)) from None


def managed_ledgers(stack: Stack, topic: str) -> list[str]:
    """Managed ledgers of a topic, or of each partition. Usage error when metadata has none."""
    return _partitions_in_order(_named(stack, [topic], []))


def require_known(stack: Stack, ledger_ids: Sequence[int]) -> None:
    """LedgerNotFoundError for an id that neither BookKeeper nor a record names.

    One read a ledger, which overlap, and a listing for each that BookKeeper does not have.
    """
    from tiering_assets.look.ledger.resume import attempts_of

    absent = sorted({*ledger_ids} - stack.ledgers.existing(ledger_ids))
    _refuse_unknown([one for one in absent if not attempts_of(stack, one)])


def by_topic(stack: Stack, ledger_ids: Sequence[int]) -> dict[str, list[int]]:
    """Ledgers grouped by their managed ledger. LedgerNotFoundError for one that nobody knows."""
    from tiering_assets.look.ledger.survey import ml_names_of

    names = ml_names_of(stack, ledger_ids)
    _refuse_unknown(sorted(set(ledger_ids) - set(names)))
    groups: dict[str, list[int]] = {}
    for ledger_id in sorted(set(ledger_ids)):
        groups.setdefault(names[ledger_id], []).append(ledger_id)
    return groups


def _refuse_unknown(unknown: Sequence[int]) -> None:
    from tiering_assets.resources.errors import LedgerNotFoundError

    if unknown:
        many = len(unknown) > 1
        raise LedgerNotFoundError(
            f"ledger{'s' if many else ''} {', '.join(map(str, unknown[:_NAMED_MAX]))}"
            f"{f' and {len(unknown) - _NAMED_MAX} more' if len(unknown) > _NAMED_MAX else ''}: "
            f"no topic and no record of this cluster names {'them' if many else 'it'}; "
            f"`tierkeeper ledger list` prints those that exist"
        )


def _named(stack: Stack, topics: Iterable[str], namespaces: Iterable[str]) -> list[str]:
    """Managed ledgers of topics and namespaces, each known; names are listed once at most."""
    from tiering_assets.look.topic.user_topics import user_topic_names
    from tiering_assets.records.keys import namespace_of
    from tiering_assets.resources.errors import FormatError
    from tiering_assets.resources.metastore.topic_names import parse_topic_name, with_scheme

    every: list[str] | None = None
    found: dict[str, None] = {}
    for topic in topics:
        full = with_scheme(topic)
        try:
            name = parse_topic_name(full).managed_ledger_name
        except FormatError as error:
            raise UsageError(f"--topic: {error}") from None
        if stack.topics.read(name) is not None:
            found[name] = None
            continue
        every = list(stack.topics.iter_managed_ledgers()) if every is None else every
        prefix = f"{name}-partition-"
        partitions = [
            one for one in every if one.startswith(prefix) and one.removeprefix(prefix).isdecimal()
        ]
        if not partitions:
            raise UsageError(
                f"--topic {full}: the metadata store has no such topic; check the name with "
                f"`tierkeeper topic list`"
            )
        found |= dict.fromkeys(partitions)
    users = user_topic_names(stack) if namespaces else []
    for namespace in namespaces:
        those = [one for one in users if namespace_of(one) == namespace]
        if not those:
            raise UsageError(
                f"--namespace {namespace}: the metadata store has no topic in it; "
                f"`tierkeeper topic list` prints all"
            )
        found |= dict.fromkeys(those)
    return list(found)


def _partitions_in_order(names: list[str]) -> list[str]:
    def number(name: str) -> tuple[str, int]:
        topic, _, last = name.rpartition("-partition-")
        return (topic, int(last)) if last.isdecimal() else (name, 0)

    return sorted(names, key=number)
