"""What lies in the bucket by attempt, listed once: objects of the offload format, and uploads.

Owns: that metadata is read after it. What was published in between is then seen by whoever decides,
and never deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.keys import parse_key
from tiering_assets.resources.object_store.store import ObjectSummary, Upload

Pair = tuple[int, UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketListing:
    """By ledger id and attempt. `listed_at` is the store's time after the listing."""

    objects: Mapping[Pair, tuple[ObjectSummary, ...]]
    uploads: Mapping[Pair, tuple[Upload, ...]]
    listed_at: datetime

    def pairs(self) -> set[Pair]:
        return {*self.objects, *self.uploads}

    def keys_of(self, pair: Pair) -> tuple[str, ...]:
        return tuple(summary.key for summary in self.objects.get(pair, ()))

    def bytes_of(self, pair: Pair) -> int:
        return sum(summary.size for summary in self.objects.get(pair, ()))

    def uploads_of(self, pair: Pair) -> tuple[str, ...]:
        return tuple(upload.upload_id for upload in self.uploads.get(pair, ()))


def list_bucket(stack: Stack) -> BucketListing:
    """List all objects and unfinished uploads; those whose keys name no attempt are left out."""
    objects: dict[Pair, list[ObjectSummary]] = {}
    for summary in stack.objects.list_objects():
        key = parse_key(summary.key)
        if key is not None:
            objects.setdefault((key.ledger_id, key.uid), []).append(summary)
    uploads: dict[Pair, list[Upload]] = {}
    for upload in stack.objects.list_uploads():
        key = parse_key(upload.key)
        if key is not None and not key.is_index:
            uploads.setdefault((key.ledger_id, key.uid), []).append(upload)
    return BucketListing(
        objects={pair: tuple(found) for pair, found in objects.items()},
        uploads={pair: tuple(found) for pair, found in uploads.items()},
        listed_at=stack.objects.server_time(),
    )
