"""What a hold or a pause covers: one ledger, a topic, a namespace, or everything.

Owns: a partitioned topic covers its partitions, those that it will have, too; what covers a managed
ledger is named from its name alone, so that nobody must ask the metadata store whether it is
braked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.resources.errors import FormatError, RefusedError
from tiering_assets.resources.metastore.topic_names import (
    parse_managed_ledger_name,
    parse_topic_name,
    with_scheme,
)


@dataclass(frozen=True, slots=True)
class Scope:
    """`name` is a ledger's id, a managed ledger, `tenant/namespace`, or empty for all."""

    kind: Literal["ledger", "topic", "namespace", "all"]
    name: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "topic":
                return f"topic {topic_of(self.name)}"
            case "all":
                return "everything"
            case _:
                return f"{self.kind} {self.name}"


EVERYTHING = Scope("all")


def ledger_scope(ledger_id: int) -> Scope:
    return Scope("ledger", str(ledger_id))


def topic_scope(topic: str) -> Scope:
    """The scope of a topic, a partition or a partitioned topic. FormatError: it is no topic's
    name.
    """
    return Scope("topic", parse_topic_name(with_scheme(topic)).managed_ledger_name)


def namespace_scope(namespace: str) -> Scope:
    """FormatError when it is not `tenant/namespace`."""
    if namespace.count("/") != 1 or not all(namespace.split("/")):
        raise FormatError(f"namespace {namespace[:200]!r}: expected tenant/namespace")
    return Scope("namespace", namespace)


def scopes_of(ml_name: str) -> tuple[Scope, ...]:
    """Everything that covers a managed ledger, the widest first: for a partition its whole topic,
    too.
    """
    try:
        whole = parse_managed_ledger_name(ml_name).unpartitioned.managed_ledger_name
    except FormatError:  # of no topic, and of no partition
        whole = ml_name
    names = dict.fromkeys((whole, ml_name))
    return (
        EVERYTHING,
        Scope("namespace", keys.namespace_of(ml_name)),
        *(Scope("topic", name) for name in names),
    )


def topics_covered(stack: Stack, scope: Scope) -> list[str]:
    """Managed ledgers that a scope covers today; for people, who may have misspelt it."""
    if scope.kind == "topic" and stack.topics.read(scope.name) is not None:
        return [scope.name]
    return [
        ml_name
        for ml_name in sorted(stack.topics.iter_managed_ledgers())
        if _is_topic(ml_name) and scope in scopes_of(ml_name)
    ]


def _is_topic(ml_name: str) -> bool:
    try:
        parse_managed_ledger_name(ml_name)
    except FormatError:
        return False
    return True


def require_topics(stack: Stack, scopes: Sequence[Scope]) -> None:
    """RefusedError for a topic that nobody knows, before anything is written."""
    for scope in scopes:
        if scope.kind == "topic" and not topics_covered(stack, scope):
            raise RefusedError(
                f"{topic_of(scope.name)}: the metadata store has no such topic; check the name "
                f"with `tierkeeper ledger list`"
            )


def still_braked(ml_names: Iterable[str], why: Callable[[str], object]) -> dict[str, str]:
    """Topic by topic what still brakes it, for people who took one of its brakes away."""
    found = {topic_of(ml_name): why(ml_name) for ml_name in ml_names}
    return {topic: str(reason) for topic, reason in found.items() if reason is not None}
