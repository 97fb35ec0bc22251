"""A day's event: how many ledgers that were closed on it have reached an asset, and where they are.

Owns: the jobs and a rebuild tell of a day by the same function. A ledger's day is the one in UTC on
which its topic's node says that it was closed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.batches import chosen_keys
from tiering_assets.defs.shared.metadata import bucket_uri
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.partitions import day_key
from tiering_assets.defs.shared.preview_api import Context

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack
    from tiering_assets.resources.metastore.ledger_info import LedgerInfo


@dataclass(frozen=True, slots=True)
class DayCount:
    """Ledgers of one day; `first` and `last` are ids."""

    ledgers: int
    bytes: int
    first: int
    last: int

    def __add__(self, other: DayCount) -> DayCount:
        return DayCount(
            self.ledgers + other.ledgers,
            self.bytes + other.bytes,
            min(self.first, other.first),
            max(self.last, other.last),
        )


def count_by_day(
    ledgers: Iterable[tuple[int, int]], days: Mapping[int, str]
) -> dict[str, DayCount]:
    """Of ledgers with their bytes. One whose day nobody knows is in none."""
    found: dict[str, DayCount] = {}
    for ledger_id, size in ledgers:
        if (day := days.get(ledger_id)) is not None:
            one = DayCount(1, size, ledger_id, ledger_id)
            found[day] = found[day] + one if day in found else one
    return found


def on_chosen_days(
    context: Context,
    cluster: ClusterNames,
    stack: Stack,
    ledger_ids: list[int],
    topics: Sequence[str] | None,
) -> list[int]:
    """Those closed on the days of a person's own backfill; all of them in any other run."""
    from tiering_assets.look.topic.user_topics import readable_topics, user_topic_names

    keys = set(chosen_keys(context)) if cluster.by_day else set()
    if not keys:
        return ledger_ids
    names = user_topic_names(stack) if topics is None else sorted(topics)
    chosen = {
        listed.ledger_id
        for topic in readable_topics(stack, names)
        for listed in topic.info.ledgers
        if _day(listed) in keys
    }
    return [ledger_id for ledger_id in ledger_ids if ledger_id in chosen]


def days_of(stack: Stack, ml_names: Mapping[int, str]) -> dict[int, str]:
    """The day of each of these ledgers, by their topics' nodes: one read of each."""
    from tiering_assets.look.topic.user_topics import readable_topics

    wanted: dict[str, set[int]] = defaultdict(set)
    for ledger_id, name in ml_names.items():
        wanted[name].add(ledger_id)
    found: dict[int, str] = {}
    for topic in readable_topics(stack, sorted(wanted)):
        for listed in topic.info.ledgers:
            day = _day(listed)
            if listed.ledger_id in wanted[topic.ml_name] and day is not None:
                found[listed.ledger_id] = day
    return found


def _day(listed: LedgerInfo) -> str | None:
    ms = listed.closed_at_ms
    return None if ms is None else day_key(datetime.fromtimestamp(ms / 1000, UTC))


def day_event(
    stack: Stack, asset: dg.AssetKey, day: str, count: DayCount, *, whole: bool
) -> dg.AssetMaterialization:
    """`whole`: all ledgers of that day were counted, and else those of one run."""
    return dg.AssetMaterialization(
        asset_key=asset,
        partition=day,
        description=f"{count.ledgers} ledgers closed on {day}" + ("" if whole else ", by one run"),
        metadata={
            "ledgers": dg.MetadataValue.int(count.ledgers),
            "payload_bytes": dg.MetadataValue.int(count.bytes),
            "first_ledger": dg.MetadataValue.text(str(count.first)),
            "last_ledger": dg.MetadataValue.text(str(count.last)),
            "whole_day": dg.MetadataValue.bool(whole),
            "catalogue": dg.MetadataValue.path(_catalogue(stack)),
            "which": dg.MetadataValue.md(_question(day)),
        },
    )


def _catalogue(stack: Stack) -> str:
    from tiering_assets.records import key_kinds

    root = stack.settings.catalogue.root
    return root or bucket_uri(stack.settings.store.bucket, stack.book.prefix + key_kinds.TABLES)


def _question(day: str) -> str:
    after = date.fromisoformat(day) + timedelta(days=1)
    closed = f"closed_at >= timestamp '{day}' and closed_at < timestamp '{after}'"
    asked = f"select ledger_id, state from ledgers where {closed}"  # noqa: S608 - a day of ours
    return f'`tierkeeper catalogue sql "{asked}"`'
