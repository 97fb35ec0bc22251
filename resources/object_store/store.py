"""What tierkeeper needs of an object store: conditional writes, multipart uploads, proofs by HEAD.

s3.py is the real one (the only boto3 user); a simulator in tests/support passes the same contract
tests. None means "the store says it is not there"; any doubt is an exception, never None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectHead:
    """HEAD of one object. `server_date` is the store's Date header: its clock, not ours.

    None where the client that read it does not tell.
    """

    key: str
    size: int
    etag: str
    last_modified: datetime
    server_date: datetime | None = None
    version_id: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)  # keys lower case
    storage_class: str | None = None
    expiration: str | None = None
    sha256: bytes | None = None  # stored full-object checksum where the store returns one


def kept_version(version_id: str | None) -> str | None:
    """A version that the bucket keeps beside others; None for the only one.

    What was written before its bucket kept versions is named "null" afterwards.
    """
    return None if version_id == "null" else version_id


@dataclass(frozen=True, slots=True)
class StoredObject:
    head: ObjectHead
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenObject:
    etag: str
    version_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSummary:
    key: str
    size: int
    etag: str
    last_modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One uploaded part as the store lists it."""

    part_number: int
    size: int
    etag: str
    sha256: bytes | None = None
    last_modified: datetime | None = None  # only in listings


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    key: str
    upload_id: str
    initiated: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectVersion:
    """One version of a key, current or not; `is_marker` hides the versions before it.

    `version_id` is None in a bucket that never had versions.
    """

    version_id: str | None
    size: int
    is_marker: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFacts:
    """What the bucket itself says. None for a field means that the store did not answer it."""

    exists: bool
    versioning: str | None
    object_lock: bool | None
    lifecycle_rules: tuple[str, ...] | None


class ObjectStore(Protocol):
    """Every method may raise ObjectStoreError; messages name bucket and key, never credentials."""

    @property
    def bucket(self) -> str: ...

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
        """PUT with the body's SHA-256, which the store checks; `sha256` is it, where it is known.

        ObjectExistsError when `if_absent` lost, ObjectConflictError when `if_match` (an etag) lost.
        """

    def head(self, key: str, *, version_id: str | None = None) -> ObjectHead | None: ...

    def get(
        self, key: str, *, version_id: str | None = None, bytes_max: int | None = None
    ) -> StoredObject | None:
        """The whole object; only for index objects and records.

        ObjectTooLargeError, before any of it is read, when it has more than `bytes_max` bytes.
        """

    def get_range(
        self,
        key: str,
        *,
        start: int,
        length: int,
        version_id: str | None = None,
        into: memoryview | None = None,
    ) -> bytes:
        """Exactly `length` bytes from `start`; a short answer is an ObjectStoreError.

        They are written to `into` where that is given, a view of as many bytes; what is returned is
        empty then.
        """

    def delete(self, key: str, *, version_id: str | None = None) -> None:
        """Delete; an absent key counts as done."""

    def list_versions(self, key: str) -> list[ObjectVersion]:
        """Every version of exactly this key, delete markers included; empty when there is none."""

    def list_objects(
        self, prefix: str = "", *, start_after: str = "", at_once: int = 1000
    ) -> Iterator[ObjectSummary]:
        """In key order, to the end: one request for every so many keys behind `start_after`."""

    def create_upload(self, key: str, *, metadata: Mapping[str, str]) -> str:
        """Start a multipart upload whose parts carry SHA-256; return the upload id."""

    def upload_part(
        self, key: str, upload_id: str, *, part_number: int, body: Buffer, sha256: bytes
    ) -> Part:
        """Send one part; the store refuses a body that differs from `sha256`."""

    def list_parts(self, key: str, upload_id: str) -> list[Part] | None:
        """Parts in number order; None when the upload does not exist (completed or aborted)."""

    def complete_upload(
        self, key: str, upload_id: str, parts: Sequence[Part], *, if_absent: bool = True
    ) -> WrittenObject:
        """ObjectExistsError when the key already exists; ObjectNotFoundError for no such upload."""

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Abort, and again until the store says that there is no such upload."""

    def list_uploads(self, prefix: str = "") -> Iterator[Upload]: ...

    def server_time(self) -> datetime:
        """The store's own clock, from a Date header."""

    def bucket_facts(self) -> BucketFacts: ...
