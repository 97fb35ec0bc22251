"""Every offload attempt that a topic's node names, complete or not, whoever made it. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from resources.metastore.ledger_info import decode_managed_ledger
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
    for ml_name, node in stack.topics.read_all():
        if node is None:
            continue
        for listed in decode_managed_ledger(node.data).ledgers:
            if (context := listed.offload) is not None:
                named = Named(ml_name, node.stat.version, context.complete)
                found[listed.ledger_id, context.uid] = named
    return found
