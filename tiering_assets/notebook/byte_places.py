"""Where the bytes of all ledgers lie: by topic, age and state, and what the bucket itself lists.

Reads only. Owns: sums are the catalogue's, one question each, so a fleet of any size is a small
frame. Bytes on bookies are those of one replica.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Final

import pandas as pd

from tiering_assets.notebook.frames import frame_of
from tiering_assets.notebook.look import ClusterLook
from tiering_assets.offload_format.keys import parse_key
from tiering_assets.resources.sql import sql_time

_GONE: Final = "bookie_copy = 'deleted' or state in ('released', 'expired')"
_STORED: Final = "removed_at is null and state <> 'expired'"
SUMS: Final = f"""count(*) as ledgers,
    sum(case when {_GONE} then 0 else coalesce(bytes, 0) end) as bookie_bytes,
    sum(case when {_STORED} then coalesce(object_bytes, 0) else 0 end) as object_bytes"""
"""SQL for the figures of a row: one replica on bookies, and data objects in the bucket."""
_AGES: Final = (("a day", 1), ("a week", 7), ("30 days", 30), ("a year", 365))
KINDS: Final = ("data objects", "index objects", "records and tables", "other")


def by_state(look: ClusterLook) -> pd.DataFrame:
    return look.sql(f"select state, {SUMS} from ledgers group by state order by state")  # noqa: S608


def by_topic(look: ClusterLook, *, topics: int = 30) -> pd.DataFrame:
    """The topics with the most bytes."""
    return look.sql(
        f"select topic, {SUMS} from ledgers group by topic "  # noqa: S608 - our words and a number
        f"order by bookie_bytes + object_bytes desc, topic limit {topics:d}"
    )


def by_age(look: ClusterLook, *, now: datetime | None = None) -> pd.DataFrame:
    """By how long ago a ledger was closed, the youngest first; `now` is the store's clock."""
    at = now or look.stack.objects.server_time()
    cases = " ".join(
        f"when closed_at > {sql_time(at - timedelta(days=days))} then {number}"
        for number, (_name, days) in enumerate(_AGES)
    )
    older, unknown = len(_AGES), len(_AGES) + 1
    names = [*(f"younger than {name}" for name, _days in _AGES), "older", "not known"]
    found = look.sql(
        f"select case when closed_at is null then {unknown} {cases} else {older} end as age, "  # noqa: S608
        f"{SUMS} from ledgers group by age order by age"
    )
    found["age"] = [names[number] for number in found["age"]]
    return found


def in_bucket(look: ClusterLook) -> pd.DataFrame:
    """What the bucket lists, by kind: one request for a thousand objects."""
    objects: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for one in look.stack.objects.list_objects(""):
        kind = _kind_of(one.key, look.stack.book.prefix)
        objects[kind] += 1
        sizes[kind] += one.size
    rows = [{"kind": name, "objects": objects[name], "bytes": sizes[name]} for name in KINDS]
    return frame_of(rows, ("kind", "objects", "bytes"))


def _kind_of(key: str, prefix: str) -> str:
    data, index, ours, other = KINDS
    if key.startswith(prefix):
        return ours
    parsed = parse_key(key)
    if parsed is None:
        return other
    return index if parsed.is_index else data
