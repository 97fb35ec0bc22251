"""Every offload attempt that a topic's node names, complete or not, whoever made it. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tiering_assets.steps.bucket_listing import Pair
from tiering_assets.steps.stack import Stack


@dataclass(frozen=True, slots=True)
class Named:
    """Where an attempt is named: the topic, the version of its node, and whether as complete."""

    ml_name: str
    node_version: int
    complete: bool


def read_contexts(stack: Stack) -> Mapping[Pair, Named]:
    """By ledger id and attempt, over all topics; to be called after the bucket was listed."""
    found: dict[Pair, Named] = {}
    for ml_name in stack.topics.iter_managed_ledgers():
        topic = stack.topics.read(ml_name)
        if topic is None:
            continue
        info, node = topic
        for listed in info.ledgers:
            if (context := listed.offload) is not None:
                named = Named(ml_name, node.stat.version, context.complete)
                found[listed.ledger_id, context.uid] = named
    return found
