"""Proofs of what the protocols rely on in the object store, with throw-away keys. design section
6.5.

Owns: a promise is proven by trying to break it: many creators at once, a part with a wrong digest,
an overwrite with an old ETag. Keys lie under `tierkeeper/probe/<uuid>/` and are deleted afterwards,
uploads aborted, whatever the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from uuid import uuid4

from tiering_assets.ground.finding import Finding, asked, fail, ok, warn
from tiering_assets.records import keys
from tiering_assets.resources.errors import (
    ObjectConflictError,
    ObjectExistsError,
    ObjectStoreError,
    TierkeeperError,
)
from tiering_assets.resources.object_store.store import ObjectStore, WrittenObject, kept_version

_CREATORS = 6
_OTHER_STORE = "use a store, or a release of it, that keeps this promise of S3"


class _Probe:
    """The throw-away keys of one run, and how they go away again."""

    def __init__(self, objects: ObjectStore) -> None:
        self.objects = objects
        self._prefix = f"{keys.PROBES}{uuid4()}/"
        self._versions: list[tuple[str, str | None]] = []
        self._uploads: list[tuple[str, str]] = []

    def key(self, name: str) -> str:
        key = self._prefix + name
        self._versions.append((key, None))
        return key

    def wrote(self, key: str, written: WrittenObject) -> WrittenObject:
        if written.version_id is not None:
            self._versions.append((key, written.version_id))
        return written

    def upload(self, key: str) -> str:
        upload_id = self.objects.create_upload(key, metadata={})
        self._uploads.append((key, upload_id))
        return upload_id

    def clean_up(self) -> Iterable[Finding]:
        for key, upload_id in self._uploads:
            self.objects.abort_upload(key, upload_id)
        for key, version_id in reversed(self._versions):  # versions first, then what is current
            self.objects.delete(key, version_id=version_id)
        left = [summary.key for summary in self.objects.list_objects(self._prefix)]
        if left:
            return [warn("proof clean-up", f"still there: {', '.join(left)}", "delete them")]
        return [ok("proof clean-up", "every throw-away key is gone")]


def prove_bucket(objects: ObjectStore) -> Iterator[Finding]:
    """Each proof by itself: one that fails does not hide the others."""
    probe = _Probe(objects)
    try:
        for name, prove in _PROOFS:
            yield from asked(name, lambda prove=prove: [prove(probe)])  # type: ignore[misc]
    finally:
        cleaned = [*asked("proof clean-up", probe.clean_up)]
    yield from cleaned


def _conditional_create(probe: _Probe) -> Finding:
    """Several creators of one key at once: exactly one may win."""
    key = probe.key("create")

    def create(number: int) -> bool:
        try:
            probe.wrote(key, probe.objects.put(key, f"{number}".encode(), if_absent=True))
        except ObjectExistsError:
            return False
        except ObjectStoreError as error:
            if "same time" in str(error):  # 409: told to look again; it did not win
                return False
            raise
        return True

    with ThreadPoolExecutor(_CREATORS) as pool:
        winners = sum(pool.map(create, range(_CREATORS)))
    text = f"{winners} of {_CREATORS} creators of one key at once won"
    if winners == 1:
        return ok("conditional create", text)
    return fail("conditional create", f"{text}, expected 1 (If-None-Match)", _OTHER_STORE)


def _multipart_if_absent(probe: _Probe) -> Finding:
    """Completing an upload must not replace an object that is there."""
    key = probe.key("multipart")
    probe.wrote(key, probe.objects.put(key, b"was here first"))
    upload_id = probe.upload(key)
    body = b"came later"
    part = probe.objects.upload_part(
        key, upload_id, part_number=1, body=body, sha256=sha256(body).digest()
    )
    try:
        probe.wrote(key, probe.objects.complete_upload(key, upload_id, [part], if_absent=True))
    except ObjectExistsError:
        return ok("multipart create", "completing an upload onto an existing key is refused")
    return fail("multipart create", "an upload replaced an object that was there", _OTHER_STORE)


def _part_checksums(probe: _Probe) -> Finding:
    """A part whose bytes differ from the announced SHA-256 is refused; a good one is listed."""
    key = probe.key("parts")
    upload_id = probe.upload(key)
    body = b"these bytes"
    try:
        probe.objects.upload_part(
            key, upload_id, part_number=1, body=body, sha256=sha256(b"others").digest()
        )
    except ObjectStoreError:
        pass
    else:
        return fail("part checksums", "a part with a wrong SHA-256 was taken as good", _OTHER_STORE)
    good = probe.objects.upload_part(
        key, upload_id, part_number=1, body=body, sha256=sha256(body).digest()
    )
    listed = probe.objects.list_parts(key, upload_id) or []
    if [(part.part_number, part.size, part.etag) for part in listed] != [(1, len(body), good.etag)]:
        return fail("part checksums", f"ListParts says {listed}, expected part 1", _OTHER_STORE)
    told = "and listed with it" if listed[0].sha256 is not None else "and listed by ETag alone"
    return ok("part checksums", f"a wrong SHA-256 is refused, a good part is taken {told}")


def _read_after_write(probe: _Probe) -> Finding:
    """What was written is read, listed and gone again at once, every time."""
    key = probe.key("read")
    for number in range(5):
        body = f"round {number}".encode()
        probe.wrote(key, probe.objects.put(key, body))
        stored = probe.objects.get(key)
        listed = [summary.size for summary in probe.objects.list_objects(key)]
        if stored is None or stored.body != body or listed != [len(body)]:
            found = None if stored is None else stored.body
            return fail(
                "read after write",
                f"round {number}: wrote {body!r}, read {found!r}, listed {listed}",
                _OTHER_STORE,
            )
    probe.objects.delete(key)
    if probe.objects.head(key) is not None:
        return fail("read after write", "an object is still there after its delete", _OTHER_STORE)
    return ok("read after write", "reads, lists and deletes show at once")


def _if_match(probe: _Probe) -> Finding:
    """An overwrite with the ETag of an older state is refused, with the present one taken."""
    key = probe.key("overwrite")
    first = probe.wrote(key, probe.objects.put(key, b"first"))
    second = probe.wrote(key, probe.objects.put(key, b"second", if_match=first.etag))
    try:
        probe.wrote(key, probe.objects.put(key, b"third", if_match=first.etag))
    except ObjectConflictError:
        return ok("conditional overwrite", "an old ETag is refused, the present one is taken")
    return fail(
        "conditional overwrite",
        f"an overwrite with ETag {first.etag} was taken although {second.etag} lay there",
        _OTHER_STORE,
    )


def _user_metadata(probe: _Probe) -> Finding:
    """A broker looks for its keys in lower case."""
    key = probe.key("metadata")
    sent = {"s3managedledgeroffloaderformatversion": "1", "role": "probe"}
    probe.wrote(key, probe.objects.put(key, b"", metadata=sent))
    head = probe.objects.head(key)
    found = None if head is None else dict(head.metadata)
    if found == sent:
        return ok("user metadata", "comes back with lower-case names and the same values")
    return fail("user metadata", f"sent {sent}, found {found}", _OTHER_STORE)


def _versions(probe: _Probe) -> Finding:
    """A bucket with versions must give the version asked for; one without has no version ids."""
    key = probe.key("versions")
    first = probe.wrote(key, probe.objects.put(key, b"one"))
    second = probe.wrote(key, probe.objects.put(key, b"two"))
    versioning = probe.objects.bucket_facts().versioning
    if kept_version(first.version_id) is None:
        if versioning == "Enabled":
            return fail("versions", "versioning is on, yet a write names no version", _OTHER_STORE)
        return ok("versions", "off: writes replace, and we compare ETags")
    try:
        old = probe.objects.get(key, version_id=first.version_id)
    except TierkeeperError as error:
        return fail("versions", str(error), _OTHER_STORE)
    if second.version_id == first.version_id or old is None or old.body != b"one":
        return fail("versions", "the first of two versions does not come back", _OTHER_STORE)
    return ok("versions", "on: an older version stays readable by its id")


_PROOFS: tuple[tuple[str, Callable[[_Probe], Finding]], ...] = (
    ("conditional create", _conditional_create),
    ("multipart create", _multipart_if_absent),
    ("part checksums", _part_checksums),
    ("read after write", _read_after_write),
    ("conditional overwrite", _if_match),
    ("user metadata", _user_metadata),
    ("versions", _versions),
)
PROMISES: tuple[str, ...] = tuple(name for name, _prove in _PROOFS)
