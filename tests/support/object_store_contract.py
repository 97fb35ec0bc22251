"""What every ObjectStore must do, run against the simulator and against a real S3 server.

A subclass gives the fixture `store`: an empty bucket without versions.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from tiering_assets.resources.errors import (
    ObjectConflictError,
    ObjectExistsError,
    ObjectNotFoundError,
    ObjectStoreError,
)
from tiering_assets.resources.object_store.multipart import ExpectedPart, accept_parts
from tiering_assets.resources.object_store.store import ObjectStore, Part

FULL = b"\x5a" * (5 * 1024 * 1024)
TAIL = b"the last part may be small"


def sha256(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def expected(number: int, body: bytes) -> ExpectedPart:
    return ExpectedPart(
        part_number=number,
        size=len(body),
        sha256=sha256(body),
        etag=hashlib.md5(body).hexdigest(),
    )


def send(store: ObjectStore, key: str, upload_id: str, number: int, body: bytes) -> Part:
    return store.upload_part(key, upload_id, part_number=number, body=body, sha256=sha256(body))


class ObjectStoreContract:
    # ----- single objects

    @pytest.mark.parametrize("body", [b"", b"x", bytes(range(256)) * 9])
    def test_what_was_put_is_got(self, store, body):
        written = store.put("a/b.bin", body, metadata={"Role": "Index", "n": "7"})
        found = store.get("a/b.bin")
        assert found is not None
        assert found.body == body
        assert found.head.size == len(body)
        assert found.head.etag == written.etag
        assert found.head.metadata == {"role": "Index", "n": "7"}
        head = store.head("a/b.bin")
        assert (head.size, head.etag) == (len(body), written.etag)
        assert abs(head.server_date - head.last_modified) < timedelta(minutes=1)
        assert head.last_modified.tzinfo is not None

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_every_kind_of_buffer_is_sent_whole(self, store, kind):
        store.put("buffer", kind(b"0123456789"))
        assert store.get("buffer").body == b"0123456789"

    def test_a_slice_of_a_reused_buffer_sends_only_the_slice(self, store):
        reused = bytearray(b"0123456789")
        store.put("slice", memoryview(reused)[2:5])
        assert store.get("slice").body == b"234"

    def test_absent_is_none(self, store):
        assert store.head("nothing") is None
        assert store.get("nothing") is None

    def test_a_range_of_an_absent_key_is_not_found(self, store):
        with pytest.raises(ObjectNotFoundError, match="nothing"):
            store.get_range("nothing", start=0, length=1)

    def test_ranges_are_exact(self, store):
        body = bytes(range(256))
        store.put("r", body)
        assert store.get_range("r", start=0, length=256) == body
        assert store.get_range("r", start=10, length=1) == body[10:11]
        assert store.get_range("r", start=250, length=6) == body[250:]

    @pytest.mark.parametrize(("start", "length"), [(250, 7), (0, 257), (256, 1), (999, 3)])
    def test_a_range_past_the_end_is_an_error_not_a_short_answer(self, store, start, length):
        store.put("r", bytes(range(256)))
        with pytest.raises(ObjectStoreError):
            store.get_range("r", start=start, length=length)

    @pytest.mark.parametrize(("start", "length"), [(-1, 3), (0, 0), (5, -1)])
    def test_an_impossible_range_is_the_callers_mistake(self, store, start, length):
        with pytest.raises(ValueError, match="range"):
            store.get_range("r", start=start, length=length)

    def test_create_if_absent_loses_to_what_is_there(self, store):
        store.put("once", b"first", if_absent=True)
        with pytest.raises(ObjectExistsError, match="once"):
            store.put("once", b"second", if_absent=True)
        assert store.get("once").body == b"first"

    def test_of_eight_creators_one_wins(self, store):
        def create(n: int) -> int | None:
            try:
                store.put("race", b"%d" % n, if_absent=True)
            except ObjectExistsError:
                return None
            return n

        with ThreadPoolExecutor(8) as pool:
            winners = [n for n in pool.map(create, range(8)) if n is not None]
        assert len(winners) == 1
        assert store.get("race").body == b"%d" % winners[0]

    def test_if_match_writes_over_what_was_read_and_nothing_else(self, store):
        first = store.put("claim", b"1")
        second = store.put("claim", b"2", if_match=first.etag)
        with pytest.raises(ObjectConflictError, match="claim"):
            store.put("claim", b"3", if_match=first.etag)
        assert store.get("claim").body == b"2"
        store.put("claim", b"4", if_match=second.etag)

    def test_if_match_on_a_deleted_key_is_a_conflict(self, store):
        written = store.put("gone", b"1")
        store.delete("gone")
        with pytest.raises(ObjectConflictError, match="gone"):
            store.put("gone", b"2", if_match=written.etag)
        assert store.head("gone") is None

    def test_deleting_twice_is_done(self, store):
        store.put("d", b"1")
        store.delete("d")
        store.delete("d")
        assert store.head("d") is None

    def test_asking_for_a_version_that_is_not_there_is_never_answered_with_another(self, store):
        store.put("v", b"1")
        try:
            assert store.head("v", version_id="0" * 32) is None
        except ObjectStoreError as error:
            assert "version" in str(error)  # noqa: PT017 - both answers are right

    def test_the_versions_of_a_key_are_its_own(self, store):
        assert store.list_versions("w") == []
        store.put("w", b"123")
        store.put("w2", b"1")
        [version] = store.list_versions("w")
        assert (version.size, version.is_marker) == (3, False)

    def test_a_listing_holds_each_key_under_the_prefix_once(self, store):
        keys = {f"l/{n:03d}/x.json" for n in range(25)} | {"l/a b.json", "l/ü+%.json"}
        for key in keys | {"m/other"}:
            store.put(key, b"12345")
        listed = list(store.list_objects("l/"))
        assert sorted(item.key for item in listed) == sorted(keys)
        assert {item.size for item in listed} == {5}
        assert list(store.list_objects("nothing/")) == []

    def test_a_listing_begins_behind_a_key(self, store):
        for key in ("after/2", "after/3", "after/4/x", "afterwards"):
            store.put(key, b"1")
        behind = [item.key for item in store.list_objects("after/", start_after="after/2")]
        assert behind == ["after/3", "after/4/x"]
        below = [item.key for item in store.list_objects("after/", start_after="after/4/")]
        assert below == ["after/4/x"]
        assert list(store.list_objects("after/", start_after="after/5")) == []

    # ----- multipart uploads

    def test_an_upload_sent_out_of_order_becomes_one_object(self, store):
        upload = store.create_upload("big", metadata={"role": "DataBlock"})
        send(store, "big", upload, 2, TAIL)
        send(store, "big", upload, 1, FULL)
        listed = store.list_parts("big", upload)
        assert [(part.part_number, part.size) for part in listed] == [
            (1, len(FULL)),
            (2, len(TAIL)),
        ]
        match = accept_parts([expected(1, FULL), expected(2, TAIL)], listed)
        assert match.may_complete
        written = store.complete_upload("big", upload, match.accepted)
        head = store.head("big")
        assert (head.size, head.etag) == (len(FULL) + len(TAIL), written.etag)
        assert head.metadata == {"role": "DataBlock"}
        assert store.get_range("big", start=len(FULL), length=len(TAIL)) == TAIL
        assert store.list_parts("big", upload) is None

    def test_an_object_that_differs_from_the_sum_given_is_refused(self, store):
        with pytest.raises(ObjectStoreError, match="sum"):
            store.put("sum", TAIL, sha256=sha256(b"other"))
        assert store.head("sum") is None
        assert store.put("sum", TAIL, sha256=sha256(TAIL)).etag

    def test_a_part_that_differs_from_its_sum_is_refused(self, store):
        upload = store.create_upload("p", metadata={})
        with pytest.raises(ObjectStoreError, match="part 1"):
            store.upload_part("p", upload, part_number=1, body=TAIL, sha256=sha256(b"other"))
        store.abort_upload("p", upload)

    def test_a_part_sent_again_replaces_the_first(self, store):
        upload = store.create_upload("p", metadata={})
        send(store, "p", upload, 1, b"first")
        send(store, "p", upload, 1, b"second")
        match = accept_parts([expected(1, b"second")], store.list_parts("p", upload))
        store.complete_upload("p", upload, match.accepted)
        assert store.get("p").body == b"second"

    def test_a_part_that_a_late_task_wrote_over_never_gets_into_the_object(self, store):
        upload = store.create_upload("z", metadata={})
        good = send(store, "z", upload, 1, b"good")
        send(store, "z", upload, 1, b"late and different")
        try:
            store.complete_upload("z", upload, [good])
        except ObjectStoreError:
            assert store.head("z") is None
            store.abort_upload("z", upload)
        else:
            assert store.get("z").body == b"good"

    def test_completing_with_another_sum_than_the_part_has_is_refused(self, store):
        upload = store.create_upload("p", metadata={})
        part = send(store, "p", upload, 1, TAIL)
        with pytest.raises(ObjectStoreError):
            store.complete_upload("p", upload, [replace(part, sha256=sha256(b"other"))])
        assert store.head("p") is None
        store.abort_upload("p", upload)

    def test_completing_never_writes_over_an_object(self, store):
        store.put("taken", b"theirs")
        upload = store.create_upload("taken", metadata={})
        part = send(store, "taken", upload, 1, TAIL)
        with pytest.raises(ObjectExistsError, match="taken"):
            store.complete_upload("taken", upload, [part])
        assert store.get("taken").body == b"theirs"
        store.abort_upload("taken", upload)

    def test_completing_again_writes_nothing_and_says_so(self, store):
        upload = store.create_upload("c", metadata={})
        part = send(store, "c", upload, 1, TAIL)
        written = store.complete_upload("c", upload, [part])
        with pytest.raises((ObjectExistsError, ObjectNotFoundError)):
            store.complete_upload("c", upload, [part])
        assert store.head("c").etag == written.etag

    def test_after_an_abort_nothing_is_left_and_no_part_gets_in(self, store):
        upload = store.create_upload("ab", metadata={})
        send(store, "ab", upload, 1, TAIL)
        assert [u.upload_id for u in store.list_uploads("ab")] == [upload]
        store.abort_upload("ab", upload)
        assert store.list_parts("ab", upload) is None
        assert list(store.list_uploads("ab")) == []
        with pytest.raises(ObjectNotFoundError):
            send(store, "ab", upload, 2, TAIL)
        assert store.head("ab") is None
        store.abort_upload("ab", upload)

    def test_uploads_are_found_by_their_key(self, store):
        first = store.create_upload("u/one", metadata={})
        second = store.create_upload("u/two", metadata={})
        assert {(u.key, u.upload_id) for u in store.list_uploads("u/")} == {
            ("u/one", first),
            ("u/two", second),
        }
        assert [u.upload_id for u in store.list_uploads("u/two")] == [second]
        for upload in list(store.list_uploads("u/")):
            assert abs(upload.initiated - store.server_time()) < timedelta(minutes=1)
            store.abort_upload(upload.key, upload.upload_id)

    # ----- the bucket

    def test_a_plain_bucket_says_what_it_is(self, store):
        facts = store.bucket_facts()
        assert facts.exists
        assert facts.versioning == "Disabled"
        assert not facts.object_lock
