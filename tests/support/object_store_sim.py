"""An in-memory object store with S3's rules, a clock of its own, and faults on demand.

It passes tests/support/object_store_contract.py, as the real store does. ETags are MD5 (with "-n"
for multipart), conditions are atomic under one lock, versions are kept where asked for.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from tiering_assets.resources.errors import (
    ObjectArchivedError,
    ObjectConflictError,
    ObjectExistsError,
    ObjectNotFoundError,
    ObjectStoreError,
    ObjectTooLargeError,
)
from tiering_assets.resources.object_store.store import (
    BucketFacts,
    Buffer,
    ObjectHead,
    ObjectSummary,
    ObjectVersion,
    Part,
    StoredObject,
    Upload,
    WrittenObject,
)

T = TypeVar("T")
PART_BYTES_MIN = 5 * 1024 * 1024
ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})  # a GET answers only after a restore


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    body: bytes
    etag: str
    last_modified: datetime
    version_id: str | None
    metadata: Mapping[str, str]
    sha256: bytes | None
    deleted: bool = False
    storage_class: str | None = None
    expiration: str | None = None


@dataclass(slots=True, kw_only=True)
class _Upload:
    key: str
    metadata: dict[str, str]
    initiated: datetime
    parts: dict[int, tuple[Part, bytes]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Fault:
    """What goes wrong at the nth call of `method` from now on (1 = the next), `times` in a row.

    `error` is raised instead of the call, or after it when `after` (applied, answer lost);
    `alter` changes the bytes a get_range returns, below its own length check when `short`.
    """

    method: str
    nth: int = 1
    times: int = 1
    error: Exception | None = None
    after: bool = False
    alter: Callable[[bytes], bytes] | None = None
    seen: int = 0

    def strikes(self) -> bool:
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


class SimulatedObjectStore:
    """One bucket in memory. `list_checksums=False` imitates stores whose ListParts has none."""

    def __init__(
        self,
        bucket: str = "sim-bucket",
        *,
        versioning: bool = False,
        list_checksums: bool = True,
        part_bytes_min: int = PART_BYTES_MIN,
        now: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ) -> None:
        self._bucket = bucket
        self._versioning = versioning
        self._list_checksums = list_checksums
        self._part_bytes_min = part_bytes_min
        self.now = now
        self.faults: list[Fault] = []
        self.calls: list[tuple[str, str]] = []
        self._objects: dict[str, list[_Version]] = {}
        self._uploads: dict[str, _Upload] = {}
        self._count = 0
        self._lock = threading.RLock()
        self.refuses_version_deletes = False  # as a lock on its versions does

    @property
    def bucket(self) -> str:
        return self._bucket

    def advance(self, seconds: float) -> None:
        """Move the store's clock; negative steps it back."""
        self.now += timedelta(seconds=seconds)

    def fail(
        self,
        method: str,
        *,
        nth: int = 1,
        times: int = 1,
        error: Exception | None = None,
        after: bool = False,
    ) -> None:
        """Let a call fail; with `after` it is applied first and only its answer is lost."""
        lost = ObjectStoreError(f"{method}: injected fault")
        self.faults.append(
            Fault(method=method, nth=nth, times=times, error=error or lost, after=after)
        )

    def alter_range(self, alter: Callable[[bytes], bytes], *, nth: int = 1, times: int = 1) -> None:
        """Let a get_range see other bytes: a shorter body is noticed, a flipped bit is not."""
        self.faults.append(Fault(method="get_range", nth=nth, times=times, alter=alter))

    def overwrite(self, key: str, body: bytes) -> None:
        """Damage an object behind everybody's back: metadata and times stay."""
        with self._lock:
            old = self._current(key)
            if old is None:
                raise KeyError(key)
            self._objects[key][-1] = _Version(
                body=body,
                etag=_md5(body),
                last_modified=old.last_modified,
                version_id=old.version_id,
                metadata=old.metadata,
                sha256=None,
            )

    def peek(self, key: str) -> tuple[bytes, Mapping[str, str]] | None:
        """Bytes and user metadata of an object, seen from within the store."""
        found = self._current(key)
        return None if found is None else (found.body, found.metadata)

    def peek_head(self, key: str) -> ObjectHead | None:
        return self._head(key, None)

    def rot(self, key: str, body: bytes) -> None:
        """Other bytes under the same ETag and times: a disk that lies."""
        self._objects[key][-1] = replace(self._objects[key][-1], body=body)

    def served(self, key: str) -> tuple[bytes, Mapping[str, str]] | None:
        """As `peek`, but of an object in an archive nobody gets a byte."""
        found = self._current(key)
        if found is None or found.storage_class in ARCHIVES:
            return None
        return found.body, found.metadata

    def move(self, key: str, storage_class: str | None) -> None:
        """What a lifecycle rule does: another class; bytes, ETag and times stay."""
        self._objects[key][-1] = replace(self._objects[key][-1], storage_class=storage_class)

    def expire(self, key: str, expiration: str | None) -> None:
        """Let a lifecycle rule announce that it will delete the object."""
        self._objects[key][-1] = replace(self._objects[key][-1], expiration=expiration)

    def take_markers(self, key: str) -> bool:
        """Remove the delete markers that hide a version of a key; False where none does."""
        versions = self._objects.get(key, [])
        kept = [v for v in versions if not v.deleted]
        hidden = bool(kept) and versions[-1].deleted
        if hidden:
            versions[:] = kept
        return hidden

    def peek_version(self, key: str, version_id: str | None) -> bytes | None:
        """A version's bytes, hidden by a marker or not."""
        found = [v for v in self._objects.get(key, []) if v.version_id == version_id]
        return found[0].body if found and not found[0].deleted else None

    def peek_hidden(self) -> list[str]:
        """Keys that a delete marker hides."""
        return [key for key, found in self._objects.items() if found and found[-1].deleted]

    def keep_versions(self) -> None:
        self._versioning = True

    def peek_keys(self) -> list[str]:
        return [key for key in self._objects if self._current(key) is not None]

    def peek_uploads(self) -> list[tuple[str, str]]:
        """Key and id of every unfinished upload."""
        return [(upload.key, upload_id) for upload_id, upload in self._uploads.items()]

    # ----- the protocol

    def put(
        self,
        key: str,
        body: Buffer,
        *,
        metadata: Mapping[str, str] | None = None,
        if_absent: bool = False,
        if_match: str | None = None,
        content_type: str = "application/octet-stream",
        sha256: bytes | None = None,
    ) -> WrittenObject:
        data = bytes(body)

        def apply() -> WrittenObject:
            self._check_conditions(key, if_absent=if_absent, if_match=if_match)
            if sha256 is not None and hashlib.sha256(data).digest() != sha256:
                raise ObjectStoreError(f"PUT of {key!r}: the body's SHA-256 is another")
            return self._store(
                key,
                data,
                etag=_md5(data),
                metadata=_lowered(metadata or {}),
                sha256=hashlib.sha256(data).digest(),
            )

        return self._call("put", key, apply)

    def head(self, key: str, *, version_id: str | None = None) -> ObjectHead | None:
        return self._call("head", key, lambda: self._head(key, version_id))

    def get(
        self, key: str, *, version_id: str | None = None, bytes_max: int | None = None
    ) -> StoredObject | None:
        def apply() -> StoredObject | None:
            head, found = self._head(key, version_id), self._find(key, version_id)
            self._refuse_archived(key, found)
            if found is not None and bytes_max is not None and len(found.body) > bytes_max:
                raise ObjectTooLargeError(f"{key!r}: {len(found.body)} bytes, at most {bytes_max}")
            return None if head is None or found is None else StoredObject(head, found.body)

        return self._call("get", key, apply)

    def get_range(
        self,
        key: str,
        *,
        start: int,
        length: int,
        version_id: str | None = None,
        into: memoryview | None = None,
    ) -> bytes:
        if start < 0 or length < 1:
            raise ValueError(f"range of {key!r}: start {start}, length {length}")

        def apply() -> bytes:
            found = self._find(key, version_id)
            if found is None:
                raise ObjectNotFoundError(f"bucket {self._bucket!r}: GET of {key!r}: not there")
            self._refuse_archived(key, found)
            return found.body[start : start + length]

        body = self._call("get_range", key, apply)
        if len(body) != length:
            raise ObjectStoreError(f"GET of {key!r}: {len(body)} of {length} bytes came")
        if into is None:
            return body
        into[:] = body
        return b""

    def list_versions(self, key: str) -> list[ObjectVersion]:
        def found() -> list[ObjectVersion]:
            return [
                ObjectVersion(version_id=v.version_id, size=len(v.body), is_marker=v.deleted)
                for v in reversed(self._objects.get(key, []))
            ]

        return self._call("list_versions", key, found)

    def delete(self, key: str, *, version_id: str | None = None) -> None:
        def apply() -> None:
            versions = self._objects.get(key, [])
            if version_id is not None:
                named = [v for v in versions if v.version_id == version_id]
                if self.refuses_version_deletes and named and not named[0].deleted:
                    raise ObjectStoreError(f"DELETE of {key!r}, version {version_id}: denied")
                versions[:] = [v for v in versions if v.version_id != version_id]
            elif self._versioning:
                self._store(key, b"", etag="", metadata={}, sha256=None, deleted=True)
            else:
                versions.clear()

        self._call("delete", key, apply)

    def list_objects(
        self, prefix: str = "", *, start_after: str = "", at_once: int = 1000
    ) -> Iterator[ObjectSummary]:
        def apply() -> list[ObjectSummary]:
            below = sorted(
                key for key in self._objects if key.startswith(prefix) and key > start_after
            )
            found = ((key, self._current(key)) for key in below)
            return [
                ObjectSummary(key=key, size=len(v.body), etag=v.etag, last_modified=v.last_modified)
                for key, v in found
                if v is not None
            ]

        return iter(self._call("list_objects", prefix, apply))

    def create_upload(self, key: str, *, metadata: Mapping[str, str]) -> str:
        def apply() -> str:
            self._count += 1
            upload_id = f"upload-{self._count}"
            self._uploads[upload_id] = _Upload(
                key=key, metadata=_lowered(metadata), initiated=self._stamp()
            )
            return upload_id

        return self._call("create_upload", key, apply)

    def upload_part(
        self, key: str, upload_id: str, *, part_number: int, body: Buffer, sha256: bytes
    ) -> Part:
        data = bytes(body)

        def apply() -> Part:
            upload = self._require_upload(key, upload_id)
            if hashlib.sha256(data).digest() != sha256:
                raise ObjectStoreError(f"part {part_number} of {key!r}: BadDigest")
            part = Part(
                part_number=part_number,
                size=len(data),
                etag=_md5(data),
                sha256=sha256,
                last_modified=self.now,
            )
            upload.parts[part_number] = (part, data)
            return part

        return self._call("upload_part", key, apply)

    def list_parts(self, key: str, upload_id: str) -> list[Part] | None:
        def apply() -> list[Part] | None:
            upload = self._uploads.get(upload_id)
            if upload is None or upload.key != key:
                return None
            parts = [upload.parts[number][0] for number in sorted(upload.parts)]
            if self._list_checksums:
                return parts
            return [replace(part, sha256=None) for part in parts]

        return self._call("list_parts", key, apply)

    def complete_upload(
        self, key: str, upload_id: str, parts: Sequence[Part], *, if_absent: bool = True
    ) -> WrittenObject:
        def apply() -> WrittenObject:
            self._check_conditions(key, if_absent=if_absent, if_match=None)
            upload = self._require_upload(key, upload_id)
            bodies = self._matched(key, upload, parts)
            sums = b"".join(hashlib.md5(body).digest() for body in bodies)
            del self._uploads[upload_id]
            return self._store(
                key,
                b"".join(bodies),
                etag=f'"{hashlib.md5(sums).hexdigest()}-{len(bodies)}"',
                metadata=upload.metadata,
                sha256=None,
            )

        return self._call("complete_upload", key, apply)

    def abort_upload(self, key: str, upload_id: str) -> None:
        def apply() -> None:
            self._uploads.pop(upload_id, None)

        self._call("abort_upload", key, apply)

    def list_uploads(self, prefix: str = "") -> Iterator[Upload]:
        def apply() -> list[Upload]:
            return [
                Upload(key=upload.key, upload_id=upload_id, initiated=upload.initiated)
                for upload_id, upload in sorted(self._uploads.items(), key=lambda u: u[1].key)
                if upload.key.startswith(prefix)
            ]

        return iter(self._call("list_uploads", prefix, apply))

    def server_time(self) -> datetime:
        return self._call("server_time", "", self._stamp)

    def bucket_facts(self) -> BucketFacts:
        facts = BucketFacts(
            exists=True,
            versioning="Enabled" if self._versioning else "Disabled",
            object_lock=False,
            lifecycle_rules=(),
        )
        return self._call("bucket_facts", "", lambda: facts)

    # ----- how it is done

    def _call(self, method: str, key: str, apply: Callable[[], T]) -> T:
        with self._lock:
            self.calls.append((method, key))
            struck = [f for f in self.faults if f.method == method and f.strikes()]
            for fault in struck:
                if fault.error is not None and not fault.after:
                    raise fault.error
            answer = apply()
            for fault in struck:
                if fault.error is not None:
                    raise fault.error
                if fault.alter is not None and isinstance(answer, bytes):
                    answer = fault.alter(answer)  # type: ignore[assignment]
            return answer

    def _stamp(self) -> datetime:
        return self.now.replace(microsecond=0)  # HTTP dates are whole seconds

    def _find(self, key: str, version_id: str | None) -> _Version | None:
        if version_id is None:
            return self._current(key)
        found = [v for v in self._objects.get(key, []) if v.version_id == version_id]
        if not found and self._current(key) is not None and not self._versioning:
            raise ObjectStoreError(f"{key!r}: asked for version {version_id}, there are none")
        return found[0] if found and not found[0].deleted else None

    def _current(self, key: str) -> _Version | None:
        versions = self._objects.get(key)
        return versions[-1] if versions and not versions[-1].deleted else None

    def _head(self, key: str, version_id: str | None) -> ObjectHead | None:
        found = self._find(key, version_id)
        if found is None:
            return None
        return ObjectHead(
            key=key,
            size=len(found.body),
            etag=found.etag,
            last_modified=found.last_modified,
            server_date=self._stamp(),
            version_id=found.version_id,
            metadata=dict(found.metadata),
            storage_class=found.storage_class,
            expiration=found.expiration,
            sha256=found.sha256,
        )

    def _refuse_archived(self, key: str, found: _Version | None) -> None:
        if found is not None and found.storage_class in ARCHIVES:
            raise ObjectArchivedError(f"GET of {key!r}: InvalidObjectState: it is archived")

    def _check_conditions(self, key: str, *, if_absent: bool, if_match: str | None) -> None:
        current = self._current(key)
        if if_absent and current is not None:
            raise ObjectExistsError(f"bucket {self._bucket!r}: {key!r}: the key already exists")
        if if_match is not None and (
            current is None or current.etag.strip('"') != if_match.strip('"')
        ):
            raise ObjectConflictError(
                f"bucket {self._bucket!r}: {key!r}: changed since it was read"
            )

    def _store(
        self,
        key: str,
        body: bytes,
        *,
        etag: str,
        metadata: Mapping[str, str],
        sha256: bytes | None,
        deleted: bool = False,
    ) -> WrittenObject:
        self._count += 1
        version = _Version(
            body=body,
            etag=etag,
            last_modified=self._stamp(),
            version_id=f"v{self._count:08d}" if self._versioning else None,
            metadata=metadata,
            sha256=sha256,
            deleted=deleted,
        )
        versions = self._objects.setdefault(key, [])
        if not self._versioning:
            versions.clear()
        versions.append(version)
        return WrittenObject(etag=etag, version_id=version.version_id)

    def _require_upload(self, key: str, upload_id: str) -> _Upload:
        upload = self._uploads.get(upload_id)
        if upload is None or upload.key != key:
            raise ObjectNotFoundError(f"{key!r}: no such upload {upload_id}")
        return upload

    def _matched(self, key: str, upload: _Upload, parts: Sequence[Part]) -> list[bytes]:
        numbers = [part.part_number for part in parts]
        if not parts or numbers != sorted(set(numbers)):
            raise ObjectStoreError(f"complete of {key!r}: InvalidPartOrder {numbers}")
        bodies = []
        for part in parts:
            stored, body = upload.parts.get(part.part_number, (None, b""))
            if (
                stored is None
                or stored.etag.strip('"') != part.etag.strip('"')
                or part.sha256 != stored.sha256
            ):
                raise ObjectStoreError(f"complete of {key!r}: InvalidPart {part.part_number}")
            if len(body) < self._part_bytes_min and part is not parts[-1]:
                raise ObjectStoreError(f"complete of {key!r}: EntityTooSmall {part.part_number}")
            bodies.append(body)
        return bodies


def _md5(body: bytes) -> str:
    return f'"{hashlib.md5(body).hexdigest()}"'


def _lowered(metadata: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in metadata.items()}
