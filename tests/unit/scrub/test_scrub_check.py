"""One look at a copy: what is wrong is found, what is right is not, and no more is read than may
be.
"""

from dataclasses import replace

import pytest

from tests.support.copies import BLOCK_BYTES, BROKERS, OURS, PAYLOADS, Copy
from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.offload_format.encoder import encode_index
from tiering_assets.records.models import Scrub
from tiering_assets.scrub.check import check_copy
from tiering_assets.scrub.plan import LOOK_REQUESTS, Depth, DueLook
from tiering_assets.tasks.descriptors import TaskKind

ALL = len(PAYLOADS) * BLOCK_BYTES


@pytest.fixture(params=[OURS, BROKERS])
def copy(request):
    return Copy(request.param)


@pytest.fixture
def ours():
    return Copy(OURS)


@pytest.fixture
def brokers():
    return Copy(BROKERS)


def check(copy, depth=Depth.DEEP, *, bytes_max=ALL, begun=None, listed=None, node=..., lost=None):
    stack = copy.scene.process()
    if lost is not None:
        stack = replace(stack, runner=LosesRows(stack.runner, *lost))
    candidate = copy.candidate
    now = stack.topics.read(candidate.ml_name)[0].ledger(copy.ledger_id)
    node = stack.ledgers.read(copy.ledger_id) if node is ... else node
    look = DueLook(candidate=candidate, depth=depth, bytes_max=bytes_max)
    return check_copy(stack, look, listed or now, node, begun)


def begun(copy, checked, **changes):
    """What is recorded of a look that its budget ended."""
    record = Scrub(
        ledger_id=copy.ledger_id,
        uid=copy.uid,
        ml_name=checked.look.candidate.ml_name,
        depth="deep",
        data_bytes=checked.sight.data.size,
        data_etag=checked.sight.data.etag,
        data_version_id=checked.sight.data.version_id,
        blocks=checked.blocks,
        blocks_read=checked.blocks_read,
        entries=checked.entries,
        payload_bytes=checked.payload_bytes,
        scrubbed_at=copy.scene.stack.now(),
        seconds=0.0,
        writer=copy.scene.stack.writer,
        findings=(),
        lost=(),
        previous=None,
    )
    return replace(record, **changes)


def finds(checked, said):
    return [one for one in checked.findings if said in one]


class LosesRows:
    """A runner that loses what tasks said of one block."""

    def __init__(self, runner, part, kind):
        self.runner, self.lost = runner, (part, kind)

    def run(self, tasks, **how):
        rows = self.runner.run(tasks, **how)
        return [row for row in rows if (row.part_number, row.kind) != self.lost]


# ----- a sound copy


def test_a_deep_look_reads_every_byte_of_a_sound_copy_and_finds_nothing(copy):
    found = check(copy)
    assert found.findings == ()
    assert found.whole
    assert (found.blocks, found.blocks_read, found.entries) == (6, 6, 6)
    assert (found.payload_bytes, found.bytes_read) == (1560, ALL)
    assert found.requests == LOOK_REQUESTS + 12


def test_a_shallow_look_reads_no_block(copy):
    found = check(copy, Depth.SHALLOW)
    assert found.findings == ()
    assert found.whole
    assert (found.blocks, found.blocks_read, found.bytes_read) == (6, 0, 0)
    assert found.requests == LOOK_REQUESTS


@pytest.mark.parametrize(
    ("bytes_max", "blocks"),
    [(1, 1), (BLOCK_BYTES, 1), (2 * BLOCK_BYTES, 2), (3 * BLOCK_BYTES - 1, 2)],
)
def test_a_budget_ends_a_look_between_blocks_and_after_one_at_least(copy, bytes_max, blocks):
    """What it did not read is nothing that is missing."""
    found = check(copy, bytes_max=bytes_max)
    assert found.findings == ()
    assert not found.whole
    assert (found.blocks_read, found.bytes_read) == (blocks, blocks * BLOCK_BYTES)


def test_the_next_look_goes_on_where_a_budget_ended_one(copy):
    first = check(copy, bytes_max=2 * BLOCK_BYTES)
    found = check(copy, begun=begun(copy, first))
    assert found.findings == ()
    assert (found.blocks_read, found.entries, found.payload_bytes) == (6, 6, 1560)
    assert found.bytes_read == ALL - 2 * BLOCK_BYTES


@pytest.mark.parametrize("part", [1, 3, 6])
def test_a_look_ends_before_the_block_whose_row_was_lost(copy, part):
    """And that is no damage; the next one reads it, and nothing counts twice."""
    first = check(copy, lost=(part, TaskKind.READ_BACK))
    assert (first.findings, first.whole) == ((), False)
    assert (first.blocks_read, first.entries) == (part - 1, part - 1)
    found = check(copy, begun=begun(copy, first))
    assert (found.findings, found.whole) == ((), True)
    assert (found.blocks_read, found.entries, found.payload_bytes) == (6, 6, 1560)


def test_a_block_that_bookies_were_not_heard_of_was_not_looked_at(brokers):
    """Nothing else vouches for a broker's copy."""
    found = check(brokers, lost=(3, TaskKind.READ_SOURCE))
    assert (found.findings, found.whole, found.blocks_read) == ((), False, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"data_etag": '"of another"'},
        {"data_version_id": "v9"},
        {"data_bytes": ALL + 1},
        {"blocks": 7},
        {"blocks_read": 6},
        {"blocks_read": 7},
    ],
)
def test_a_look_at_another_object_or_a_whole_one_is_not_gone_on_with(copy, change):
    """Its count is not one of these bytes."""
    first = check(copy, bytes_max=2 * BLOCK_BYTES)
    found = check(copy, begun=begun(copy, first, entries=5, **change))
    assert found.findings == ()
    assert (found.blocks_read, found.entries, found.bytes_read) == (6, 6, ALL)


@pytest.mark.parametrize(
    ("more", "what"), [({"entries": 3}, "entries"), ({"payload_bytes": 521}, "payload bytes")]
)
def test_all_parts_together_are_the_whole_ledger(copy, more, what):
    first = check(copy, bytes_max=2 * BLOCK_BYTES)
    found = check(copy, begun=begun(copy, first, **more))
    [finding] = found.findings
    told_by = "certificate" if copy.who == OURS else "index's ledger metadata"
    assert finding.startswith(f"{what}: the {told_by} says ")


# ----- what is gone


def test_where_both_objects_are_gone_nothing_is_left_to_look_at(copy):
    copy.lose(copy.data_key, copy.index_key)
    found = check(copy)
    assert found.sight is None
    assert finds(found, "has neither")
    assert found.whole


def test_a_data_object_that_is_gone_is_found_and_whatever_was_read_of_it_says_nothing(copy):
    first = check(copy, bytes_max=BLOCK_BYTES)
    earlier = begun(copy, first)
    copy.lose(copy.data_key)
    found = check(copy, begun=earlier)
    assert finds(found, "the data object is not there")
    assert (found.blocks_read, found.bytes_read) == (0, 0)


def test_an_index_that_is_gone_is_found_and_no_block_is_read_for_it(copy):
    copy.lose(copy.index_key)
    found = check(copy)
    assert finds(found, "the index object is not there")
    assert (found.blocks_read, found.bytes_read) == (0, 0)
    assert found.blocks == (6 if copy.who == OURS else 0)  # a certificate knows them, too


def test_an_index_of_garbage_is_found(copy):
    copy.excused()
    copy.scene.world.objects.overwrite(copy.index_key, b"garbage")
    found = check(copy)
    assert finds(found, "index object: ")
    assert found.bytes_read == 0


# ----- what is announced


@pytest.mark.parametrize("name", ["data", "index"])
def test_an_object_that_a_rule_will_delete_is_found(copy, name):
    copy.excused()
    copy.scene.world.objects.expire(getattr(copy, f"{name}_key"), 'expiry-date="soon"')
    assert finds(check(copy, Depth.SHALLOW), f"{name} object: a lifecycle rule deletes it")


@pytest.mark.parametrize("name", ["data", "index"])
def test_an_object_in_an_archive_is_found(copy, name):
    copy.excused()
    copy.scene.world.objects.move(getattr(copy, f"{name}_key"), "DEEP_ARCHIVE")
    assert finds(check(copy, Depth.SHALLOW), "DEEP_ARCHIVE")


# ----- certified bytes


def test_bytes_under_another_etag_are_not_the_certified_ones(ours):
    ours.excused()
    ours.scene.world.objects.overwrite(ours.data_key, ours.body(ours.data_key)[::-1])
    assert finds(check(ours, Depth.SHALLOW), "data object: ETag: expected")


@pytest.mark.parametrize("block", [0, 5])
def test_a_payload_that_rotted_is_found_by_the_certified_digest(ours, block):
    ours.flip(block)
    assert check(ours, Depth.SHALLOW).findings == ()
    assert finds(check(ours), f"block {block + 1}: SHA-256: expected")


def test_an_index_of_other_blocks_is_found(ours):
    """It decodes, and describes a data object of that size."""
    ours.excused()
    plans = plan_layout_from_sizes([260] * 6, block_bytes_max=10_000)
    longer = encode_index(plans, b"", sum(one.block_length for one in plans))
    ours.scene.world.objects.overwrite(ours.index_key, longer)
    assert finds(check(ours, Depth.SHALLOW), "index: blocks: expected [(0, 1, 0), (1, 2, 400)")


def test_what_is_certified_is_not_asked_of_bookies(ours):
    """A topic's count and BookKeeper's are compared with the certificate when it is made."""
    del ours.scene.cluster.bookies[ours.ledger_id]
    assert check(ours).findings == ()


# ----- a broker's bytes


def test_a_payload_that_rotted_is_found_by_what_the_bookies_serve(brokers):
    brokers.flip(3)
    assert finds(check(brokers), "block 4: entries digest: bookies serve")


def test_without_bookies_its_frames_are_all_that_can_be_read(brokers):
    brokers.flip(3)
    assert check(brokers, node=None).findings == ()


def listed(copy, **changes):
    info = copy.scene.stack.topics.read(copy.candidate.ml_name)[0].ledger(copy.ledger_id)
    return replace(info, **changes)


@pytest.mark.parametrize(("entries", "found"), [(None, False), (5, False), (6, False), (7, True)])
def test_a_topic_that_counts_more_than_the_index_contradicts_it(brokers, entries, found):
    """It may count less than there is: its last update may have been lost."""
    checked = check(brokers, Depth.SHALLOW, listed=listed(brokers, entries=entries))
    assert bool(finds(checked, "entries: the topic counts 7")) is found
    assert bool(checked.findings) is found


def node(copy, **changes):
    found = copy.scene.stack.ledgers.read(copy.ledger_id)
    return replace(found, metadata=replace(found.metadata, **changes))


@pytest.mark.parametrize("change", [{"last_entry_id": 6}, {"length": 1561}])
def test_another_ledger_in_bookkeeper_contradicts_the_index(brokers, change):
    found = check(brokers, Depth.SHALLOW, node=node(brokers, **change))
    assert finds(found, "last entry and length: BookKeeper has")
    assert check(brokers, Depth.SHALLOW, node=node(brokers)).findings == ()


def test_an_index_without_readable_ledger_metadata_is_found(brokers):
    brokers.excused()
    plans = plan_layout_from_sizes([260] * 6, block_bytes_max=BLOCK_BYTES)
    brokers.scene.world.objects.overwrite(brokers.index_key, encode_index(plans, b"x", ALL))
    found = check(brokers)
    assert finds(found, "ledger metadata in the index: ")
    assert finds(found, "block 6: nothing says where its entries end; not read")
