"""The topics of users and their nodes, many requests on their way at once. Reads only.

Owns: which topics are looked at at all, and that one whose node cannot be read is told by name and
hides no other. Where the overlapping reads fail, the topics they were for are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from tiering_assets.ground.stack import Stack
from tiering_assets.resources.errors import FormatError, TierkeeperError
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.store import Node
from tiering_assets.resources.metastore.topic_names import never_touched
from tiering_assets.resources.metastore.topics import decode_topic

_AHEAD = 256  # nodes that are read before the first of them is given out


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's node as it was just read."""

    ml_name: str
    info: ManagedLedger
    node: Node


def user_topic_names(stack: Stack) -> list[str]:
    """Managed ledgers that may be users', in name order; their nodes may still say otherwise."""
    return sorted(n for n in stack.topics.iter_managed_ledgers() if never_touched(n, {}) is None)


def read_topics(
    stack: Stack, names: Iterable[str]
) -> Iterator[tuple[str, Topic | TierkeeperError | None]]:
    """Each topic in the order of the names; None of what is gone or not ours to touch."""
    waiting = iter(names)
    while ahead := list(islice(waiting, _AHEAD)):
        try:
            nodes = dict(stack.topics.read_many(ahead))
        except TierkeeperError:
            yield from ((name, _read_alone(stack, name)) for name in ahead)
        else:
            yield from ((name, _decode(name, nodes[name])) for name in ahead)


def readable_topics(stack: Stack, names: Iterable[str]) -> Iterator[Topic]:
    """The same without those whose node is there and says nothing that can be read: they are told.

    Raises the error of a topic that could not be asked for: an outage is nobody's own.
    """
    for name, found in read_topics(stack, names):
        if isinstance(found, FormatError):
            stack.tell(f"{name} is left out: {found}", topic=name)
        elif isinstance(found, TierkeeperError):
            raise found
        elif found is not None:
            yield found


def _read_alone(stack: Stack, name: str) -> Topic | TierkeeperError | None:
    try:
        found = stack.topics.read(name)
    except TierkeeperError as error:
        return error
    return None if found is None else _ours(Topic(name, *found))


def _decode(name: str, node: Node | None) -> Topic | TierkeeperError | None:
    if node is None:
        return None
    try:
        info = decode_topic(node)
    except TierkeeperError as error:
        return error
    return _ours(Topic(name, info, node))


def _ours(topic: Topic) -> Topic | None:
    return None if never_touched(topic.ml_name, topic.info.properties) is not None else topic
