"""Copies that topics' nodes name, and when each was last verified. Reads only.

Owns: all of them by five listings, however many ledgers there are; those that somebody nominated by
five requests for each. Nodes are read before the bucket is, so that whatever a node names is seen
there unless it is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.user_topics import readable_topics, user_topic_names
from tiering_assets.offload_format.keys import data_key, parse_key
from tiering_assets.records import keys
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.offload_context import OffloadContext
from tiering_assets.resources.object_store.store import ObjectSummary
from tiering_assets.scrub.plan import Candidate

Pair = tuple[int, UUID]
Nominated = Mapping[str, Collection[int]]
"""Ledgers by managed ledger."""
Named = Sequence[tuple[str, LedgerInfo]]
Times = dict[str, dict[Pair, datetime]]
_FOLDERS: Final = ("certificates/", "quarantines/", "scrubs/", keys.DAMAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """`replaced` are healed ledgers, each with the broken attempts that a sound one took over
    from.
    """

    candidates: tuple[Candidate, ...]
    replaced: Mapping[int, tuple[UUID, ...]]
    store_now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beneath:
    """What lies in the bucket and in BookKeeper. `times` are of records, by folder."""

    in_bookkeeper: Collection[int]
    sizes: Mapping[Pair, int]
    times: Mapping[str, Times]


def find_fleet(
    stack: Stack,
    ml_names: Iterable[str] | None = None,
    only: Collection[int] | None = None,
) -> Fleet:
    """Copies of the given managed ledgers, of all user topics without; of `only` these ledgers."""
    names = user_topic_names(stack) if ml_names is None else sorted(ml_names)
    named: list[tuple[str, LedgerInfo]] = [
        (topic.ml_name, listed)
        for topic in readable_topics(stack, names)
        for listed in topic.info.ledgers
        if only is None or listed.ledger_id in only
    ]
    seen = _Beneath(
        in_bookkeeper=set(stack.ledgers.list_ledger_ids()),
        sizes={
            (key.ledger_id, key.uid): summary.size
            for summary in stack.objects.list_objects()
            if (key := parse_key(summary.key)) is not None and not key.is_index
        },
        times={folder: _times(stack.book.listed(folder)) for folder in _FOLDERS},
    )
    return _judged(stack, named, seen)


def find_nominated(stack: Stack, nominated: Nominated) -> Fleet:
    """The same of these ledgers alone, each by requests of its own; a topic's node is read once.

    One that its topic does not list, or whose copy is not complete, is left out.
    """
    named = [
        (topic.ml_name, listed)
        for topic in readable_topics(stack, sorted(nominated))
        for listed in topic.info.ledgers
        if listed.ledger_id in nominated[topic.ml_name]
    ]
    pairs = [(one.ledger_id, one.offload.uid) for _ml_name, one in named if one.offload is not None]
    ledger_ids = [ledger_id for ledger_id, _uid in pairs]

    def records(below: str) -> list[tuple[str, ObjectSummary]]:
        return [*stack.book.listed(below)]

    heads = stack.in_parallel(lambda pair: stack.objects.head(data_key(pair[1], pair[0])), pairs)
    seen = _Beneath(
        in_bookkeeper=stack.ledgers.existing(ledger_ids),
        sizes={
            pair: head.size for pair, head in zip(pairs, heads, strict=True) if head is not None
        },
        times={
            folder: _times(
                chain.from_iterable(
                    stack.in_parallel(records, [f"{folder}{i}/" for i in ledger_ids])
                )
            )
            for folder in _FOLDERS
        },
    )
    return _judged(stack, named, seen)


def _judged(stack: Stack, named: Named, seen: _Beneath) -> Fleet:
    certified, quarantined, looked, damaged = (seen.times[folder] for folder in _FOLDERS)
    deeply, shallowly = looked.get("deep", {}), looked.get("shallow", {})
    failed = {**looked.get("failed", {})}
    for pair, at in (*quarantined.get("", {}).items(), *damaged.get("", {}).items()):
        failed[pair] = max(at, failed.get(pair, at))
    broken: dict[int, list[UUID]] = {}
    for (ledger_id, uid), _at in sorted(failed.items(), key=lambda item: item[1]):
        broken.setdefault(ledger_id, []).append(uid)
    candidates = []
    for ml_name, listed in named:
        context = listed.offload
        if context is None or not _is_here(stack, context):
            continue
        pair = listed.ledger_id, context.uid
        certified_at = certified.get("", {}).get(pair)
        deep = _latest(deeply.get(pair), certified_at)
        candidates.append(
            Candidate(
                ledger_id=listed.ledger_id,
                uid=context.uid,
                ml_name=ml_name,
                object_bytes=seen.sizes.get(pair, 0),
                certified=certified_at is not None,
                in_bookkeeper=listed.ledger_id in seen.in_bookkeeper,
                published_at_ms=context.timestamp_ms,
                shallow_at=_latest(shallowly.get(pair), deep),
                deep_at=deep,
                failed_at=failed.get(pair),
            )
        )
    return Fleet(
        candidates=tuple(candidates),
        replaced={
            c.ledger_id: others
            for c in candidates
            if c.certified
            and not c.failing
            and (others := tuple(u for u in broken.get(c.ledger_id, ()) if u != c.uid))
        },
        store_now=stack.objects.server_time(),
    )


def _is_here(stack: Stack, context: OffloadContext) -> bool:
    """Brokers read a copy in this bucket. One elsewhere nobody can look at from here."""
    bucket: str = context.properties.get("bucket", stack.objects.bucket)
    return context.complete and bucket == stack.objects.bucket


def _times(listed: Iterable[tuple[str, ObjectSummary]]) -> Times:
    """The store's time of each record `<folder><ledger>/<uuid>[.<what>].json`, by what it says."""
    found: Times = {}
    for key, summary in listed:
        ledger_id, name = key.split("/")[-2:]
        uid, _dot, what = name.removesuffix(".json").partition(".")
        found.setdefault(what, {})[int(ledger_id), UUID(uid)] = summary.last_modified
    return found


def _latest(*times: datetime | None) -> datetime | None:
    return max((at for at in times if at is not None), default=None)
