"""Our JSON records under `tierkeeper/<instance>/`: exact bytes, created only if absent, chained.

A record is one JSON object with a `schema` string. Its bytes are canonical (sorted keys, no spaces,
UTF-8, one newline at the end), so equal records are equal bytes and have one SHA-256, by which the
next record of the attempt's chain names it in `previous`. Reading hashes the bytes as they lie in
the store, canonical or not.

Refused: keys outside the prefix or with `-ledger-` in them (a broker's clean-up would take them for
its own), records above RECORD_BYTES_MAX, and on reading anything that is not such an object.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from tiering_assets.resources.errors import (
    FormatError,
    ObjectConflictError,
    ObjectExistsError,
    ObjectStoreError,
    ObjectTooLargeError,
)
from tiering_assets.resources.object_store.store import ObjectStore, StoredObject

RECORD_BYTES_MAX = 4 * 1024 * 1024
"""A certificate of 10,000 blocks takes 3.7 MiB; with the longest numbers, almost all of this."""

_SEGMENT = re.compile(r"[A-Za-z0-9._=+@-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """One record as it lies in the store. `key` is relative to the instance's prefix."""

    key: str
    record: Mapping[str, Any]
    sha256: str  # of the exact bytes, lower-case hex
    size: int
    etag: str
    last_modified: datetime
    server_date: datetime | None
    version_id: str | None = None


class RecordStore:
    """The records of one BookKeeper instance. All keys are relative to its prefix.

    Every method may raise ObjectStoreError; a key that is refused is a ValueError.
    """

    def __init__(self, store: ObjectStore, instance: str) -> None:
        _check_segments(instance, whole=instance)
        if "/" in instance:
            raise ValueError(f"instance {instance!r} must not contain a slash")
        self._store = store
        self.prefix = f"tierkeeper/{instance}/"

    def create(self, key: str, record: Mapping[str, Any]) -> StoredRecord:
        """Write a record that must not exist yet.

        Raises:
            ObjectExistsError: it does; the message tells its schema, digest and age. After a lost
                answer that may be our own: see create_or_same.
        """
        full, body = self._full(key), encode_record(record)
        try:
            self._put(full, body, if_absent=True)
        except ObjectExistsError as error:
            raise ObjectExistsError(f"{error}: {self._what_is_there(key)}") from error
        return self._written(key, body)

    def create_or_same(self, key: str, record: Mapping[str, Any]) -> StoredRecord:
        """Create, where the very same bytes already there are a success, too (safe to repeat)."""
        try:
            return self.create(key, record)
        except ObjectExistsError:
            found = self.read(key)
            if found is None or found.sha256 != record_sha256(record):
                raise
            return found

    def replace_if_match(self, key: str, record: Mapping[str, Any], *, etag: str) -> StoredRecord:
        """Overwrite the record that was read with `etag`; for claims, the only mutable kind.

        Raises:
            ObjectConflictError: another writer changed or deleted it since.
        """
        body = encode_record(record)
        self._put(self._full(key), body, if_match=etag)
        return self._written(key, body)

    def read(self, key: str) -> StoredRecord | None:
        """The record, or None when there is none: one request.

        Raises:
            FormatError: what lies there is not a record; the message names the key. Of one that is
                too large nothing is downloaded.
        """
        full = self._full(key)
        try:
            stored = self._store.get(full, bytes_max=RECORD_BYTES_MAX)
        except ObjectTooLargeError as error:
            raise FormatError(f"record {error}") from error
        return None if stored is None else _record_from(key, full, stored)

    def list(self, prefix: str = "") -> Iterator[str]:
        """Keys below `prefix`, as the store lists them."""
        if prefix:
            _check_segments(prefix.removesuffix("/"), whole=prefix)
        for summary in self._store.list_objects(self.prefix + prefix):
            yield summary.key.removeprefix(self.prefix)

    def _full(self, key: str) -> str:
        _check_segments(key, whole=key)
        full = self.prefix + key
        if "-ledger-" in full:
            raise ValueError(f"record key {full!r} contains '-ledger-', which brokers claim")
        return full

    def _put(
        self, full: str, body: bytes, *, if_absent: bool = False, if_match: str | None = None
    ) -> None:
        self._store.put(
            full, body, if_absent=if_absent, if_match=if_match, content_type="application/json"
        )

    def _written(self, key: str, body: bytes) -> StoredRecord:
        """Read back what was written: proves it and tells the store's time of it."""
        found = self.read(key)
        if found is None or found.sha256 != hashlib.sha256(body).hexdigest():
            raise ObjectConflictError(
                f"record {self.prefix}{key}: written, but read back "
                f"{'nothing' if found is None else 'other bytes'}: another writer was faster"
            )
        return found

    def _what_is_there(self, key: str) -> str:
        try:
            found = self.read(key)
        except (FormatError, ObjectStoreError) as error:
            return str(error)
        if found is None:
            return "gone since"
        return (
            f"{found.record['schema']} of {found.last_modified.isoformat()}, sha256 {found.sha256}"
        )


def encode_record(record: Mapping[str, Any]) -> bytes:
    """The canonical bytes of a record. ValueError when it is not one."""
    _check_schema(record, ValueError, "record")
    try:
        _check_value(dict(record))
        text = json.dumps(
            record, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        body = (text + "\n").encode("utf-8")
    except (TypeError, RecursionError) as error:
        raise ValueError(f"record {record['schema']} is not JSON: {error}") from error
    if len(body) > RECORD_BYTES_MAX:
        raise ValueError(
            f"record {record['schema']}: {len(body)} bytes, at most {RECORD_BYTES_MAX}"
        )
    return body


def decode_record(body: bytes, *, key: str) -> dict[str, Any]:
    """The JSON object in `body`. Anything else is a FormatError that names the key."""
    if len(body) > RECORD_BYTES_MAX:
        raise FormatError(f"record {key}: {len(body)} bytes, at most {RECORD_BYTES_MAX}")
    try:
        record = json.loads(
            body.decode("utf-8"), object_pairs_hook=_no_twins, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise FormatError(f"record {key}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise FormatError(f"record {key}: expected a JSON object, found {type(record).__name__}")
    _check_schema(record, FormatError, f"record {key}")
    try:
        encode_record(record)  # what we could not write again (1e999, half a surrogate) is damage
    except ValueError as error:
        raise FormatError(f"record {key}: {error}") from error
    return record


def record_sha256(record: Mapping[str, Any]) -> str:
    """The digest a record will have in the store, lower-case hex."""
    return hashlib.sha256(encode_record(record)).hexdigest()


def _record_from(key: str, full: str, stored: StoredObject) -> StoredRecord:
    head = stored.head
    return StoredRecord(
        key=key,
        record=decode_record(stored.body, key=full),
        sha256=hashlib.sha256(stored.body).hexdigest(),
        size=len(stored.body),
        etag=head.etag,
        last_modified=head.last_modified,
        server_date=head.server_date,
        version_id=head.version_id,
    )


def _check_segments(key: str, *, whole: str) -> None:
    for segment in key.split("/"):
        if not _SEGMENT.fullmatch(segment) or segment in (".", ".."):
            raise ValueError(f"record key {whole!r}: segment {segment!r} is not allowed")


def _check_schema(record: Mapping[str, Any], error: type[Exception], what: str) -> None:
    schema = record.get("schema")
    if not isinstance(schema, str) or not schema:
        raise error(f"{what}: field 'schema' must be a non-empty string, found {schema!r:.100}")


def _check_value(value: object) -> None:
    """What json.dumps would change silently is refused: keys that are no strings."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise ValueError(f"record field {name!r} is not a string")  # noqa: TRY004
            _check_value(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_value(inner)


def _no_twins(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
