"""Every request of the S3 client has its first try struck, and comes to the answer it has without.

All before the table is made through a client that no proxy is in front of.
"""

from __future__ import annotations

import hashlib
import itertools
import uuid
from dataclasses import replace

import pytest

from tests.stack.s3_fixture import s3_server  # noqa: F401 - the fixture
from tests.support.http_proxy import Do, HttpProxy
from tests.support.s3_chaos import FAULTS
from tiering_assets.resources.errors import ObjectExistsError, ObjectNotFoundError, ObjectStoreError
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import StoreSettings

pytestmark = pytest.mark.stack

BODY = bytes(range(256)) * 1024
PART = BODY * 20  # 5 MiB
DONE_AND_LOST = {Do.LOSE_ANSWER, Do.STALL, Do.SHORT, Do.CUT}


def body_of(store, key):
    found = store.get(key)
    return None if found is None else found.body


@pytest.fixture(scope="module")
def settings(s3_server):  # noqa: F811
    settings = StoreSettings(
        endpoint=s3_server.endpoint,
        bucket=f"b-{uuid.uuid4().hex[:12]}",
        access_key=s3_server.access_key,
        secret_key=s3_server.secret_key,
        read_timeout_s=1.5,
    )
    S3ObjectStore(settings).create_bucket()
    return settings


class EveryOther:
    """Strike the first try of each request, and never its second."""

    def __init__(self, doing):
        self.doing = doing
        self.tried = set()

    def __call__(self, method, path):
        if (method, path) in self.tried:
            self.tried.discard((method, path))
            return Do.PASS
        self.tried.add((method, path))
        return self.doing


@pytest.mark.parametrize("doing", FAULTS, ids=lambda doing: doing.name)
def test_a_request_struck_once_has_the_answer_of_one_that_was_not(settings, doing):
    prefix = f"{doing.name}/"
    key, absent, upload_key = (prefix + name for name in ("there", "absent", "upload"))
    real = S3ObjectStore(replace(settings, read_timeout_s=20.0))
    real.put(key, BODY, metadata={"a": "b"})
    with HttpProxy(settings.endpoint, EveryOther(doing), stall_s=3.0) as proxy:
        struck = itertools.count()
        store = S3ObjectStore(replace(settings, endpoint=proxy.url))

        def asked(answer):
            """The answer, of which at least one try was struck."""
            assert len(proxy.struck) > next(struck)
            return answer

        head = asked(store.head(key))
        assert (head.size, head.metadata) == (len(BODY), {"a": "b"})
        assert asked(store.get(key)).body == BODY
        assert asked(store.get_range(key, start=7, length=70_000)) == BODY[7:70_007]
        assert asked(store.get(absent)) is None
        assert asked(store.head(absent)) is None
        with pytest.raises(ObjectNotFoundError):
            store.get_range(absent, start=0, length=9)
        asked(store.put(prefix + "put", BODY))
        assert body_of(real, prefix + "put") == BODY
        assert [x.key for x in asked(store.list_objects(prefix))] == [prefix + "put", key]
        if doing in DONE_AND_LOST:  # the second try meets what the first one made
            with pytest.raises(ObjectExistsError):
                store.put(prefix + "new", BODY, if_absent=True)
        else:
            store.put(prefix + "new", BODY, if_absent=True)
        assert body_of(real, prefix + "new") == BODY

        upload_id = asked(store.create_upload(upload_key, metadata={}))
        digest = hashlib.sha256(PART).digest()
        part = asked(
            store.upload_part(upload_key, upload_id, part_number=1, body=PART, sha256=digest)
        )
        assert part.etag in {x.etag for x in asked(store.list_parts(upload_key, upload_id))}
        if doing in DONE_AND_LOST:
            with pytest.raises(ObjectStoreError):
                store.complete_upload(upload_key, upload_id, [part])
        else:
            store.complete_upload(upload_key, upload_id, [part])
        assert body_of(real, upload_key) == PART
        for upload in store.list_uploads(upload_key):
            store.abort_upload(upload_key, upload.upload_id)
            asked(None)
        assert [*real.list_uploads(upload_key)] == []
        store.delete(key)
        asked(None)
        assert real.head(key) is None
