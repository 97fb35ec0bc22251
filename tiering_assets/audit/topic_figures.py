"""What an audit saw and found, counted by topic. Pure.

Owns: each ledger, attempt, record of a chain, object and finding counts under one topic, so that
the rows add up. A ledger is of the first topic that a record of its attempts names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

UNKNOWN: Final = "unknown"  # no topic is named so: they have slashes


@dataclass(slots=True, kw_only=True)
class TopicFigures:
    """One row. `records` are those of chains; failures, forget plans and pages are of no topic."""

    topic: str
    ledgers: int = 0
    attempts: int = 0
    records: int = 0
    objects: int = 0
    bytes_read: int = 0
    findings: int = 0


class _Attempt(Protocol):
    @property
    def ledger_id(self) -> int: ...
    @property
    def topic(self) -> str: ...
    @property
    def records(self) -> Iterable[object]: ...
    @property
    def objects(self) -> Iterable[object]: ...
    @property
    def bytes_read(self) -> int: ...


class _Publication(Protocol):
    @property
    def topic(self) -> str: ...


class _Finding(Protocol):
    @property
    def ledger_id(self) -> int | None: ...


def figures_by_topic(
    attempts: Iterable[_Attempt],
    publications: Iterable[_Publication],
    findings: Iterable[_Finding],
    *,
    ledgers: int,
) -> list[TopicFigures]:
    """In order of the topics' names, UNKNOWN last. `ledgers` counts those without attempts, too."""
    attempts = [*attempts]
    topics = topics_of_ledgers(attempts)
    rows: dict[str, TopicFigures] = {}

    def row(topic: str) -> TopicFigures:
        return rows.setdefault(topic, TopicFigures(topic=topic))

    for one in attempts:
        its = row(topics[one.ledger_id])
        its.attempts += 1
        its.records += len([*one.records])
        its.objects += len([*one.objects])
        its.bytes_read += one.bytes_read
    for topic, count in Counter(topics.values()).items():
        row(topic).ledgers = count
    if ledgers > len(topics):
        row(UNKNOWN).ledgers += ledgers - len(topics)
    for published in publications:
        row(published.topic).records += 1
    for finding in findings:
        ledger_id = finding.ledger_id
        row(UNKNOWN if ledger_id is None else topics.get(ledger_id, UNKNOWN)).findings += 1
    return [rows[topic] for topic in sorted(rows, key=lambda name: (name == UNKNOWN, name))]


def topics_of_ledgers(attempts: Iterable[_Attempt]) -> dict[int, str]:
    """The topic of each ledger that has an attempt."""
    topics: dict[int, str] = {}
    for one in attempts:
        if topics.get(one.ledger_id, UNKNOWN) == UNKNOWN:
            topics[one.ledger_id] = one.topic
    return topics
