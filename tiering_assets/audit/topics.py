"""Which ledgers of a bucket's records are of a topic, from the records alone.

Owns: each attempt is read, as no key names a topic: as many requests as an audit of everything
begins with. A ledger whose attempt cannot be read may be of any topic, so it is among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tiering_assets.audit.audit import find_instance
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import (
    parse_managed_ledger_name,
    parse_topic_name,
    with_scheme,
)
from tiering_assets.resources.object_store.store import ObjectStore


def ledgers_of(
    objects: ObjectStore,
    topics: Sequence[str],
    namespaces: Sequence[str],
    *,
    instance: str = "",
    narrate: Callable[[str], None] = lambda _line: None,
) -> list[int]:
    """Ids in order; partitions of a topic are of it.

    Raises:
        FormatError: a name is no topic's.
        RefusedError: no instance was named, and the bucket has none or several.
    """
    wanted = {parse_topic_name(with_scheme(topic)).managed_ledger_name for topic in topics}
    book = RecordBook(objects, instance or find_instance(objects))
    found: set[int] = set()

    def unread(key: str, error: FormatError) -> None:
        narrate(f"{key}: may be of any topic, so it is looked at: {error}")
        found.add(keys.pair_of(key)[0])

    for one in book.iter_readable(Attempt, "attempts/", unread):
        ml_name = one.record.ml_name
        if keys.namespace_of(ml_name) in namespaces or wanted & {ml_name, _whole(ml_name)}:
            found.add(one.record.ledger.ledger_id)
    return sorted(found)


def _whole(ml_name: str) -> str:
    """The topic that a partition is of; another managed ledger is its own."""
    try:
        return parse_managed_ledger_name(ml_name).unpartitioned.managed_ledger_name
    except FormatError:
        return ml_name
