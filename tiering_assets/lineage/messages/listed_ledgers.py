"""Ledgers as their topics list them now: which have a copy that brokers read, and which have none.

A read of each topic's node; of one topic the names of its namespace are listed, of a pattern all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.asked import is_like, is_of, is_pattern, parse_topic
from tiering_assets.look.topic.user_topics import read_topics, user_topic_names
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.offload_context import OffloadContext


class TopicLedger(NamedTuple):
    """A ledger of a topic by its managed-ledger name; it is closed, and has entries."""

    ml_name: str
    info: LedgerInfo

    @property
    def copy(self) -> OffloadContext | None:
        """The attempt that brokers read, if there is one."""
        return self.info.offload if self.info.offload and self.info.offload.complete else None


def listed_ledgers(stack: Stack, topic: str) -> Iterator[TopicLedger]:
    """Of a topic and its partitions, or of all like a pattern; in the order of their topics.

    Any error of a topic's node is raised: nobody may take a part for the whole.
    """
    for _name, found in read_topics(stack, _names(stack, topic)):
        if isinstance(found, TierkeeperError):
            raise found
        if found is not None:
            for info in found.info.ledgers:
                if not info.is_open and info.entries:
                    yield TopicLedger(found.ml_name, info)


def _names(stack: Stack, topic: str) -> list[str]:
    if is_pattern(topic):
        return [name for name in user_topic_names(stack) if is_like(name, topic)]
    wanted = parse_topic(topic)
    return sorted(n for n in stack.topics.in_namespace(wanted.full_namespace) if is_of(n, wanted))
