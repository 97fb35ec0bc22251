"""What an earlier run left is gone on with only where it is proven, or is the very same work."""

from dataclasses import replace
from hashlib import sha256
from uuid import UUID

import pytest

from tests.support.rewritten_records import rewrite
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.look.ledger.quarantine import quarantine, win_outcome
from tiering_assets.look.ledger.resume import (
    Certified,
    Complete,
    Work,
    find_certified,
    find_resumable,
    find_unfinished,
)
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt

OTHER = UUID(int=7)


@pytest.fixture
def scene():
    return Scene()


class Left:
    """A proven copy of ledger 0, and what becomes of it."""

    def __init__(self, scene):
        self.scene, self.stack, self.objects = scene, scene.process(), scene.world.objects
        self.certificate = scene.certify().certificate
        self.uid = self.certificate.record.uid
        self.attempt = self.stack.book.require(Attempt, keys.attempt(0, self.uid))

    def delete(self, key):
        self.objects.delete(self.stack.book.prefix + key)

    def unprove(self):
        self.delete(keys.certificate(0, self.uid))

    def abandon(self):
        assert win_outcome(self.stack, self.attempt, "abandon", reason="a test") is not None

    def doubt(self):
        quarantine(self.stack, 0, self.uid, ml_name=TOPIC, reason="rot", previous="")

    def forge(self):
        """The attempt's record is another one than its certificate was written for."""
        name = self.stack.book.prefix + keys.attempt(0, self.uid)
        rewrite(self.objects, name, ml_czxid=7)

    def another(self, uid=OTHER, **changes):
        """A later attempt at the same work, of which only the record is there."""
        self.scene.wait(60)
        record = replace(
            self.attempt.record,
            uid=uid,
            data_key=data_key(uid, 0),
            index_key=index_key(uid, 0),
            **changes,
        )
        return self.stack.book.create(keys.attempt(0, uid), record)

    def put(self, key, size):
        self.objects.put(key, b"x" * size, metadata={})


@pytest.fixture
def left(scene):
    return Left(scene)


def resumable(left):
    return find_resumable(left.stack, 0)


def certified(left):
    return find_certified(left.stack, 0, left.uid)


# ----- proven, or complete


def test_a_proven_copy_is_gone_on_with(left):
    assert resumable(left) == certified(left) == Certified(left.attempt, left.certificate)


@pytest.mark.parametrize("what", ["abandon", "doubt", "forge", "unprove"])
def test_what_is_given_up_doubted_or_unproven_is_no_proven_copy(left, what):
    getattr(left, what)()
    assert certified(left) is None
    found = resumable(left)
    if what in ("abandon", "doubt"):
        assert found is None
    else:
        assert isinstance(found, Complete)  # to be verified anew
        assert found.attempt.record.uid == left.uid


def test_one_that_a_run_has_begun_to_publish_is_proven_all_the_same(left):
    win_outcome(left.stack, left.certificate, "publish", reason="certified")
    assert certified(left) is not None
    assert resumable(left) == certified(left)


def test_what_nobody_tried_is_not_found(left):
    assert find_certified(left.stack, 0, OTHER) is None
    assert find_resumable(left.stack, 99) is None


@pytest.mark.parametrize("missing", ["data", "index", "some bytes"])
def test_without_both_whole_objects_nothing_is_complete(left, missing):
    left.unprove()
    record = left.attempt.record
    if missing == "some bytes":
        left.objects.overwrite(record.data_key, b"short")
    else:
        left.objects.delete(getattr(record, f"{missing}_key"))
    assert resumable(left) is None


def test_of_several_complete_ones_the_newest_is_verified(left):
    left.unprove()
    newer = left.another()
    left.put(newer.record.data_key, newer.record.object_bytes)
    left.put(newer.record.index_key, 10)
    assert resumable(left) == Complete(newer)


def test_a_proven_one_comes_before_a_newer_complete_one(left):
    newer = left.another()
    left.put(newer.record.data_key, newer.record.object_bytes)
    left.put(newer.record.index_key, 10)
    assert isinstance(resumable(left), Certified)


# ----- unfinished


def unfinished(left, **changes):
    record = left.attempt.record
    work = Work(record.ledger, record.block_bytes, record.object_bytes)
    return find_unfinished(left.stack, replace(work, **changes))


def upload(left, key, *parts):
    upload_id = left.objects.create_upload(key, metadata={})
    for number, body in enumerate(parts, 1):
        left.objects.upload_part(
            key, upload_id, part_number=number, body=body, sha256=sha256(body).digest()
        )
    return upload_id


@pytest.fixture
def begun(left):
    """A later attempt with one part of its data object."""
    attempt = left.another()
    return attempt, upload(left, attempt.record.data_key, b"one")


def test_an_attempt_that_died_in_mid_copy_is_gone_on_with(left, begun):
    attempt, upload_id = begun
    found = unfinished(left)
    assert found.attempt == attempt
    assert found.upload_id == upload_id
    assert [part.part_number for part in found.parts] == [1]


@pytest.mark.parametrize("what", ["ledger", "block_bytes", "object_bytes"])
def test_parts_of_other_work_are_not_gone_on_with(left, begun, what):
    ledger = left.attempt.record.ledger
    other = replace(ledger, length=7) if what == "ledger" else 7
    assert unfinished(left, **{what: other}) is None


@pytest.mark.parametrize("wanted", ["abandon", "publish"])
def test_one_whose_fate_is_decided_is_not_gone_on_with(left, begun, wanted):
    assert win_outcome(left.stack, begun[0], wanted, reason="a test") is not None
    assert unfinished(left) is None


def test_one_that_is_doubted_is_not_gone_on_with(left, begun):
    quarantine(left.stack, 0, OTHER, ml_name=TOPIC, reason="rot", previous="")
    assert unfinished(left) is None


def test_without_an_upload_there_is_nothing_to_go_on_with(left):
    left.another()
    assert unfinished(left) is None


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_whole_data_object_lacks_its_index_alone(left, begun, index, whole):
    """One of another size is none of ours, and one with its index is complete."""
    record = begun[0].record
    left.put(record.data_key, record.object_bytes if whole else 7)
    if index:
        left.put(record.index_key, 10)
    found = unfinished(left)
    if whole and not index:
        assert found.attempt == begun[0]
        assert (found.upload_id, found.parts) == (None, ())
    else:
        assert found is None


def test_the_upload_with_most_parts_of_this_very_object_is_taken(left, begun):
    key = begun[0].record.data_key
    fuller = upload(left, key, b"one", b"two")
    upload(left, f"{key}-index", b"1", b"2", b"3")
    upload(left, key)
    assert unfinished(left).upload_id == fuller


def test_an_upload_that_goes_while_it_is_looked_at_is_none(left, begun):
    key, upload_id = begun[0].record.data_key, begun[1]
    left.stack = left.scene.process()
    left.scene.at_call("objects", "list_parts", lambda: left.objects.abort_upload(key, upload_id))
    assert unfinished(left) is None
