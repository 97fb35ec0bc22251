"""What somebody who may write to the bucket can do to records: bytes put over them, digests that
fit.

The product never overwrites a record, so all of this goes to the object store directly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from tiering_assets.records.signature import record_digest
from tiering_assets.resources.object_store.records import encode_record
from tiering_assets.resources.object_store.store import ObjectStore


def raw(objects: ObjectStore, key: str) -> bytes:
    found = objects.get(key)
    assert found is not None, f"{key} is not in the bucket"
    return found.body


def record_bytes(body: dict[str, Any]) -> bytes:
    """Canonical bytes with a digest that fits."""
    whole = {name: value for name, value in body.items() if name != "digest"}
    return encode_record({**whole, "digest": record_digest(whole)})


def rewrite(objects: ObjectStore, key: str, **values: Any) -> str:
    """Change fields of a record; the SHA-256 of its new bytes."""
    body = record_bytes({**json.loads(raw(objects, key)), **values})
    objects.put(key, body, content_type="application/json")
    return sha256(body).hexdigest()


@contextmanager
def restored(objects: ObjectStore, *names: str) -> Iterator[None]:
    """Put back what lies at these keys now, whatever happens to it."""
    before = {}
    for name in names:
        found = objects.get(name)
        assert found is not None, f"{name} is not in the bucket"
        before[name] = found
    try:
        yield
    finally:
        for name, found in before.items():
            objects.put(name, found.body, metadata=found.head.metadata)
