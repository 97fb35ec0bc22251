"""Many small reads and long listings by obstore, at a fifth of boto3's CPU.

Owns: whatever obstore does not answer plainly is asked of boto3 again: what is absent, refused, too
large, or has an odd key. So answers and errors are those of S3ObjectStore, and obstore's own words,
which quote what stores write, reach nobody. Whoever judges, publishes or deletes uses that one
alone (tests/unit/test_rooms.py).

Not told of what was read here: the store's date, storage class, expiration and stored SHA-256. A
key that ends in a slash is listed without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.s3_client import ca_bundle, credentials_of
from tiering_assets.resources.object_store.s3_environment import is_understood
from tiering_assets.resources.object_store.store import ObjectHead, ObjectSummary, StoredObject

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

    from tiering_assets.resources.object_store.meter import StoreMeter
    from tiering_assets.resources.settings import StoreSettings

PAGE: Final = 1000
DOUBTS_MAX: Final = 5
"""Answers in a row that were none; then boto3 alone is asked. Else each would be asked twice."""
_ASKED_AGAIN: Final = timedelta(minutes=10)


class BulkS3ObjectStore(S3ObjectStore):
    """The same store, whose `get` and `list_objects` ask obstore first, where it is installed."""

    def __init__(self, settings: StoreSettings, *, meter: StoreMeter | None = None) -> None:
        super().__init__(settings, meter=meter)
        self._meter = meter
        self._lock = Lock()
        self._made: tuple[int, Any] | None = None
        self._doubts = 0

    def get(
        self, key: str, *, version_id: str | None = None, bytes_max: int | None = None
    ) -> StoredObject | None:
        if version_id is None and is_plain(key):
            found: StoredObject | None = self._asked(
                lambda obstore, store: _read(obstore, store, key, bytes_max)
            )
            if found is not None:
                return found
        return super().get(key, version_id=version_id, bytes_max=bytes_max)

    def list_objects(
        self, prefix: str = "", *, start_after: str = "", at_once: int = PAGE
    ) -> Iterator[ObjectSummary]:
        start_after = "" if start_after == prefix else start_after
        after, whole = start_after, False
        folder = not prefix or (prefix[-1] == "/" and is_plain(prefix[:-1]))
        if folder and at_once == PAGE and (not start_after or is_plain(start_after)):
            for page in self._pages(prefix, start_after):
                if page is None:
                    whole = True
                    break
                for one in page:
                    yield one
                    after = one.key
        if not whole:
            yield from super().list_objects(prefix, start_after=after, at_once=at_once)

    def _pages(self, prefix: str, start_after: str) -> Iterator[list[ObjectSummary] | None]:
        """Pages of a listing, and None behind the last one; without it there may be more."""
        stream = self._asked(
            lambda obstore, store: obstore.list(
                store, prefix or None, offset=start_after or None, chunk_size=PAGE
            ),
            asks=0,
        )
        if stream is None:
            return
        size = PAGE
        while True:
            page = self._asked(
                lambda _obstore, _store: [_summary(one) for one in next(stream, ())],
                asks=size == PAGE,  # behind a short page no other is asked for
            )
            if page is None:
                return
            if not page:
                yield None
                return
            yield page
            size = len(page)

    def _asked(self, ask: Callable[[Any, Any], Any], *, asks: int = 1) -> Any:
        """What obstore answers; None where it did not, or is not asked."""
        made = self._store()
        if made is None or self._doubts >= DOUBTS_MAX:
            return None
        if asks and self._meter is not None:
            self._meter.request()
        try:
            answer = ask(*made)
        except FileNotFoundError:  # of the key or of the bucket
            return None
        except Exception:  # noqa: BLE001 - whatever it says, boto3 is asked what is so
            self._doubts += 1
            return None
        self._doubts = 0
        return answer

    def _store(self) -> tuple[Any, Any] | None:
        """The library and its store, of the process that made it: it does not outlive a fork."""
        with self._lock:
            if self._made is None:
                self._made = (os.getpid(), _new_store(self._settings))
            pid, made = self._made
        return made if pid == os.getpid() else None


def is_plain(key: str) -> bool:
    """Whether obstore takes a key as it is: it drops segments that are empty or dots."""
    return all(segment not in ("", ".", "..") for segment in key.split("/"))


def _read(obstore: Any, store: Any, key: str, bytes_max: int | None) -> StoredObject | None:
    answer = obstore.get(store, key)
    meta = answer.meta
    if meta["e_tag"] is None or (bytes_max is not None and meta["size"] > bytes_max):
        return None
    body = bytes(answer.bytes())
    if len(body) != meta["size"]:
        return None
    head = ObjectHead(
        key=key,
        size=meta["size"],
        etag=meta["e_tag"],
        last_modified=meta["last_modified"].astimezone(UTC),
        version_id=meta["version"],
        metadata={
            name.lower(): value
            for name, value in answer.attributes.items()
            if not name.startswith(("Content-", "Cache-"))
        },
    )
    return StoredObject(head, body)


def _summary(meta: Any) -> ObjectSummary:
    return ObjectSummary(
        key=meta["path"],
        size=meta["size"],
        etag=meta["e_tag"] or "",
        last_modified=meta["last_modified"].astimezone(UTC),
    )


def _new_store(settings: StoreSettings) -> tuple[Any, Any] | None:
    """None where the library is not there, or the environment says what only boto3 understands."""
    if not is_understood(os.environ):
        return None
    try:
        import obstore
        from obstore.store import S3Store

        options: ClientConfig = {
            "allow_http": settings.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=settings.connect_timeout_s),
            "read_timeout": timedelta(seconds=settings.read_timeout_s),
            "timeout": timedelta(seconds=settings.connect_timeout_s + settings.read_timeout_s),
            "pool_max_idle_per_host": str(settings.connections_max),
            "user_agent": "tierkeeper",
        }
        trusted = ca_bundle()
        if trusted:
            options["root_certificate"] = Path(trusted).read_bytes()
        config: S3Config = {"region": settings.region, "virtual_hosted_style_request": False}
        if settings.endpoint:
            config["endpoint"] = settings.endpoint
        store = S3Store(
            settings.bucket,
            config=config,
            client_options=options,
            retry_config={"max_retries": 0},  # boto3 tries again
            credential_provider=lambda: _credentials(settings),
        )
    except Exception:  # noqa: BLE001 - boto3 says what is wrong with the settings
        return None
    return obstore, store


def _credentials(settings: StoreSettings) -> Any:
    """What boto3 finds, for some minutes: those of a role are renewed."""
    access_key, secret_key, token = credentials_of(settings)
    return {
        "access_key_id": access_key,
        "secret_access_key": secret_key,
        "token": token,
        "expires_at": None if settings.access_key else datetime.now(UTC) + _ASKED_AGAIN,
    }
