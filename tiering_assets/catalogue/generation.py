"""Which tables are asked: a small object beside them names the folder of the newest ones.

Owns: without it, the first ones are. It is replaced only as it was read, so of two that made new
tables at once one is told that the other was faster. One that cannot be read is an error of every
question, and of no rebuild.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

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

KEY: Final = f"{key_kinds.TABLES}current.json"
FIRST: Final = "1"
_KIND: Final = "tierkeeper/catalogue/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The folder that is asked, since when by the store's clock, and what it may be replaced by.

    `folder` is None where what says so cannot be read; `since` and `etag` where nothing does.
    """

    folder: str | None
    since: datetime | None = None
    etag: str | None = None
    why: str = ""

    @property
    def number(self) -> int:
        """Of the newest tables that are known of."""
        digits = (self.folder or FIRST).partition("-")[0]
        return int(digits) if digits.isdecimal() else 1


def read_generation(stack: Stack) -> Generation:
    """One request."""
    key = stack.book.prefix + KEY
    found = stack.objects.get(key)
    if found is None:
        return Generation(folder=FIRST)
    since, etag = found.head.last_modified, found.head.etag
    try:
        record = decode_record(found.body, key=key)
        why = digest_problem(record)
    except FormatError as error:
        record, why = {}, str(error)
    folder = record.get("folder")
    if why is None and (record.get("schema") != _KIND or not isinstance(folder, str)):
        why = "it names no folder"
    if why is not None:
        return Generation(folder=None, since=since, etag=etag, why=why)
    return Generation(folder=folder, since=since, etag=etag)


def current_folder(stack: Stack) -> str:
    """CatalogueError where nobody can tell."""
    now = read_generation(stack)
    if now.folder is None:
        raise CatalogueError(
            f"{stack.book.prefix}{KEY} cannot be read: {now.why}; nothing else waits for it: "
            "`tierkeeper catalogue rebuild`"
        )
    return now.folder


def move_to(stack: Stack, folder: str, *, before: Generation, made: Mapping[str, Any]) -> bool:
    """Have all ask these tables from now on; False if another was faster."""
    body = encode_record(with_digest({**made, "schema": _KIND, "folder": folder}))
    condition: dict[str, Any] = {"if_absent": True}
    if before.etag is not None:
        condition = {"if_match": before.etag}
    try:
        stack.objects.put(
            stack.book.prefix + KEY, body, content_type="application/json", **condition
        )
    except (ObjectExistsError, ObjectConflictError):
        return read_generation(stack).folder == folder  # our own, whose answer was lost
    return True
