"""The object store on S3 and its look-alikes. boto3 is used here and in s3_client.py only.

Rules it keeps:
* Every body carries its SHA-256 in a header of its own, which the store checks on arrival; the
  signature therefore leaves the payload out, and no trailing-checksum encoding is used, which some
  look-alikes mishandle.
* A conditional write that botocore tried twice can lose against its own first try, so whoever gets
  ObjectExistsError looks what is there.
* HEAD cannot tell an absent key from an absent bucket, so a 404 asks for the bucket, too: unknown
  is never reported as absent.

It refuses to be pickled: credentials do not travel, each worker builds its own store.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NoReturn

from botocore.exceptions import ClientError

from tiering_assets.resources.errors import ObjectNotFoundError, ObjectStoreError, SettingsError
from tiering_assets.resources.object_store import s3_errors
from tiering_assets.resources.object_store.bodies import ViewBody, read_body, read_body_into
from tiering_assets.resources.object_store.s3_client import S3Connection
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

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from tiering_assets.resources.object_store.meter import StoreMeter
    from tiering_assets.resources.settings import StoreSettings

ABORT_TRIES = 10
"""A part that was on its way during an abort can bring it up again; S3 says to repeat and look."""


class S3ObjectStore:
    """One bucket. Cheap to make: nothing is connected before the first call.

    Every try of a request asks `meter` first, where one is given.

    Raises:
        SettingsError: no bucket, or half a key pair.
    """

    def __init__(
        self,
        settings: StoreSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        meter: StoreMeter | None = None,
    ) -> None:
        if not settings.bucket:
            raise SettingsError("store.bucket is empty: name the bucket the brokers offload to")
        if bool(settings.access_key) != bool(settings.secret_key):
            raise SettingsError("store.access_key and store.secret_key: set both or neither")
        self._settings = settings
        self._sleep = sleep
        self._connection = S3Connection(settings, meter)

    def __repr__(self) -> str:
        return f"S3ObjectStore(bucket={self.bucket!r}, endpoint={self._settings.endpoint!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("S3ObjectStore is not pickled: build one from settings in each process")

    def close(self) -> None:
        """Leave connections to the next store of this process; a closed one may be used again."""
        self._connection.close()

    @property
    def bucket(self) -> str:
        return self._settings.bucket

    # ----- single objects

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
        if if_absent and if_match is not None:
            raise ValueError("if_absent and if_match exclude each other")
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if if_absent else {}
        if if_match is not None:
            condition = {"IfMatch": if_match}
        with self._connection.translated(
            "PUT", key, if_absent=if_absent, if_match=if_match is not None
        ) as client:
            answer = client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=_sendable(body),
                ChecksumSHA256=_base64(sha256 or hashlib.sha256(body).digest()),
                Metadata=dict(metadata or {}),
                ContentType=content_type,
                **condition,
            )
        return WrittenObject(etag=answer["ETag"], version_id=_version(answer))

    def head(self, key: str, *, version_id: str | None = None) -> ObjectHead | None:
        try:
            with self._connection.translated("HEAD", key) as client:
                answer = client.head_object(
                    Bucket=self.bucket, Key=key, ChecksumMode="ENABLED", **_version_of(version_id)
                )
        except ObjectNotFoundError:
            self._must_be_absent("HEAD", key)
            return None
        return self._head_from(key, answer, version_id)

    def get(
        self, key: str, *, version_id: str | None = None, bytes_max: int | None = None
    ) -> StoredObject | None:
        def download(client: S3Client) -> StoredObject:
            answer = client.get_object(
                Bucket=self.bucket, Key=key, ChecksumMode="ENABLED", **_version_of(version_id)
            )
            if bytes_max is not None and answer["ContentLength"] > bytes_max:
                answer["Body"].close()
                raise s3_errors.too_large(
                    self._connection.request("GET", key), answer["ContentLength"], bytes_max
                )
            body = read_body(answer["Body"])
            head = self._head_from(key, answer, version_id)
            if len(body) != head.size:
                raise self._doubt("GET", key, f"{head.size} bytes announced, {len(body)} came")
            if head.sha256 is not None and hashlib.sha256(body).digest() != head.sha256:
                raise self._doubt("GET", key, "the body differs from the stored SHA-256")
            return StoredObject(head, body)

        try:
            return self._connection.downloaded(key, download)
        except ObjectNotFoundError as error:
            if not error.of_key:
                self._must_be_absent("GET", key)
            return None

    def get_range(
        self,
        key: str,
        *,
        start: int,
        length: int,
        version_id: str | None = None,
        into: memoryview | None = None,
    ) -> bytes:
        if start < 0 or length < 1 or (into is not None and len(into) != length):
            raise ValueError(f"range of {key!r}: start {start}, length {length}")
        asked = f"bytes={start}-{start + length - 1}"

        def download(client: S3Client) -> bytes:
            answer = client.get_object(
                Bucket=self.bucket, Key=key, Range=asked, **_version_of(version_id)
            )
            self._check_version("GET", key, answer, version_id)
            found = answer.get("ContentRange", f"no range, {answer.get('ContentLength')} bytes")
            if not found.startswith(f"bytes {start}-{start + length - 1}/"):
                answer["Body"].close()
                raise self._doubt("GET", key, f"asked for {asked}, the store gave {found}")
            body = b"" if into is not None else read_body(answer["Body"])
            came = len(body) if into is None else read_body_into(answer["Body"], into)
            if came != length:
                raise self._doubt("GET", key, f"{asked}: {came} of {length} bytes came")
            return body

        return self._connection.downloaded(key, download)

    def delete(self, key: str, *, version_id: str | None = None) -> None:
        try:
            with self._connection.translated("DELETE", key) as client:
                client.delete_object(Bucket=self.bucket, Key=key, **_version_of(version_id))
        except ObjectNotFoundError:
            self._must_be_absent("DELETE", key)

    def list_versions(self, key: str) -> list[ObjectVersion]:
        with self._connection.translated("LIST versions", key) as client:
            pages = client.get_paginator("list_object_versions").paginate(
                Bucket=self.bucket, Prefix=key
            )
        found: list[ObjectVersion] = []
        for page in self._connection.pages("LIST versions", key, pages):
            found.extend(
                ObjectVersion(version_id=_version(item), size=item["Size"])
                for item in page.get("Versions", ())
                if item["Key"] == key
            )
            found.extend(
                ObjectVersion(version_id=_version(marker), size=0, is_marker=True)
                for marker in page.get("DeleteMarkers", ())
                if marker["Key"] == key
            )
        return found

    def list_objects(
        self, prefix: str = "", *, start_after: str = "", at_once: int = 1000
    ) -> Iterator[ObjectSummary]:
        with self._connection.translated("LIST", prefix) as client:
            pages = client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket,
                Prefix=prefix,
                StartAfter=start_after,
                PaginationConfig={"PageSize": at_once},
            )
        for page in self._connection.pages("LIST", prefix, pages):
            for item in page.get("Contents", ()):
                yield ObjectSummary(
                    key=item["Key"],
                    size=item["Size"],
                    etag=item["ETag"],
                    last_modified=item["LastModified"].astimezone(UTC),
                )

    # ----- multipart uploads

    def create_upload(self, key: str, *, metadata: Mapping[str, str]) -> str:
        with self._connection.translated("multipart create", key) as client:
            answer = client.create_multipart_upload(
                Bucket=self.bucket,
                Key=key,
                Metadata=dict(metadata),
                ContentType="application/octet-stream",
                ChecksumAlgorithm="SHA256",
            )
        return answer["UploadId"]

    def upload_part(
        self, key: str, upload_id: str, *, part_number: int, body: Buffer, sha256: bytes
    ) -> Part:
        with self._connection.translated(f"part {part_number}", key) as client:
            answer = client.upload_part(
                Bucket=self.bucket,
                Key=key,
                UploadId=upload_id,
                PartNumber=part_number,
                Body=_sendable(body),
                ChecksumSHA256=_base64(sha256),
            )
        return Part(
            part_number=part_number,
            size=memoryview(body).nbytes,
            etag=answer["ETag"],
            sha256=_sha256_from(answer.get("ChecksumSHA256")),
        )

    def list_parts(self, key: str, upload_id: str) -> list[Part] | None:
        try:
            with self._connection.translated("list parts", key) as client:
                pages = client.get_paginator("list_parts").paginate(
                    Bucket=self.bucket, Key=key, UploadId=upload_id
                )
            parts = [
                Part(
                    part_number=item["PartNumber"],
                    size=item["Size"],
                    etag=item["ETag"],
                    sha256=_sha256_from(item.get("ChecksumSHA256")),
                    last_modified=item.get("LastModified"),
                )
                for page in self._connection.pages("list parts", key, pages)
                for item in page.get("Parts", ())
            ]
        except ObjectNotFoundError:
            self._must_be_absent("list parts", key)
            return None
        return sorted(parts, key=lambda part: part.part_number)

    def complete_upload(
        self, key: str, upload_id: str, parts: Sequence[Part], *, if_absent: bool = True
    ) -> WrittenObject:
        # A store that was promised SHA-256 parts wants the sums again here, and compares them.
        completed: list[Any] = [
            {"PartNumber": part.part_number, "ETag": part.etag}
            | ({"ChecksumSHA256": _base64(part.sha256)} if part.sha256 is not None else {})
            for part in parts
        ]
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if if_absent else {}
        with self._connection.translated("multipart complete", key, if_absent=if_absent) as client:
            answer = client.complete_multipart_upload(
                Bucket=self.bucket,
                Key=key,
                UploadId=upload_id,
                MultipartUpload={"Parts": completed},
                **condition,
            )
        return WrittenObject(etag=answer["ETag"], version_id=_version(answer))

    def abort_upload(self, key: str, upload_id: str) -> None:
        for attempt in range(ABORT_TRIES):
            self._sleep(min(0.1 * attempt, 1.0))
            try:
                with self._connection.translated("multipart abort", key) as client:
                    client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)
            except ObjectNotFoundError:
                return
            # Some stores call every abort a success, so ask in another way whether it is gone.
            if self.list_parts(key, upload_id) is None:
                return
        raise self._doubt("multipart abort", key, f"still there after {ABORT_TRIES} aborts")

    def list_uploads(self, prefix: str = "") -> Iterator[Upload]:
        with self._connection.translated("list uploads", prefix) as client:
            pages = client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self.bucket, Prefix=prefix
            )
        for page in self._connection.pages("list uploads", prefix, pages):
            for item in page.get("Uploads", ()):
                yield Upload(
                    key=item["Key"],
                    upload_id=item["UploadId"],
                    initiated=item["Initiated"].astimezone(UTC),
                )

    # ----- the bucket

    def server_time(self) -> datetime:
        try:
            with self._connection.translated("HEAD bucket") as client:
                answer = client.head_bucket(Bucket=self.bucket)
        except ObjectNotFoundError:
            raise s3_errors.bucket_missing(self._connection.request("HEAD bucket")) from None
        return self._date("HEAD bucket", answer)

    def bucket_facts(self) -> BucketFacts:
        if not self._bucket_exists():
            return BucketFacts(
                exists=False, versioning=None, object_lock=None, lifecycle_rules=None
            )
        versioning = self._fact(
            lambda client: client.get_bucket_versioning(Bucket=self.bucket), absent={}
        )
        lock = self._fact(
            lambda client: client.get_object_lock_configuration(Bucket=self.bucket), absent={}
        )
        lifecycle = self._fact(
            lambda client: client.get_bucket_lifecycle_configuration(Bucket=self.bucket), absent={}
        )
        return BucketFacts(
            exists=True,
            versioning=None if versioning is None else versioning.get("Status", "Disabled"),
            object_lock=None
            if lock is None
            else lock.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") == "Enabled",
            lifecycle_rules=None
            if lifecycle is None
            else tuple(
                json.dumps(rule, sort_keys=True, default=str) for rule in lifecycle.get("Rules", ())
            ),
        )

    def create_bucket(self) -> None:
        """Create the bucket unless it is ours already. For the demo and tests."""
        region = self._settings.region
        elsewhere = not self._settings.endpoint and region != "us-east-1"
        place: dict[str, Any] = (
            {"CreateBucketConfiguration": {"LocationConstraint": region}} if elsewhere else {}
        )
        with self._connection.translated("create bucket") as client:
            try:
                client.create_bucket(Bucket=self.bucket, **place)
            except client.exceptions.BucketAlreadyOwnedByYou:
                return

    # ----- how it is done

    def _must_be_absent(self, action: str, key: str) -> None:
        """Return when the key is what is missing, raise when it is the whole bucket."""
        if not self._bucket_exists():
            raise s3_errors.bucket_missing(self._connection.request(action, key))

    def _bucket_exists(self) -> bool:
        try:
            with self._connection.translated("HEAD bucket") as client:
                client.head_bucket(Bucket=self.bucket)
        except ObjectNotFoundError:
            return False
        return True

    def _fact(self, ask: Callable[[S3Client], Any], *, absent: dict[str, Any]) -> Any | None:
        """One answer about the bucket; `absent` where the store says "not configured"."""
        with self._connection.translated("bucket facts") as client:
            try:
                return ask(client)
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code", "")
                if code in (
                    "NoSuchLifecycleConfiguration",
                    "ObjectLockConfigurationNotFoundError",
                ):
                    return absent
                if code in ("AccessDenied", "MethodNotAllowed", "NotImplemented", "405", "501"):
                    return None
                raise

    def _head_from(self, key: str, answer: Any, version_id: str | None) -> ObjectHead:
        self._check_version("HEAD", key, answer, version_id)
        return ObjectHead(
            key=key,
            size=answer["ContentLength"],
            etag=answer["ETag"],
            last_modified=answer["LastModified"].astimezone(UTC),
            server_date=self._date("HEAD", answer, key),
            version_id=_version(answer),
            metadata={name.lower(): value for name, value in answer.get("Metadata", {}).items()},
            storage_class=answer.get("StorageClass"),
            expiration=answer.get("Expiration"),
            sha256=_sha256_from(answer.get("ChecksumSHA256")),
        )

    def _check_version(self, action: str, key: str, answer: Any, version_id: str | None) -> None:
        # A bucket without versions may ignore the version and give what it has.
        if version_id is not None and answer.get("VersionId") != version_id:
            raise self._doubt(
                action, key, f"asked for version {version_id}, got {answer.get('VersionId')}"
            )

    def _date(self, action: str, answer: Any, key: str | None = None) -> datetime:
        text = answer["ResponseMetadata"]["HTTPHeaders"].get("date", "")
        try:
            return parsedate_to_datetime(text).astimezone(UTC)
        except ValueError as error:
            raise self._doubt(action, key, f"no readable Date header: {text!r}") from error

    def _doubt(self, action: str, key: str | None, problem: str) -> ObjectStoreError:
        request = self._connection.request(action, key)
        return ObjectStoreError(f"{request.place}: {request.what}: {problem}")


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode("ascii")


def _sha256_from(text: str | None) -> bytes | None:
    """A full SHA-256, or None: a sum over part sums ("…-3") says nothing about the whole."""
    if text is None or "-" in text:
        return None
    try:
        digest = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return digest if len(digest) == 32 else None


def _sendable(body: Buffer) -> Any:  # the stubs leave bytearray out
    """Botocore takes no view: that of a whole buffer is the buffer, that of a part is a file."""
    if isinstance(body, bytes | bytearray):
        return body
    owner = body.obj
    if isinstance(owner, bytes | bytearray) and body.c_contiguous and body.nbytes == len(owner):
        return owner
    return ViewBody(body)


def _version(answer: Any) -> str | None:
    version: str | None = answer.get("VersionId")
    return version


def _version_of(version_id: str | None) -> dict[str, Any]:
    return {} if version_id is None else {"VersionId": version_id}
