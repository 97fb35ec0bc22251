"""What a certificate stands on beside the read-back: each comparison, alone."""

from dataclasses import replace

import pytest

from resources.errors import IntegrityError
from tests.support.sim_scene import Scene
from tiering_assets.offload_format.encoder import encode_index
from tiering_assets.steps import verify


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
    assert "is not in" in str(outcome)
