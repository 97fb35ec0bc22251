"""What a topic's policy selects, asked for one topic alone."""

from __future__ import annotations

from collections.abc import Iterable

from tiering_assets.ground.stack import Stack
from tiering_assets.policy.policies import select_from_node
from tiering_assets.policy.policy import EffectivePolicy
from tiering_assets.policy.selection import Selection


def select_from_topic(
    stack: Stack, ml_name: str, policy: EffectivePolicy, *, now_ms: int, loaded: bool | None
) -> tuple[Selection, ...]:
    """Judge every ledger of a topic by its policy's thresholds, whether or not it may be tiered.

    Reads the topic's node and, for the last ledger of a terminated topic, BookKeeper's. A topic
    that is gone has no ledgers.
    """
    found = stack.topics.read(ml_name)
    if found is None:
        return ()
    topic, node = found
    return select_from_node(stack, topic, node.stat.mtime_ms, policy, now_ms=now_ms, loaded=loaded)


def selected_ids(verdicts: Iterable[Selection]) -> list[int]:
    """Ids to copy, in the order in which a broker would."""
    return [verdict.ledger_id for verdict in verdicts if verdict.selected]
