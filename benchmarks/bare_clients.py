"""What a store gives at most: ready bytes sent and fetched by boto3 and nothing else.

Owns: bodies leave and arrive as those of our own client do (object_store/bodies.py); parts,
connections and order are those of our tasks (tasks/copy.py, tasks/ranges.py): parts of a block two
at a time, then ranged GETs four at a time. They send the blocks of a data object that they have
loaded, as a store may compress what begins like one. What was sent or came back is compared when
the clock has stopped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tiering_assets.offload_format.decoder import block_lengths, decode_index
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.object_store.bodies import SentBody, ViewBody, read_body_into
from tiering_assets.resources.object_store.s3_client import prepare_sending
from tiering_assets.resources.settings import OffloadSettings, StoreSettings
from tiering_assets.tasks.worker import FETCHES_AT_ONCE, UPLOADS_AT_ONCE

Answer = dict[str, Any]
RANGE_BYTES = OffloadSettings().read_range_bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent, and what of it came back (None: nothing was asked for)."""

    client: Any
    key: str
    parts: Sequence[bytes]
    etag: str
    back: bytearray | None = None

    @property
    def digest(self) -> bytes:
        found = sha256()
        for part in self.parts:
            found.update(part)
        return found.digest()


class BareClients:
    """Clients by endpoint, kept warm, and what the last of them sent."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._clients: dict[str | None, Any] = {}
        self._sent: Sent | None = None
        self._to_sink = False
        self._parts: list[bytes] = []

    def load(self, key: str) -> Answer:
        """Have the blocks of a data object ready, to send them from now on."""
        client, bucket = self.client(None), self._settings.bucket
        index = client.get_object(Bucket=bucket, Key=f"{key}-index")["Body"].read()
        whole = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        blocks = block_lengths(decode_index(index))
        self._parts = [whole[one.offset : one.offset + one.length] for one in blocks]
        return {}

    def make(self, size: int, part_bytes: int) -> None:
        """Have that many random bytes ready instead, in parts of that size."""
        self._parts = _random_parts(size, part_bytes)

    def multipart(self, endpoint: str | None) -> Answer:
        """Send what is ready, two parts at a time."""
        client, parts = self.client(endpoint), self._parts
        began = time.perf_counter()
        key, etag = self._put(client, parts, UPLOADS_AT_ONCE)
        seconds = time.perf_counter() - began
        self._sent, self._to_sink = Sent(client, key, parts, etag), endpoint is not None
        return {"seconds": seconds}

    def put_get(self, endpoint: str | None, tasks: int = 1) -> Answer:
        """The same, and read it back by ranges, four at a time; with what so many tasks have."""
        client, parts = self.client(endpoint), self._parts
        back = bytearray(sum(map(len, parts)))
        began = time.perf_counter()
        key, etag = self._put(client, parts, UPLOADS_AT_ONCE * tasks)
        self._get(client, key, memoryview(back), FETCHES_AT_ONCE * tasks)
        seconds = time.perf_counter() - began
        self._sent, self._to_sink = Sent(client, key, parts, etag, back), False
        return {"seconds": seconds}

    def check_sent(self) -> Answer:
        """Whether the store has what was sent; the sink's ETag is its count of bytes."""
        sent = self._sent
        if sent is None:
            raise IntegrityError("nothing was sent")
        size = sum(len(part) for part in sent.parts)
        if self._to_sink:
            if sent.etag.strip('"') != str(size):
                raise IntegrityError(f"{sent.etag} of {size} bytes reached the sink")
            return {}
        bucket, back = self._settings.bucket, sent.back
        if back is None:
            back = sent.client.get_object(Bucket=bucket, Key=sent.key)["Body"].read()
        sent.client.delete_object(Bucket=bucket, Key=sent.key)
        self._sent = None
        if sha256(back).digest() != sent.digest:
            raise IntegrityError(f"{len(back)} other bytes than those sent lie in the store")
        return {}

    def _put(self, client: Any, parts: Sequence[bytes], at_once: int) -> tuple[str, str]:
        upload = BareUpload(client, self._settings.bucket)
        with ThreadPoolExecutor(at_once) as threads:
            done = list(threads.map(upload.send, range(1, len(parts) + 1), parts))
        return upload.key, upload.complete(done)

    def _get(self, client: Any, key: str, into: memoryview, at_once: int) -> None:
        def fetch(start: int) -> None:
            part = into[start : start + RANGE_BYTES]
            fetch_range(client, self._settings.bucket, key, start, part)

        with ThreadPoolExecutor(at_once) as threads:
            list(threads.map(fetch, range(0, len(into), RANGE_BYTES)))

    def client(self, endpoint: str | None) -> Any:
        """The warm client of an endpoint; None is the store of the settings."""
        if endpoint not in self._clients:
            self._clients[endpoint] = _bare_client(self._settings, endpoint)
        return self._clients[endpoint]


class BareUpload:
    """A multipart upload of a new key."""

    def __init__(self, client: Any, bucket: str) -> None:
        self.key = f"benchmark-{time.time_ns()}"
        self._client, self._place = client, {"Bucket": bucket, "Key": self.key}
        self._id = client.create_multipart_upload(**self._place)["UploadId"]

    def send(self, number: int, body: bytes | memoryview) -> dict[str, Any]:
        """Send a part; what completing the upload wants of it."""
        view = ViewBody(memoryview(body))
        answer = self._client.upload_part(
            **self._place, UploadId=self._id, PartNumber=number, Body=view
        )
        return {"PartNumber": number, "ETag": answer["ETag"]}

    def complete(self, parts: Sequence[dict[str, Any]]) -> str:
        """Make the object of its parts; its ETag."""
        answer = self._client.complete_multipart_upload(
            **self._place, UploadId=self._id, MultipartUpload={"Parts": parts}
        )
        return str(answer["ETag"])


def fetch_range(client: Any, bucket: str, key: str, start: int, into: memoryview) -> None:
    """Read as many bytes of an object as the buffer takes."""
    asked = f"bytes={start}-{start + len(into) - 1}"
    body = client.get_object(Bucket=bucket, Key=key, Range=asked)["Body"]
    if read_body_into(body, into) != len(into):
        raise IntegrityError(f"{key} has fewer bytes than {asked}")


def _random_parts(size: int, part_bytes: int) -> list[bytes]:
    """Parts of one size, and the rest; each of the same random bytes."""
    sizes = [part_bytes] * (size // part_bytes)
    if rest := size - sum(sizes):
        sizes.append(rest)
    body = os.urandom(max(sizes))
    whole = {count: body[:count] for count in sizes}
    return [whole[count] for count in sizes]


def _bare_client(store: StoreSettings, endpoint: str | None) -> Any:
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3",
        endpoint_url=endpoint or store.endpoint,
        region_name=store.region,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path", "payload_signing_enabled": False},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
    prepare_sending(client)
    client.meta.events.register("before-send.s3", _in_large_pieces)
    return client


def _in_large_pieces(request: Any, **_of: Any) -> None:
    if isinstance(request.body, ViewBody):
        request.body = SentBody(request.body.view, None)
