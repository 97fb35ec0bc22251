"""Copying: what an earlier run sent is used, what differs is sent again, and nobody else's is
touched.
"""

import re
from dataclasses import replace

import pytest

from tests.support.at_effect import at_effect
from tests.support.debug_log import debug_log
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.copy import offload
from tiering_assets.copy.offload import CopiedAttempt, copy_ledgers, give_up, object_metadata
from tiering_assets.look.ledger.plan import LedgerPlan, plan_ledger
from tiering_assets.look.ledger.quarantine import win_outcome
from tiering_assets.offload_format.keys import ROLE_KEY
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Outcome
from tiering_assets.resources.errors import (
    IntegrityError,
    ObjectNotFoundError,
    ObjectStoreError,
)
from tiering_assets.tasks.descriptors import BlockRow, TaskKind, revive


class _KilledError(Exception):
    pass


class Copier:
    """A run that copies one ledger of several blocks; `sent` are the parts that its tasks sent."""

    def __init__(self, scene, blocks=4):
        self.scene = scene
        entries = [bytes([number]) * 300 for number in range(blocks)]
        self.ledger_id = scene.fill(TOPIC, *entries)
        self.objects = scene.world.objects
        self.told = []
        self.again()
        assert len(self.plan.blocks) == blocks

    def again(self):
        """Another run of the same."""
        self.stack = replace(self.scene.process("copier"), narrate=self.told.append)
        plan = plan_ledger(self.stack, self.ledger_id)
        assert isinstance(plan, LedgerPlan)
        self.plan = plan
        really, self.sent = self.objects.__class__.upload_part, list[int]()

        def upload_part(key, upload_id, *, part_number, **how):
            self.sent.append(part_number)
            return really(self.objects, key, upload_id, part_number=part_number, **how)

        self.objects.upload_part = upload_part

    def copy(self):
        return copy_ledgers(self.stack, [self.plan])[self.ledger_id]

    def alter_rows(self, alter):
        really = self.stack.runner.run

        def run(tasks, *, progress):
            rows = [row for row in map(alter, really(tasks)) if row is not None]
            for row in rows:
                progress(row)
            return rows

        self.stack.runner.run = run

    def die_at(self, monkeypatch, point):
        @at_effect(point)
        def reach():
            raise _KilledError

        with monkeypatch.context() as patch:
            patch.setattr(offload, "reach", reach)
            with pytest.raises(_KilledError):
                self.copy()
        self.again()

    @property
    def attempts(self):
        book = self.scene.stack.book
        return [one.record for one in book.iter_records(Attempt, keys.attempts_of(self.ledger_id))]

    def outcome(self, uid):
        return self.scene.stack.book.read(Outcome, keys.outcome(self.ledger_id, uid))


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def copier(scene):
    return Copier(scene)


# ----- a new attempt


def test_each_block_is_a_part_and_its_ledger_is_one_line(copier):
    with debug_log("tiering_assets.copy.offload") as blocks:
        copied = copier.copy()
    assert isinstance(copied, CopiedAttempt)
    assert copied.parts_sent == 4
    assert sorted(copier.sent) == [1, 2, 3, 4]
    assert [line for line in blocks if "block 3" in line and "MB in" in line]
    assert not [line for line in blocks if "was sent before" in line]
    [line] = copier.told
    said = rf"ledger {copier.ledger_id}: \d+\.\d MB copied in \d+\.\d\d s, 4 blocks"
    assert re.fullmatch(said, line)


def test_a_ledger_of_one_block_needs_no_upload(scene):
    copier = Copier(scene, blocks=1)
    copier.objects.create_upload = pytest.fail
    copied = copier.copy()
    assert isinstance(copied, CopiedAttempt)
    assert copied.parts_sent == 1
    assert copier.sent == []


@pytest.mark.parametrize("role", ["data", "index"])
def test_each_object_says_what_it_is(copier, role):
    assert object_metadata(copier.stack, copier.plan, role=role)[ROLE_KEY] == role


# ----- an attempt that a run left


@pytest.mark.parametrize("etag", ["MD5", "another"])
def test_parts_that_were_sent_are_not_sent_again(copier, monkeypatch, etag):
    """A store that encrypts has ETags of its own: their SHA-256 says that they are the same."""
    copier.die_at(monkeypatch, "offload.parts_sent")
    if etag == "another":
        listing(copier, lambda parts: [replace(part, etag='"another"') for part in parts])
    with debug_log("tiering_assets.copy.offload") as blocks:
        copied = copier.copy()
    assert len(copier.attempts) == 1
    assert isinstance(copied, CopiedAttempt)
    assert (copied.parts_sent, copier.sent) == (0, [])
    assert [line for line in copier.told if line.endswith(": 4 of 4 parts are there")]
    assert [line for line in copier.told if line.endswith(", 4 blocks, 4 sent before")]
    assert [line for line in blocks if line.endswith("block 2: was sent before")]


@pytest.mark.parametrize("checksums", [False, True])
def test_a_part_whose_bytes_are_others_is_sent_again_alone(copier, monkeypatch, checksums):
    """A store may list parts with their SHA-256 or without."""
    copier.die_at(monkeypatch, "offload.parts_sent")
    copier.objects._list_checksums = checksums
    really = copier.objects.__class__.list_parts

    def list_parts(key, upload_id):
        parts = really(copier.objects, key, upload_id)
        if not copier.sent:
            parts[1] = replace(parts[1], etag='"another"', sha256=parts[1].sha256 and b"other")
        return parts

    copier.objects.list_parts = list_parts
    assert copier.copy().parts_sent == 1
    assert copier.sent == [2]


def test_where_only_the_index_is_missing_nothing_is_read_or_sent(copier, monkeypatch):
    copier.die_at(monkeypatch, "offload.completed")
    copier.stack.runner.run = lambda *_args, **_how: pytest.fail("read")
    copied = copier.copy()
    assert isinstance(copied, CopiedAttempt)
    assert (copied.rows, copied.parts_sent) == (None, 0)
    assert [line for line in copier.told if line.endswith(": its data object is complete")]
    [attempt] = copier.attempts
    assert copier.objects.peek(attempt.index_key) is not None


@pytest.mark.parametrize("same", [True, False])
def test_an_index_that_lies_there_must_be_this_one(copier, monkeypatch, same):
    copier.die_at(monkeypatch, "offload.completed")
    really = copier.objects.__class__.put

    def put(key, body, **how):
        if key.endswith("-index"):
            really(copier.objects, key, body if same else b"other bytes", metadata={})
        return really(copier.objects, key, body, **how)

    copier.objects.put = put
    copied = copier.copy()
    if same:
        assert isinstance(copied, CopiedAttempt)
    else:
        assert "already exists with other bytes" in str(copied.error)


def test_an_index_that_lay_there_and_is_gone_is_not_taken_for_ours(copier, monkeypatch):
    copier.die_at(monkeypatch, "offload.completed")
    really = copier.objects.__class__.put

    def put(key, body, **how):
        if key.endswith("-index"):
            really(copier.objects, key, body, metadata={})
            copier.stack.objects.get = lambda *_args, **_how: None  # it goes at once
        return really(copier.objects, key, body, **how)

    copier.objects.put = put
    assert "already exists with other bytes" in str(copier.copy().error)


# ----- blocks that fail


def in_row(part, **changes):
    return lambda row: replace(row, **changes) if row.part_number == part else row


def test_the_block_that_failed_is_named(copier):
    copier.alter_rows(in_row(3, error="a gap", error_class="IntegrityError"))
    result = copier.copy()
    assert type(result.error) is IntegrityError
    assert str(result.error) == f"ledger {copier.ledger_id} block 3: a gap"
    assert result.attempted
    assert copier.outcome(copier.attempts[0].uid).record.outcome == "abandon"
    assert [line for line in copier.told if line.endswith("block 3: a gap")]


def test_one_that_failed_and_was_done_in_the_end_is_not(copier):
    really = copier.stack.runner.run

    def run(tasks, **how):
        rows = really(tasks, **how)
        lost = [row for row in rows if row.part_number != 3]
        [third] = [row for row in rows if row.part_number == 3]
        first = replace(rows[0], error="a task that was lost", retryable=True)
        return [first, *lost, replace(third, error="a gap", error_class="IntegrityError")]

    copier.stack.runner.run = run
    assert "block 3: a gap" in str(copier.copy().error)


def test_a_row_that_was_lost_is_told_as_such(copier):
    copier.alter_rows(lambda row: None if row.part_number == 3 else row)
    assert "tasks ended without a row for blocks [3]" in str(copier.copy().error)


ROW = BlockRow(
    kind=TaskKind.COPY,
    attempt="a",
    ledger_id=0,
    part_number=1,
    entries=0,
    payload_bytes=0,
    block_length=0,
    sha256="",
    entries_sha256="",
    seconds=0.0,
    error="told",
)


@pytest.mark.parametrize(
    ("name", "retryable", "kind"),
    [
        ("ObjectNotFoundError", True, ObjectNotFoundError),
        ("IntegrityError", True, IntegrityError),
        ("", True, ObjectStoreError),
        ("OSError", True, ObjectStoreError),
        ("OSError", False, IntegrityError),
        ("MappingProxyType", False, IntegrityError),  # a class there, and no error of ours
        ("annotations", False, IntegrityError),
    ],
)
def test_an_error_of_a_task_keeps_its_class_where_it_is_one_of_ours(name, retryable, kind):
    error = revive(replace(ROW, error_class=name, retryable=retryable), "said")
    assert type(error) is kind
    assert str(error) == "said"


# ----- parts in the store that differ


def listing(copier, change):
    """The first listing before completion shows something else than what was sent."""
    really, times = copier.objects.__class__.list_parts, []

    def list_parts(key, upload_id):
        parts = really(copier.objects, key, upload_id)
        times.append(key)
        return change(parts) if len(times) == 1 else parts

    copier.objects.list_parts = list_parts


def without(part):
    return lambda parts: [one for one in parts if one.part_number != part]


def test_a_part_that_the_store_does_not_have_is_sent_again_alone(copier):
    listing(copier, without(2))
    copied = copier.copy()
    assert isinstance(copied, CopiedAttempt)
    assert copied.parts_sent == 5
    assert sorted(copier.sent) == [1, 2, 2, 3, 4]


def test_one_that_fails_then_fails_the_copy(copier):
    listing(copier, without(2))
    seen = []

    def alter(row):
        seen.append(row.part_number)
        if seen.count(2) == 2 and row.part_number == 2:
            return replace(row, error="no answer", error_class="ObjectStoreError", retryable=True)
        return row

    copier.alter_rows(alter)
    assert str(copier.copy().error) == f"ledger {copier.ledger_id} block 2: no answer"


def test_an_upload_that_somebody_aborted_is_told(copier):
    listing(copier, lambda _parts: None)
    result = copier.copy()
    assert isinstance(result.error, ObjectNotFoundError)
    assert "somebody aborted it" in str(result.error)


# ----- an answer that was lost


@pytest.mark.parametrize("there", ["whole", "short", "nothing"])
def test_a_complete_whose_answer_was_lost_is_judged_by_what_is_there(copier, there):
    really = copier.objects.__class__.complete_upload

    def complete(key, upload_id, parts, **how):
        if there != "nothing":
            really(copier.objects, key, upload_id, parts, **how)
        if there == "short":
            copier.objects.overwrite(key, b"short")
        raise ObjectStoreError("no answer")

    copier.objects.complete_upload = complete
    result = copier.copy()
    if there == "whole":
        assert isinstance(result, CopiedAttempt)
    else:
        assert str(result.error) == "no answer"


# ----- giving up


@pytest.fixture
def begun(copier, monkeypatch):
    """An attempt whose run died with its parts sent; its record, and the id of its upload."""
    copier.die_at(monkeypatch, "offload.parts_sent")
    [key] = copier.stack.book.keys(keys.attempts_of(copier.ledger_id))
    [(_key, upload_id)] = copier.objects.peek_uploads()
    return copier.stack.book.require(Attempt, key), upload_id


def abandon(copier, begun, *, upload_id=None):
    give_up(copier.stack, begun[0], reason="a test", upload_id=upload_id)


def test_what_is_given_up_is_abandoned_and_its_upload_aborted(copier, begun):
    other = f"{begun[0].record.data_key}-index"
    copier.objects.create_upload(other, metadata={})
    abandon(copier, begun, upload_id=begun[1])
    assert copier.outcome(begun[0].record.uid).record.outcome == "abandon"
    assert [key for key, _id in copier.objects.peek_uploads()] == [other]


def test_without_an_upload_none_is_aborted(copier, begun):
    copier.objects.abort_upload = pytest.fail
    abandon(copier, begun)
    assert copier.outcome(begun[0].record.uid).record.outcome == "abandon"


def test_what_another_run_is_about_to_publish_keeps_its_upload(copier, begun):
    win_outcome(copier.stack, begun[0], "publish", reason="certified")
    abandon(copier, begun, upload_id=begun[1])
    assert copier.outcome(begun[0].record.uid).record.outcome == "publish"
    assert len(copier.objects.peek_uploads()) == 1


def test_what_another_run_has_proven_is_not_given_up(scene):
    certificate = scene.certify().certificate
    stored = scene.stack.book.require(Attempt, keys.attempt(0, certificate.record.uid))
    give_up(scene.stack, stored, reason="a test", upload_id=None)
    assert scene.stack.book.read(Outcome, keys.outcome(0, certificate.record.uid)) is None


def test_uploads_of_other_objects_stay_when_strays_are_aborted(copier):
    """An index' key begins with its data object's."""
    really = copier.objects.__class__.create_upload

    def create_upload(key, *, metadata):
        really(copier.objects, key, metadata=metadata)  # its answer is lost, and it is sent again
        really(copier.objects, f"{key}-index", metadata=metadata)
        return really(copier.objects, key, metadata=metadata)

    copier.objects.create_upload = create_upload
    assert isinstance(copier.copy(), CopiedAttempt)
    [(key, _upload_id)] = copier.objects.peek_uploads()
    assert key.endswith("-index")
