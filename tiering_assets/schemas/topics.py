"""Schemas of many topics archived, one topic after the other.

Owns: partitions of a topic are one. What fails for one topic is told and hides no other; only a
metadata store or a bucket that cannot be asked ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.archived_schemas import whole_topic
from tiering_assets.look.topic.user_topics import user_topic_names
from tiering_assets.resources.errors import MetadataError, ObjectStoreError, TierkeeperError
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name
from tiering_assets.resources.pulsar.schema_storage import schemas_path
from tiering_assets.schemas.archive import ArchivedTopic, archive_schemas


@dataclass(frozen=True, slots=True)
class NotArchived:
    """A topic of whose schemas nothing could be learned."""

    ml_name: str
    error: TierkeeperError


def whole_topics(ml_names: Iterable[str]) -> dict[str, list[str]]:
    """Managed ledgers by the whole topic whose schemas they share, in their order."""
    found: dict[str, list[str]] = {}
    for name in ml_names:
        found.setdefault(whole_topic(name), []).append(name)
    return found


def topics_with_schemas(stack: Stack) -> dict[str, list[str]]:
    """Every user topic that has schemas, with its managed ledgers. One request a topic."""
    topics = whole_topics(user_topic_names(stack))
    paths = (schemas_path(parse_managed_ledger_name(name)) for name in topics)
    stats = stack.metadata.stat_many(paths)
    return {
        name: partitions
        for (name, partitions), stat in zip(topics.items(), stats, strict=True)
        if stat is not None
    }


def archive_topics(
    stack: Stack, topics: Mapping[str, Sequence[str]]
) -> Iterator[ArchivedTopic | NotArchived]:
    """Each topic in the order given.

    Raises:
        MetadataError, ObjectStoreError: one of them cannot be asked: the next would fail alike.
    """
    for name, partitions in topics.items():
        try:
            yield archive_schemas(stack, name, partitions)
        except (MetadataError, ObjectStoreError):
            raise
        except TierkeeperError as error:
            yield NotArchived(name, error)


def errors_of(found: ArchivedTopic | NotArchived) -> list[TierkeeperError]:
    """What was not archived, and why."""
    if isinstance(found, NotArchived):
        return [found.error]
    return [error for _version, error in found.failed]


def archive_published(
    stack: Stack,
    published: Iterable[tuple[int, str]],
    *,
    has_time: Callable[[], bool],
    tell: Callable[[str], None],
) -> int | None:
    """Archive the schemas of topics that were published, behind their publication.

    `published` are pages of the day book with the managed ledger that was published, in order. The
    first of them is done whatever the time. The answer is the page where to go on, None behind all.
    Never an error: a topic whose schemas fail is told, and its next publication tries again, as
    `schema archive` does.
    """
    done: set[str] = set()
    for page, ml_name in published:
        topics = whole_topics([ml_name])
        if done.issuperset(topics):
            continue
        if done and not has_time():
            return page
        done.update(topics)
        try:
            for one in archive_topics(stack, topics):
                for error in errors_of(one):
                    tell(f"schemas of {one.ml_name} are not archived: {error}")
        except TierkeeperError as error:
            tell(f"schemas of {ml_name} are not archived: {error}")
    return None
