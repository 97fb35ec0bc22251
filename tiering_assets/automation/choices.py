"""What a run takes up when nobody said which ledgers: from topics' nodes, without a survey.

Reads only. Owns: it nominates, and the run decides about each ledger from evidence of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tiering_assets.automation.admission import Releases
from tiering_assets.automation.tick_memory import TickMemory
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.claims import live_claims
from tiering_assets.look.topic.user_topics import Topic, readable_topics, user_topic_names


def sealed_ledgers(stack: Stack, topics: Iterable[str] | None = None) -> list[int]:
    """Ledgers that an offload could take up or finish: closed, on bookies, and read from there.

    None that a run works on. ObjectStoreError at once where the store does not answer: it is no
    error of each ledger.
    """
    claimed = live_claims(stack, stack.objects.server_time())
    in_bookkeeper = set(stack.ledgers.list_ledger_ids())
    return sorted(
        listed.ledger_id
        for topic in _topics(stack, topics)
        for listed in topic.info.ledgers
        if listed.offload is None
        and not listed.is_open
        and listed.ledger_id in in_bookkeeper
        and listed.ledger_id not in claimed
    )


def certified_ledgers(stack: Stack, topics: Iterable[str] | None = None) -> list[int]:
    """Ledgers with a certificate in id order: of these topics those that are still listed."""
    certified = {ledger_id for ledger_id, _uid in stack.book.pairs("certificates/")}
    if topics is None:
        return sorted(certified)
    listed = {one.ledger_id for topic in _topics(stack, topics) for one in topic.info.ledgers}
    return sorted(certified & listed)


def due_by_topic(stack: Stack, topics: Iterable[str] | None = None) -> dict[str, list[int]]:
    """Copies of ours whose lag has passed or whose release was begun, by managed ledger."""
    memory = TickMemory()
    memory.catch_up(stack, keys_max=None)
    releases = Releases(stack, lambda _ledger_id: True, memory)
    found: dict[str, list[int]] = defaultdict(list)
    for topic in _topics(stack, topics):
        for ready in releases.look(topic):
            found[topic.ml_name].append(ready.ledger_id)
    return dict(found)


def published_by_topic(stack: Stack, topics: Iterable[str] | None = None) -> dict[str, list[int]]:
    """Ledgers that brokers read from a bucket and that bookies have, by managed ledger."""
    in_bookkeeper = set(stack.ledgers.list_ledger_ids())
    found: dict[str, list[int]] = defaultdict(list)
    for topic in _topics(stack, topics):
        for listed in topic.info.ledgers:
            complete = listed.offload is not None and listed.offload.complete
            if complete and listed.ledger_id in in_bookkeeper:
                found[topic.ml_name].append(listed.ledger_id)
    return dict(found)


def due_ledgers(stack: Stack, topics: Iterable[str] | None = None) -> list[int]:
    """The same in id order."""
    return sorted(i for ids in due_by_topic(stack, topics).values() for i in ids)


def count_closed(stack: Stack) -> int:
    """All closed ledgers of users' topics: what a share of the fleet is a share of."""
    return sum(
        not listed.is_open for topic in _topics(stack, None) for listed in topic.info.ledgers
    )


def _topics(stack: Stack, names: Iterable[str] | None) -> Iterator[Topic]:
    return readable_topics(stack, user_topic_names(stack) if names is None else sorted(names))
