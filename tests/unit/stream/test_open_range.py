"""What is seen behind a stream's end: what is proven, without a hole, and why there is no more."""

from dataclasses import replace

import pytest

from tests.support.sim_cluster import BOOKIE
from tests.support.sim_scene import TOPIC
from tests.support.stream_scene import StreamScene
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState, DigestType
from tiering_assets.resources.bookkeeper.ledger_metadata import (
    decode_ledger_metadata,
    encode_ledger_metadata,
)
from tiering_assets.resources.bookkeeper.readable import BoundBy
from tiering_assets.resources.bookkeeper.tail import TailLook
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.stream.open_range import OpenRange, look_at_range


@pytest.fixture
def scene():
    return StreamScene()


def look(scene, stack=None, *, enough=2**30):
    found = look_at_range(stack or scene.process(), scene.chain(), enough_bytes=enough)
    assert isinstance(found, OpenRange)
    return found


def ranges(found):
    return [(one.ledger_id, one.first_entry_id, one.last_entry_id) for one in found.ledgers]


def edit(scene, ledger_id, **changes):
    """Change a ledger's metadata as another writer would."""
    path = scene.cluster.path(ledger_id)
    metadata = decode_ledger_metadata(ledger_id, scene.cluster.metadata.nodes[path].data)
    scene.cluster.metadata.put(path, encode_ledger_metadata(replace(metadata, **changes)))


def unlist(scene, ledger_id):
    """What a broker's trim does to the topic's node."""
    path = managed_ledger_path(TOPIC)
    message = decode_managed_ledger(scene.cluster.metadata.nodes[path].data).message_copy()
    kept = [info for info in message.ledgerInfo if info.ledgerId != ledger_id]
    del message.ledgerInfo[:]
    message.ledgerInfo.extend(kept)
    now = decode_managed_ledger(message.SerializeToString())
    client = scene.cluster.metadata.client()
    version = scene.cluster.metadata.nodes[path].stat.version
    client.set(path, encode_managed_ledger(now), expected_version=version)


def test_a_later_ledger_is_seen_from_its_first_entry(scene):
    first = scene.write(b"a", b"b", b"c", b"d")
    scene.cut()
    scene.roll_over()
    second = scene.write(b"x", b"y")
    assert first != second
    assert ranges(look(scene)) == [(second, 0, 1)]


def test_a_sealed_ledger_is_proven_by_its_end_and_an_open_one_by_what_is_confirmed(scene):
    scene.write(b"a")
    scene.roll_over()
    scene.write(b"b")
    sealed, written = look(scene).ledgers
    assert (sealed.bound.by, written.bound.by) == (BoundBy.CLOSED, BoundBy.LAC)
    assert (written.bytes_before, written.bytes_upto) == (0, 1)


def test_what_is_in_recovery_is_left(scene):
    edit(scene, scene.write(b"a"), state=BookKeeperState.IN_RECOVERY)
    found = look(scene)
    assert (found.ledgers, found.ends) == ((), "in recovery")


def test_what_carries_no_digest_is_left(scene):
    edit(scene, scene.write(b"a"), digest_type=DigestType.DUMMY)
    found = look(scene)
    assert (found.ledgers, found.ends) == ((), "unchecked")


def test_behind_a_ledger_that_is_still_open_nothing_is_seen(scene):
    """The topic lists one behind it: its metadata, read a moment ago, is older than that."""
    first = scene.write(b"a")
    scene.roll_over()
    scene.write(b"b")
    edit(scene, first, state=BookKeeperState.OPEN, last_entry_id=-1, length=0)
    found = look(scene)
    assert (ranges(found), found.ends) == ([(first, 0, 0)], "tail")


def test_a_bookie_that_confirms_less_than_before_is_no_alarm(scene):
    scene.write(b"a", b"b", b"c")
    scene.cut()
    scene.cluster.unconfirmed = 2
    assert look(scene).ledgers == ()


def test_entries_before_a_segment_that_have_other_lengths_now_are_an_alarm(scene):
    ledger_id = scene.write(b"a", b"b")
    scene.cut()
    scene.write(b"c")
    scene.cluster.bookies[ledger_id][0] = b"longer"
    with pytest.raises(IntegrityError, match="payload bytes up to entry 1: expected 2"):
        look(scene)


def test_looking_ends_where_one_segment_is_full(scene):
    ids = []
    for _ in range(4):
        ids.append(scene.write(b"x" * 88))
        scene.roll_over()
    found = look(scene, enough=150)
    assert ([one.ledger_id for one in found.ledgers], found.ends) == (ids[:2], "enough")


def test_who_gets_no_word_of_what_is_confirmed_says_so(scene):
    scene.write(b"a")
    said = []
    silent = TailLook(confirmed={}, failures={BOOKIE: TimeoutError("silent")}, visible=-1)
    stack = replace(scene.process(), narrate=lambda line: said.append(str(line)))
    look(scene, stack)
    assert said == []
    look(scene, replace(stack, look_at_tail=lambda _settings, _source: silent))
    assert len(said) == 1
    assert f"{BOOKIE}: silent" in said[0]


# ----- what is not there any more


def test_what_was_trimmed_before_it_was_assigned_is_said(scene):
    first = scene.write(b"a", b"b")
    scene.cut()
    scene.write(b"c")
    scene.roll_over()
    second = scene.write(b"d")
    unlist(scene, first)
    skipped = look(scene).skipped
    assert (skipped.from_ledger_id, skipped.from_entry_id) == (first, 2)
    assert (skipped.to_ledger_id, skipped.to_entry_id) == (second, 0)
    scene.cut()
    assert scene.assigned(2).record.skipped == skipped


def test_where_nothing_comes_behind_a_trim_nothing_is_skipped_yet(scene):
    first = scene.write(b"a")
    scene.roll_over()
    unlist(scene, first)
    found = look(scene)
    assert (found.ledgers, found.skipped) == ((), None)


def test_where_nothing_was_trimmed_nothing_is_skipped(scene):
    scene.write(b"a")
    scene.roll_over()
    scene.write(b"b")
    assert look(scene).skipped is None


def test_a_segment_ends_before_a_ledger_that_is_gone_from_bookies_and_the_next_one_says_so(scene):
    first = scene.write(b"a")
    scene.roll_over()
    second = scene.write(b"b")
    scene.roll_over()
    third = scene.write(b"c")
    scene.cluster.delete_ledger(second)
    found = look(scene)
    assert (ranges(found), found.ends, found.skipped) == ([(first, 0, 0)], "released", None)
    scene.cut()
    found = look(scene)
    assert ranges(found) == [(third, 0, 0)]
    assert (found.skipped.from_ledger_id, found.skipped.from_entry_id) == (first, 1)
    assert found.skipped.to_ledger_id == third


def test_a_ledger_that_was_covered_before_it_was_released_leaves_no_gap(scene):
    first = scene.write(b"a", b"b")
    scene.cut()
    scene.roll_over()
    second = scene.write(b"c")
    scene.cluster.delete_ledger(first)
    found = look(scene)
    assert (ranges(found), found.skipped) == ([(second, 0, 0)], None)
