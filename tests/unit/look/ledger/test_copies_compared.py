"""Two copies are equal where every entry is, however they are cut into blocks."""

from dataclasses import replace

import pytest

from tests.support.layouts import plan_layout_from_sizes
from tests.support.left_behind import leave_unproven
from tests.support.sim_scene import TOPIC, Scene
from tests.support.unchecked import unchecked
from tiering_assets.look.ledger.copies_compared import why_not_equal
from tiering_assets.offload_format.block import HEADER_BYTES
from tiering_assets.offload_format.encoder import BlockEncoder, encode_index
from tiering_assets.offload_format.keys import data_key, index_key


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def pair(scene):
    """Ours, which nobody proved, and the broker's, which the topic reads."""
    ours = leave_unproven(scene).record.uid
    assert scene.broker.offload(TOPIC)
    return ours, scene.context().uid


def compare(scene, pair, **offload):
    stack = scene.stack
    if offload:
        small = unchecked(stack.settings.offload, **offload)
        settings = replace(stack.settings, offload=small)
        stack = replace(stack, settings=settings)
    return why_not_equal(stack, 0, ml_name=TOPIC, uid=pair[0], read=pair[1])


def test_copies_with_the_same_entries_are_equal_by_ranges_of_any_length(scene, pair):
    assert compare(scene, pair) is None
    assert compare(scene, pair, read_range_bytes=1) is None


def put_copy(scene, payloads, *, block_bytes_max):
    """Both objects of a new attempt, in blocks of that size; how many those are."""
    uid, objects = scene.stack.new_uid(), scene.world.objects
    plans = plan_layout_from_sizes([*map(len, payloads)], block_bytes_max=block_bytes_max)
    blocks = []
    for plan in plans:
        encoder = BlockEncoder(plan.block_length)
        encoder.begin(plan)
        encoder.add_many(
            plan.first_entry_id, payloads[plan.first_entry_id : plan.last_entry_id + 1]
        )
        blocks.append(bytes(encoder.finish()))
    data = b"".join(blocks)
    objects.put(data_key(uid, 0), data)
    objects.put(index_key(uid, 0), encode_index(plans, b"metadata", len(data)))
    return uid, len(blocks)


def test_blocks_may_be_cut_elsewhere_and_entries_may_not(scene):
    payloads = [b"%d" % n * (7 * n % 40) for n in range(60)]
    one, blocks_of_one = put_copy(scene, payloads, block_bytes_max=400)
    other, blocks_of_other = put_copy(scene, payloads, block_bytes_max=1_500)
    assert blocks_of_one > blocks_of_other > 1
    assert compare(scene, (one, other)) is None
    for differing in (payloads[:-1], [*payloads, b""], [*payloads[:-2], *payloads[:-3:-1]]):
        another, _blocks = put_copy(scene, differing, block_bytes_max=400)
        assert compare(scene, (one, another)) is not None
    moved = [payloads[0], payloads[1][:3], payloads[1][3:] + payloads[2], *payloads[3:]]
    another, _blocks = put_copy(scene, moved, block_bytes_max=400)
    assert compare(scene, (one, another)) is not None


@pytest.mark.parametrize("which", [0, 1])
def test_every_flipped_byte_of_either_copy_is_found(scene, pair, which):
    key = data_key(pair[which], 0)
    body = scene.world.objects.peek(key)[0]
    found = []
    for at in range(len(body)):
        changed = body[:at] + bytes([body[at] ^ 4]) + body[at + 1 :]
        scene.world.objects.rot(key, changed)
        found.append(compare(scene, pair) is not None)
    assert len(found) > HEADER_BYTES
    assert all(found)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("key_of", [data_key, index_key])
def test_a_copy_without_one_of_its_objects_is_equal_to_none(scene, pair, which, key_of):
    scene.world.objects.delete(key_of(pair[which], 0))
    assert "it may be the only sound copy" in compare(scene, pair)


def test_what_differs_is_told_with_both_sides(scene, pair):
    key = data_key(pair[1], 0)
    body = scene.world.objects.peek(key)[0]
    at = body.index(b"first") if b"first" in body else 150
    scene.world.objects.rot(key, body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :])
    told = compare(scene, pair)
    assert told.startswith("what the topic reads was not found equal to it: its entries (")
    assert f"of attempt {pair[1]}; it may be the only sound copy" in told
