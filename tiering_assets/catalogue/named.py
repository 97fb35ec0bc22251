"""The records that pages name, read from the bucket, as far as the tables need their content.

One request a certified ledger: an attempt is not read if its certificate is named along with it,
nor an intent beside its release. Of many kinds only the name is of use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tiering_assets.catalogue.facts.read_pages import FoundRecord, ReadPage, written_on
from tiering_assets.catalogue.facts.record_facts import TYPES, folder_of, type_of
from tiering_assets.ground.named_records import is_lasting
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.records.codec import decode_record
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError


def to_read(names: Iterable[str]) -> list[str]:
    """Which of these keys the tables need the content of."""
    there = {*names}

    def told_by_another(key: str) -> bool:
        return (
            key.startswith("attempts/") and f"certificates/{key.removeprefix('attempts/')}" in there
        ) or (key.endswith(".intent.json") and key.replace(".intent.json", ".json") in there)

    return sorted(key for key in there if folder_of(key) in TYPES and not told_by_another(key))


def named_in(pages: Sequence[ReadPage]) -> dict[str, NamedRecord]:
    """What pages say was written, by key; the last one that names a key counts."""
    return {
        one.key: one
        for page in pages
        if page.stored is not None
        for one in written_on(page.stored.record)
    }


def read_record(book: RecordBook, named: NamedRecord) -> FoundRecord:
    """What lies there, if it is what the page names: one request."""
    try:
        stored = book.read_any(named.key)
        if stored is None:
            return FoundRecord(missing=True, why="nothing lies there")
        if is_lasting(named.key) and named.sha256 not in (None, stored.sha256):
            return FoundRecord(why=f"its SHA-256 is {stored.sha256}")
        kind = type_of(named.key, stored.record.get("schema"))
        record = decode_record(kind, stored.record, key=named.key)
    except FormatError as error:
        return FoundRecord(why=str(error))
    return FoundRecord(
        stored=Stored(
            key=named.key,
            record=record,
            sha256=stored.sha256,
            stored_at=stored.last_modified,
            etag=stored.etag,
        )
    )
