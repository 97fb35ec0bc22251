"""Tables of before a rebuild, and those of one that was killed: deleted when no reader has them.

Owns: the tables that are asked never go, nor any that were written, or asked, in the last 7 days,
by the store's clock. Tables where `catalogue.root` says are left to whoever keeps that place.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from tiering_assets.catalogue.generation import Generation, read_generation
from tiering_assets.ground.stack import Stack
from tiering_assets.records.key_kinds import TABLES

KEPT: Final = timedelta(days=7)


def folders_to_drop(
    newest: Mapping[str, datetime], asked: Generation, *, now: datetime
) -> list[str]:
    """Which folders may go; `newest` says when the last object of each was written."""
    if asked.folder is None or asked.folder not in newest:
        return []
    if asked.since is not None and now - asked.since <= KEPT:
        return []
    return sorted(name for name, at in newest.items() if name != asked.folder and now - at > KEPT)


def drop_old_tables(stack: Stack, *, now: datetime) -> int:
    """How many objects of old tables were deleted. May be killed and repeated."""
    prefix = stack.book.prefix + TABLES
    newest: dict[str, datetime] = {}
    for one in stack.objects.list_objects(prefix):
        name, lies_in_folder, _ = one.key.removeprefix(prefix).partition("/")
        if not lies_in_folder:  # which tables are asked, and how far events came
            continue
        newest[name] = max(newest.get(name, one.last_modified), one.last_modified)
    gone = 0
    for name in folders_to_drop(newest, read_generation(stack), now=now):
        keys = [one.key for one in stack.objects.list_objects(f"{prefix}{name}/")]
        stack.in_parallel(stack.objects.delete, keys)
        gone += len(keys)
    return gone
