"""Every offload attempt that a topic's node names, complete or not, whoever made it. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.bucket_listing import Pair
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topics import decode_topic


@dataclass(frozen=True, slots=True)
class Named:
    """Where an attempt is named: the topic, the version of its node, and whether as complete."""

    ml_name: str
    node_version: int
    complete: bool


def read_contexts(stack: Stack) -> Mapping[Pair, Named]:
    """By ledger id and attempt, over all topics; to be called after the bucket was listed.

    A topic whose node cannot be read is told and left out: who deletes reads that topic's node
    again.
    """
    found: dict[Pair, Named] = {}
    for ml_name, node in stack.topics.read_all():
        if node is None:
            continue
        try:
            listed_there = decode_topic(node).ledgers
        except FormatError as error:
            stack.tell(f"{ml_name} is left out: {error}", topic=ml_name)
            continue
        for listed in listed_there:
            if (context := listed.offload) is not None:
                named = Named(ml_name, node.stat.version, context.complete)
                found[listed.ledger_id, context.uid] = named
    return found
