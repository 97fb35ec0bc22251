"""What a seed reads a hundred times is decoded once: caches that last for one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records.stored import Stored
from tiering_assets.resources.object_store import records
from tiering_assets.resources.object_store.records import StoredRecord


@contextmanager
def remembering() -> Iterator[None]:
    """Within it, the same bytes are decoded once."""
    with (
        patch.object(records, "decode_record", _remembered(records.decode_record)),
        patch.object(RecordBook, "_typed", staticmethod(_remembered_types(RecordBook._typed))),
    ):
        yield


def _remembered(decode: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    known: dict[bytes, dict[str, Any]] = {}

    def decode_record(body: bytes, *, key: str) -> dict[str, Any]:
        found = known.get(body)
        if found is None:
            found = known[body] = decode(body, key=key)
        return found

    return decode_record


def _remembered_types(typed: Callable[..., Stored[Any]]) -> Callable[..., Stored[Any]]:
    """What a sound record says is decided by its bytes alone."""
    known: dict[tuple[type[Any], str], Any] = {}

    def remembered(record_type: type[Any], stored: StoredRecord) -> Stored[Any]:
        name = (record_type, stored.sha256)
        if name not in known:
            known[name] = typed(record_type, stored).record
        return Stored(
            key=stored.key,
            record=known[name],
            sha256=stored.sha256,
            stored_at=stored.last_modified,
            etag=stored.etag,
            body=stored.record,
        )

    return remembered
