"""What a certificate stands on beside the read-back: each comparison, alone."""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.batch import pipeline
from tiering_assets.offload_format.encoder import encode_index
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.errors import IntegrityError, ObjectNotFoundError
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.verify import verify
from tiering_assets.verify.verify import verify_attempts


class Seen:
    """What a verification that is about to compare the index has in its hands."""

    def __init__(self, monkeypatch):
        self.scene = Scene()
        given = []
        really = verify._check_index

        def note(item, found):
            given.append((item, found))
            really(item, found)

        with monkeypatch.context() as patch:
            patch.setattr(verify, "_check_index", note)
            self.scene.certify()
        [(self.item, self.found)] = given

    @property
    def plan(self):
        return self.item.plan

    def compare(self, *, plan=None, found=None):
        item = replace(self.item, plan=plan or self.plan)
        verify._check_index(item, found or self.found)


@pytest.fixture
def seen(monkeypatch):
    return Seen(monkeypatch)


def longer(seen):
    """The index of a data object that ends a block later."""
    last = seen.plan.blocks[-1]
    more = replace(last, block_length=last.block_length + 128)
    body = encode_index([*seen.plan.blocks[:-1], more], b"", seen.plan.object_bytes + 128)
    return replace(seen.found, index_body=body, index=replace(seen.found.index, size=len(body)))


def other_entries(seen):
    [block] = seen.plan.blocks
    return {"plan": replace(seen.plan, blocks=(replace(block, first_entry_id=1),))}


def another_length(seen):
    return {"found": longer(seen)}


def another_data_size(seen):
    return {"found": replace(seen.found, data=replace(seen.found.data, size=1))}


def another_index_size(seen):
    return {"found": replace(seen.found, index=replace(seen.found.index, size=1))}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_entries, "index entries"),
        (another_length, "data object length in the index"),
        (another_data_size, "data object size"),
        (another_index_size, "index object size"),
    ],
)
def test_each_fact_of_the_index_is_compared(seen, change, said):
    seen.compare()
    with pytest.raises(IntegrityError, match=f"{said}: expected .*, found "):
        seen.compare(**change(seen))


def test_an_object_that_changes_while_it_is_read_is_not_certified(monkeypatch):
    scene = Scene()
    really = verify._read

    def overwrite_after(stack, items, found):
        rows = really(stack, items, found)
        for item in items:
            key = item.attempt.record.data_key
            scene.world.monitor.damaged.add(item.attempt.record.uid)
            scene.world.objects.overwrite(key, b"another object")
        return rows

    monkeypatch.setattr(verify, "_read", overwrite_after)
    outcome = scene.offload(publish=False)
    assert outcome.state != "verified"
    assert "changed while it was read back" in str(outcome)


@pytest.mark.parametrize("gone", ["data_key", "index_key"])
def test_an_object_that_is_not_there_is_named(monkeypatch, gone):
    scene = Scene()
    really = verify._objects

    def without(stack, record):
        scene.world.monitor.damaged.add(record.uid)
        scene.world.objects.delete(getattr(record, gone))
        return really(stack, record)

    monkeypatch.setattr(verify, "_objects", without)
    outcome = scene.offload(publish=False)
    assert outcome.state != "verified"
    assert str(outcome.error).endswith(
        f"-ledger-0{'-index' if gone == 'index_key' else ''} is not in sim-bucket"
    )


# ----- what the tasks bring back

BACK, SOURCE = TaskKind.READ_BACK, TaskKind.READ_SOURCE
CHECKED = DigestType.CRC32C.name


class Copied:
    """A ledger of twelve blocks whose copy lies in the bucket, to be verified."""

    def __init__(self, monkeypatch):
        self.scene = Scene()
        entries = [bytes([number]) * 300 for number in range(12)]
        self.ledger_id = self.scene.fill(TOPIC, *entries)
        given = []

        def stop(_stack, items):
            given.extend(items)
            return {}

        with monkeypatch.context() as patch:
            patch.setattr(pipeline, "verify_attempts", stop)
            self.scene.offload(self.ledger_id, publish=False)
        [self.item] = given
        assert len(self.item.plan.blocks) == 12
        self.stack = self.scene.process("verifier")
        self.read = []

    def verify(self, *, alter=lambda row: row, how_many="off", rows_lost=False):
        """The result, with `verify.second_replica` set so, and what the tasks say altered."""
        settings = self.stack.settings
        settings = replace(settings, verify=replace(settings.verify, second_replica=how_many))
        really, self.read = self.stack.runner.run, []

        def run(tasks, *, progress):
            for task in tasks:
                assert task.blocks
                self.read += [(task.kind, block.part_number) for block in task.blocks]
            # The simulated bookies have one replica, which they serve with its digests.
            served = [replace(t, source=replace(t.source, digest_type=CHECKED)) for t in tasks]
            return [row for row in map(alter, really(served)) if row is not None]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.stack.runner, "run", run)
            item = replace(self.item, source_rows=None) if rows_lost else self.item
            return verify_attempts(replace(self.stack, settings=settings), [item])[self.ledger_id]

    @property
    def sources_read(self):
        return sorted(part for kind, part in self.read if kind is SOURCE)

    @property
    def uid(self):
        return self.item.attempt.record.uid

    def is_quarantined(self):
        return self.scene.is_quarantined(self.ledger_id, self.uid)

    def is_certified(self):
        return self.stack.book.exists(keys.certificate(self.ledger_id, self.uid))


@pytest.fixture
def copied(monkeypatch):
    return Copied(monkeypatch)


@pytest.fixture
def unchecked(copied):
    """The bookies of the ledger keep no digest of its entries: replicas are compared instead."""
    plan = copied.item.plan
    source = replace(plan.source, digest_type=DigestType.DUMMY.name)
    copied.item = replace(copied.item, plan=replace(plan, source=source))
    return copied


def in_row(kind, **changes):
    return lambda row: replace(row, **changes) if (row.kind, row.part_number) == (kind, 2) else row


def lost(kind):
    return lambda row: None if (row.kind, row.part_number) == (kind, 2) else row


def test_a_sound_copy_is_certified_with_what_its_copying_took(copied):
    certificate = copied.verify().record
    assert isinstance(certificate, Certificate)
    assert certificate.copy_seconds is not None
    assert certificate.replicas_agreed is None


def test_without_the_copys_rows_all_is_read_from_the_bookies_again(copied):
    certificate = copied.verify(rows_lost=True).record
    assert copied.sources_read == list(range(1, 13))
    assert certificate.copy_seconds is None


@pytest.mark.parametrize(
    ("how_many", "parts"), [("off", []), ("sample", [1, 11, 12]), ("all", list(range(1, 13)))]
)
def test_so_much_is_read_from_another_replica_as_is_set(copied, how_many, parts):
    assert isinstance(copied.verify(how_many=how_many), Stored)
    assert copied.sources_read == parts


def test_of_what_bookies_keep_no_digest_of_all_is_read_from_another_replica(unchecked):
    certificate = unchecked.verify(how_many="off").record
    assert unchecked.sources_read == list(range(1, 13))
    assert certificate.replicas_agreed is not None


@pytest.mark.parametrize("kind", [BACK, SOURCE])
def test_a_block_that_differs_is_none(copied, kind):
    error = copied.verify(alter=in_row(kind, entries_sha256="0" * 64), how_many="all")
    assert isinstance(error, IntegrityError)
    assert ("replicas differ" in str(error)) == (kind is SOURCE)
    assert copied.is_quarantined()
    assert not copied.is_certified()


def test_a_replica_that_was_not_asked_has_not_agreed(unchecked):
    error = unchecked.verify(alter=lost(SOURCE))
    assert "block 2: bookies not read" in str(error)
    assert not unchecked.is_certified()


@pytest.mark.parametrize("retryable", [False, True])
def test_an_outage_says_nothing_about_the_copy(copied, retryable):
    error = copied.verify(alter=in_row(BACK, error="no answer", retryable=retryable))
    assert "block 2: no answer" in str(error)
    assert error.retryable is retryable
    assert copied.is_quarantined() is not retryable
    assert not copied.is_certified()


def test_a_copy_that_its_suite_refuses_is_not_certified(copied):
    really = copied.stack.judge

    def judge(facts):
        found = really(facts)
        return {i: replace(one, success=False, failed=("a check",)) for i, one in found.items()}

    copied.stack = replace(copied.stack, judge=judge)
    assert "expectation suite index_objects/1 failed: a check" in str(copied.verify())
    assert copied.is_quarantined()
    assert not copied.is_certified()


def test_an_object_that_goes_while_it_is_read_is_not_certified(copied):
    record = copied.item.attempt.record

    def delete(row):
        copied.scene.world.objects.delete(record.data_key)
        return row

    error = copied.verify(alter=delete)
    assert "changed while it was read back" in str(error)
    assert not copied.is_certified()


def test_where_nothing_is_there_nothing_is_run_or_judged(copied):
    copied.scene.world.objects.delete(copied.item.attempt.record.data_key)
    copied.stack = replace(copied.stack, judge=pytest.fail)
    copied.stack.runner.run = pytest.fail
    result = verify_attempts(copied.stack, [copied.item])[copied.ledger_id]
    assert isinstance(result, ObjectNotFoundError)
