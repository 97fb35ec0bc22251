"""The mark in the bucket, beside the catalogue's tables: read, and replaced only as it was read.

Owns: it is neither a record nor a table. Without it events begin with what is posted from then on;
one that cannot be read stops the events alone, and its error says what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tiering_assets.catalogue.openlineage.telling_mark import TellingMark
from tiering_assets.ground.stack import Stack
from tiering_assets.records import key_kinds
from tiering_assets.records.signature import digest_problem, with_digest
from tiering_assets.resources.errors import (
    CatalogueError,
    FormatError,
    ObjectConflictError,
    ObjectExistsError,
)
from tiering_assets.resources.object_store.records import decode_record, encode_record

KEY: Final = f"{key_kinds.TABLES}openlineage.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMark:
    """As it lies there; `written_at` is by the store's clock."""

    mark: TellingMark
    etag: str
    written_at: datetime


def read_mark(stack: Stack) -> FoundMark | None:
    """One request. CatalogueError for one that cannot be read."""
    key = stack.book.prefix + KEY
    found = stack.objects.get(key)
    if found is None:
        return None
    try:
        record = decode_record(found.body, key=key)
        why = digest_problem(record)
        if why is None:
            return FoundMark(
                mark=TellingMark.from_json(record),
                etag=found.head.etag,
                written_at=found.head.last_modified,
            )
    except FormatError as error:
        why = str(error)
    raise CatalogueError(
        f"{key} cannot be read: {why}; OpenLineage events wait for it, and nothing else does: "
        f"delete it, and they begin anew"
    )


def write_mark(stack: Stack, mark: TellingMark, *, before: str | None) -> str | None:
    """The new etag; None where another was faster. `before` is the etag that was read."""
    body = encode_record(with_digest(mark.as_json()))
    try:
        written = stack.objects.put(
            stack.book.prefix + KEY,
            body,
            content_type="application/json",
            if_absent=before is None,
            if_match=before,
        )
    except (ObjectExistsError, ObjectConflictError):
        now = stack.objects.get(stack.book.prefix + KEY)
        # Our own, whose answer was lost: a lease names its sender, so nobody else's is the same.
        return now.head.etag if now is not None and now.body == body else None
    return written.etag
