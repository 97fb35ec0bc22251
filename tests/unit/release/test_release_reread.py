"""Read again before the source goes: only a copy that differs is quarantined; an outage says
nothing of it.
"""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.release import reread as release_reread
from tiering_assets.release.reread import reread_before_release
from tiering_assets.resources.errors import MetadataError
from tiering_assets.tasks.descriptors import TaskKind

BACK, SOURCE = TaskKind.READ_BACK, TaskKind.READ_SOURCE


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def stack(scene):
    return scene.process("release")


@pytest.fixture
def copy(scene):
    """A ledger of several blocks: its certificate, published."""
    ledger_id = scene.fill(TOPIC, *(bytes([number]) * 150 for number in range(9)))
    certificate = scene.publish(ledger_id).certificate
    assert len(certificate.record.blocks) > 2
    return certificate


@pytest.fixture
def reread(scene, stack, copy):
    """Read it again: why it must wait, None when it may go."""
    ledger_id = copy.record.ledger.ledger_id

    def reread():
        node = stack.ledgers.read(ledger_id)
        return reread_before_release(stack, {ledger_id: (copy, node)}).waiting.get(ledger_id)

    return reread


def alter_rows(stack, alter):
    """What tasks bring back is another thing; the kinds that they were run for, in order."""
    really, kinds = stack.runner.run, []

    def run(tasks, **how):
        kinds.append({task.kind for task in tasks})
        return [row for row in map(alter, really(tasks, **how)) if row is not None]

    stack.runner.run = run
    return kinds


def is_quarantined(scene, copy):
    return scene.is_quarantined(copy.record.ledger.ledger_id, copy.record.uid)


def test_a_sound_copy_may_go_and_each_side_is_read_once(stack, reread):
    kinds = alter_rows(stack, lambda row: row)
    assert reread() is None
    assert kinds == [{SOURCE}, {BACK}]  # the object is read last, for it alone stays


@pytest.mark.parametrize(("kind", "retryable"), [(BACK, True), (SOURCE, True), (SOURCE, False)])
def test_a_block_that_could_not_be_read_says_nothing_about_the_copy(
    scene, stack, copy, reread, kind, retryable
):
    def fail(row):
        if row.kind is kind and row.part_number == 2:
            return replace(row, error="no answer", retryable=retryable)
        return row

    alter_rows(stack, fail)
    assert str(reread()) == "could not be read again: block 2: no answer"
    assert not is_quarantined(scene, copy)


@pytest.mark.parametrize("kind", [BACK, SOURCE])
def test_a_row_that_was_lost_says_nothing_about_the_copy(scene, stack, copy, reread, kind):
    alter_rows(stack, lambda row: None if (row.kind, row.part_number) == (kind, 2) else row)
    assert "its tasks ended without a row for blocks [2]" in str(reread())
    assert not is_quarantined(scene, copy)


def test_a_block_that_is_broken_is_one_though_its_task_stopped_there(scene, stack, copy, reread):
    def stop(row):
        if row.kind is BACK and row.part_number == 2:
            return replace(row, error="block header: magic", retryable=False)
        return None if row.kind is BACK and row.part_number > 2 else row

    alter_rows(stack, stop)
    assert "the copy differs: block 2: block header: magic" in str(reread())
    assert is_quarantined(scene, copy)


def test_a_ledger_whose_bookies_are_not_found_is_not_judged(
    scene, stack, copy, reread, monkeypatch
):
    def unresolved(*_args):
        raise MetadataError("no address")

    monkeypatch.setattr(release_reread, "source_of", unresolved)
    kinds = alter_rows(stack, lambda row: row)
    assert str(reread()) == "could not be read again: no address"
    assert kinds == []
    assert not is_quarantined(scene, copy)
