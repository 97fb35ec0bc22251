"""Lists of topics and where their ledgers are, by the catalogue's rows, else by their nodes.

Reads only; no broker is asked about a topic. Grows with the topics that are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from tiering_assets.catalogue.nominate import ProvenTables
from tiering_assets.catalogue.view import answer
from tiering_assets.explain.topic_counts import Amount, TopicCounts
from tiering_assets.explain.topic_list import ListedTopic, list_topics, policy_words
from tiering_assets.fleet import questions
from tiering_assets.fleet.beside import asked_about
from tiering_assets.fleet.rows import Row, full_name
from tiering_assets.fleet.source import FRESH, tables_to_ask, told_if_many
from tiering_assets.ground.stack import Stack
from tiering_assets.resources.tables import each_row


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicList:
    """Topics in name order. `cut` is whether there are more; `source` None: nodes were read."""

    topics: Sequence[ListedTopic]
    cut: bool
    source: ProvenTables | None


def list_all_topics(
    stack: Stack,
    ml_names: Sequence[str] | None = None,
    *,
    most: int | None = None,
    fresh: timedelta = FRESH,
) -> TopicList:
    """These topics, all user topics without names; at most so many."""
    source = tables_to_ask(stack, ml_names, fresh=fresh)
    wanted = None if most is None else most + 1
    if source is None:
        found = told_if_many(stack, list_topics(stack, ml_names), fresh=fresh, ledgers=_listed)
    else:
        found = _by_rows(stack, source, ml_names, wanted)
    topics = [*islice(found, wanted)]
    cut = most is not None and len(topics) > most
    return TopicList(topics=topics[:most], cut=cut, source=source)


def _listed(topic: ListedTopic) -> int:
    return 0 if topic.counts is None else topic.counts.every.ledgers


def _by_rows(
    stack: Stack, source: ProvenTables, ml_names: Sequence[str] | None, most: int | None
) -> Iterator[ListedTopic]:
    asked = asked_about(stack, source.tables, ml_names)
    rows = answer(source.tables, questions.topic_counts(asked, most=most))
    with policy_words(stack) as policy_of:
        for row in each_row(rows):
            topic, unread = full_name(row["topic"]), row["why"]
            yield ListedTopic(
                topic=topic,
                ml_name=row["topic"],
                policy="unknown" if unread else policy_of(topic),
                counts=None if unread else _counts(row),
                error=unread,
            )


def _counts(row: Row) -> TopicCounts:
    def amount(name: str) -> Amount:
        return Amount(ledgers=row[name] or 0, bytes=row[f"{name}_bytes"] or 0)

    return TopicCounts(
        every=amount("every"),
        sealed=amount("sealed"),
        published_by_us=amount("ours"),
        published_by_broker=amount("theirs"),
        bookies_only=amount("bookies"),
    )
