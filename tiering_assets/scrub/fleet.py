"""Every copy that a topic's node names, and when each was last verified. Reads only.

Owns: five listings, however many ledgers there are. Nodes are read before the bucket is listed, so
that whatever a node names is in the listing unless it is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.user_topics import readable_topics, user_topic_names
from tiering_assets.offload_format.keys import parse_key
from tiering_assets.records import keys
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.scrub.plan import Candidate

Pair = tuple[int, UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """`replaced` are healed ledgers, each with the broken attempts that a sound one took over
    from.
    """

    candidates: tuple[Candidate, ...]
    replaced: Mapping[int, tuple[UUID, ...]]
    store_now: datetime


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
    in_bookkeeper = set(stack.ledgers.list_ledger_ids())
    sizes = {
        (key.ledger_id, key.uid): summary.size
        for summary in stack.objects.list_objects()
        if (key := parse_key(summary.key)) is not None and not key.is_index
    }
    certified = _times(stack, "certificates/").get("", {})
    quarantined = _times(stack, "quarantines/").get("", {})
    looked = _times(stack, "scrubs/")
    failed = looked.get("failed", {})
    damaged = _times(stack, keys.DAMAGE).get("", {})
    for pair, at in (*quarantined.items(), *damaged.items()):
        failed[pair] = max(at, failed.get(pair, at))
    broken: dict[int, list[UUID]] = {}
    for (ledger_id, uid), _at in sorted(failed.items(), key=lambda item: item[1]):
        broken.setdefault(ledger_id, []).append(uid)
    candidates = []
    for ml_name, listed in named:
        context = listed.offload
        if context is None or not context.complete:
            continue
        if context.properties.get("bucket", stack.objects.bucket) != stack.objects.bucket:
            continue  # a broker put it where we cannot look
        pair = listed.ledger_id, context.uid
        deep = _latest(looked.get("deep", {}).get(pair), certified.get(pair))
        candidates.append(
            Candidate(
                ledger_id=listed.ledger_id,
                uid=context.uid,
                ml_name=ml_name,
                object_bytes=sizes.get(pair, 0),
                certified=pair in certified,
                in_bookkeeper=listed.ledger_id in in_bookkeeper,
                published_at_ms=context.timestamp_ms,
                shallow_at=_latest(looked.get("shallow", {}).get(pair), deep),
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


def _times(stack: Stack, prefix: str) -> dict[str, dict[Pair, datetime]]:
    """The store's time of each record `<prefix><ledger>/<uuid>[.<what>].json`, by what it says."""
    found: dict[str, dict[Pair, datetime]] = {}
    for key, summary in stack.book.listed(prefix):
        ledger_id, name = key.split("/")[-2:]
        uid, _dot, what = name.removesuffix(".json").partition(".")
        found.setdefault(what, {})[int(ledger_id), UUID(uid)] = summary.last_modified
    return found


def _latest(*times: datetime | None) -> datetime | None:
    return max((at for at in times if at is not None), default=None)
