"""Segments of a simulated topic: assigned once, copied, read back, certified, one by one."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sim_cluster import BOOKIE
from tests.support.sim_scene import TOPIC
from tests.support.stream_scene import StreamScene
from tiering_assets.records import keys
from tiering_assets.records.stream_models import SegmentFailed, SegmentGivenUp
from tiering_assets.resources.bookkeeper.tail import TailLook
from tiering_assets.resources.errors import (
    ExpectationError,
    IntegrityError,
    ObjectStoreError,
)
from tiering_assets.stream.assign import TakenByAnother, assign_next
from tiering_assets.stream.assign_rules import NothingDue, Resume
from tiering_assets.stream.offload_segment import Offloaded, offload_assigned
from tiering_assets.stream.open_range import TopicGone


@pytest.fixture
def scene():
    return StreamScene()


def failures(scene, number=1):
    prefix = keys.of_segment(TOPIC, scene.chain().stream, number)
    return [
        one.record
        for key in scene.stack.book.keys(prefix)
        if ".failed/" in key
        for one in [scene.stack.book.require(SegmentFailed, key)]
    ]


# ----- what is in a segment


def test_what_lies_in_an_open_ledger_is_in_the_bucket_and_nothing_is_changed(scene):
    ledger_id = scene.write(b"a", b"bb", b"", b"ccc" * 200)
    before = dict(scene.cluster.metadata.nodes)
    certificate = scene.cut()
    assert scene.held(certificate) == scene.written(ledger_id)
    assert (certificate.record.entries, certificate.record.payload_bytes) == (4, 603)
    assert scene.cluster.metadata.nodes == before  # no node of a topic or ledger was written
    assert isinstance(scene.next(), NothingDue)


def test_a_segment_goes_over_a_rollover_and_the_next_one_goes_on(scene):
    first = scene.write(b"a" * 300, b"b" * 300)
    scene.roll_over()
    second = scene.write(b"c")
    one = scene.cut()
    scene.write(b"d", b"e")
    other = scene.cut()
    assert [one.ledger_id for one in one.record.ledgers] == [first, second]
    assert scene.held(one) | scene.held(other) == scene.written(first, second)
    assert scene.held(one).keys().isdisjoint(scene.held(other))
    assert scene.assigned(2).record.previous == scene.assigned(1).sha256


def test_entries_that_nobody_confirms_are_left_however_visible(scene):
    ledger_id = scene.write(b"a", b"b", b"c")
    scene.cluster.unconfirmed = 2
    assert scene.held(scene.cut()) == {(ledger_id, 0): b"a"}
    assert isinstance(scene.next(), NothingDue)
    scene.cluster.unconfirmed = 0
    assert scene.held(scene.cut()) == {(ledger_id, 1): b"b", (ledger_id, 2): b"c"}


def test_where_no_bookie_says_what_is_confirmed_nothing_is_assigned(scene):
    scene.write(b"a")
    silent = TailLook(confirmed={}, failures={BOOKIE: TimeoutError("silent")}, visible=-1)
    stack = replace(scene.process(), look_at_tail=lambda _settings, _source: silent)
    assert isinstance(scene.next(stack), NothingDue)


@settings(max_examples=60, deadline=None)
@given(
    ledgers=st.lists(st.lists(st.integers(0, 700), max_size=12), min_size=1, max_size=5),
    size=st.integers(50, 3000),
    looks=st.lists(st.integers(0, 12), max_size=5),
)
def test_segments_tile_what_was_written_whatever_its_sizes_and_the_times_of_looks(
    ledgers, size, looks
):
    scene = StreamScene()
    looks, ids = [*looks], []
    held: dict[tuple[int, int], bytes] = {}

    def take():
        while isinstance(found := scene.next(size=size, cut=True), Offloaded):
            record = found.segment.record
            entries = scene.held(found.segment)
            assert held.keys().isdisjoint(entries)
            held.update(entries)
            frames = record.payload_bytes + 12 * record.entries
            assert frames <= size or record.entries == 1

    for sizes in ledgers:
        for n, length in enumerate(sizes):
            ids.append(scene.write(bytes([n % 256]) * length))
            if looks and looks[0] == n:
                looks.pop(0)
                take()
        if sizes:
            scene.roll_over()
    take()
    assert held == scene.written(*set(ids))


# ----- when a segment is cut


def test_it_is_cut_by_size_and_the_rest_stays(scene):
    ledger_id = scene.write(*(b"x" * 88 for _ in range(10)))
    assert scene.held(scene.cut(size=250, cut=False)).keys() == {(ledger_id, 0), (ledger_id, 1)}
    assert scene.assigned(1).record.trigger == "size"


def test_an_entry_larger_than_the_size_is_a_segment_alone(scene):
    ledger_id = scene.write(b"x" * 5000, b"y")
    assert scene.held(scene.cut(size=100, cut=False)).keys() == {(ledger_id, 0)}


def test_by_time_all_that_is_proven_is_cut_and_not_a_second_before(scene):
    scene.write(b"a", b"b")
    assert isinstance(scene.next(cut=False, seen_s=599), NothingDue)
    assert scene.cut(cut=False, seen_s=600).record.entries == 2
    assert scene.assigned(1).record.trigger == "time"
    assert isinstance(scene.next(cut=False, seen_s=6000), NothingDue)  # nothing, however late


# ----- one after the other


def test_while_a_segment_is_not_there_no_other_is_assigned(scene):
    scene.write(b"a")
    stack = replace(scene.process(), objects=_Refusing(scene.process().objects))
    with pytest.raises(ObjectStoreError):
        scene.next(stack)
    scene.write(b"b")
    assigned = scene.assigned(1)
    found = assign_next(scene.process(), scene.chain(), scene.when())
    assert isinstance(found, Resume)
    assert scene.cut().record.entries == 1  # what was assigned, and no more
    assert scene.assigned(1) == assigned
    assert scene.cut().record.entries == 1


def test_who_gives_a_segment_up_lets_the_next_one_go_on(scene):
    scene.write(b"a")
    assigned = scene.assign()
    record = assigned.record
    scene.stack.book.create(
        keys.segment_given_up(TOPIC, record.stream, 1),
        SegmentGivenUp(
            ml_name=TOPIC,
            stream=record.stream,
            number=1,
            ledger_ids=(1,),
            reason="a test",
            author="ops",
            given_up_at=scene.stack.now(),
            writer=scene.stack.writer,
            previous=assigned.sha256,
        ),
    )
    ledger_id = scene.write(b"b")
    assert scene.held(scene.cut()) == {(ledger_id, 1): b"b"}


def test_of_two_runs_that_decide_at_once_one_assigns(scene):
    scene.write(b"a")
    chain = scene.chain()
    one = scene.assign(scene.process("one"))
    scene.write(b"b")
    other = assign_next(scene.process("other"), chain, scene.when())
    assert isinstance(other, TakenByAnother)
    assert scene.assigned(1) == one


def test_two_runs_that_copy_one_segment_leave_one_certificate(scene):
    scene.write(b"a", b"b")
    assigned = scene.assign()
    one = scene.cut()
    assert offload_assigned(scene.process("other"), assigned).record.uid == one.record.uid


# ----- what must not be believed


def test_bytes_that_changed_in_the_bucket_are_no_certificate(scene):
    scene.write(b"a" * 300, b"b" * 300)
    with pytest.raises(IntegrityError, match=r"differs from what the bookies serve|expected"):
        scene.next(replace(scene.process(), objects=_Rotting(scene)))
    [failure] = failures(scene)
    assert failure.stage == "verify"
    assert isinstance(assign_next(scene.process(), scene.chain(), scene.when()), Resume)
    assert scene.cut().record.entries == 2


def test_a_suite_that_fails_is_no_certificate(scene):
    scene.write(b"a")
    stack = scene.process()
    failing = replace(
        stack,
        judge_segment=lambda facts: replace(
            stack.judge_segment(facts), success=False, failed=("groups",)
        ),
    )
    with pytest.raises(ExpectationError, match="groups"):
        scene.next(failing)
    assert not scene.chain().newest.offloaded


def test_a_ledger_that_was_closed_below_a_segment_is_an_alarm(scene):
    ledger_id = scene.write(b"a", b"b", b"c")
    scene.cut()
    for lists in (scene.cluster.written, scene.cluster.bookies):
        del lists[ledger_id][2:]  # all bookies of the ack quorum lost their journal
    scene.roll_over()
    scene.write(b"d")
    with pytest.raises(IntegrityError, match="lost acknowledged entries"):
        scene.next()


def test_other_lengths_than_those_assigned_are_an_alarm(scene):
    ledger_id = scene.write(b"a", b"b")
    scene.assign()
    scene.cluster.bookies[ledger_id][0] = b"longer"
    with pytest.raises(IntegrityError, match="payload bytes up to entry 1"):
        scene.next()


# ----- topics that change


def test_a_topic_that_was_made_again_gets_nothing_of_the_old_stream(scene):
    scene.write(b"a")
    chain = scene.chain()
    scene.broker.delete_topic(TOPIC)
    assert isinstance(assign_next(scene.process(), chain, scene.when()), TopicGone)
    scene.broker.create_topic(TOPIC)
    scene.write(b"b")
    assert isinstance(assign_next(scene.process(), chain, scene.when()), TopicGone)
    assert not list(scene.stack.book.keys(keys.of_segment(TOPIC, chain.stream, 1)))


class _Refusing:
    """A store that takes records and no object."""

    def __init__(self, objects):
        self._objects = objects

    def __getattr__(self, name):
        return getattr(self._objects, name)

    def put(self, key, *args, **kwargs):
        if "/" not in key:
            raise ObjectStoreError(f"{key}: no room")
        return self._objects.put(key, *args, **kwargs)


class _Rotting:
    """A store in which a data object changes right before it is looked at."""

    def __init__(self, scene):
        self._scene, self._objects = scene, scene.process().objects

    def __getattr__(self, name):
        return getattr(self._objects, name)

    def head(self, key):
        found = self._objects.head(key)
        if found is not None and "/" not in key and not key.endswith("-index"):
            body = bytearray(self._scene.world.objects.peek(key)[0])
            body[200] ^= 1
            self._scene.world.objects.rot(key, bytes(body))
        return found
