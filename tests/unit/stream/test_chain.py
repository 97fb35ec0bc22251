"""A stream is found by its newest segment, begins where its topic writes, and ends once."""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tests.support.stream_scene import StreamScene
from tiering_assets.records import keys
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import StreamClosed
from tiering_assets.resources.errors import FormatError, RefusedError
from tiering_assets.resources.metastore.ledger_info import decode_managed_ledger
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.stream.assign import TakenByAnother, assign_next
from tiering_assets.stream.chain import read_stream
from tiering_assets.stream.switch import close_stream, open_stream


@pytest.fixture
def scene():
    return StreamScene()


class _Counting:
    def __init__(self, objects):
        self._objects, self.asked = objects, []

    def __getattr__(self, name):
        found = getattr(self._objects, name)

        def call(*args, **kwargs):
            self.asked.append(name)
            return found(*args, **kwargs)

        return call


def counted(scene):
    """What it takes to find the newest segment: listings, and records read."""
    counting = _Counting(scene.world.objects)
    stack = replace(scene.process(), book=scene.process().book.over(counting))
    chain = read_stream(stack, TOPIC, scene.czxid)
    return chain, counting


@pytest.mark.parametrize("segments", [3, 400])
def test_the_newest_segment_is_found_by_one_listing_and_one_record(scene, segments):
    stack = scene.process()
    for _ in range(segments):
        scene.write(b"x")
        scene.next(stack)
    chain, counting = counted(scene)
    assert chain.newest.number == segments
    assert len(counting.asked) == 2


def test_a_stream_begins_with_the_ledger_that_its_topic_writes_to():
    scene = Scene()
    sealed = scene.fill(TOPIC)
    opened = open_stream(scene.stack, TOPIC, author="ops")
    assert isinstance(opened, Stored)
    assert (opened.record.first_ledger_id, opened.record.first_entry_id) == (sealed + 1, 0)


def test_opened_twice_it_is_one_stream(scene):
    assert open_stream(scene.process(), TOPIC, author="another") == scene.chain()


def test_a_topic_without_a_node_is_refused(scene):
    with pytest.raises(RefusedError, match="no managed ledger"):
        open_stream(scene.stack, "t/ns/persistent/nowhere", author="ops")


def test_a_topic_that_another_tool_streams_is_refused(scene):
    path = managed_ledger_path(TOPIC)
    message = decode_managed_ledger(scene.cluster.metadata.nodes[path].data).message_copy()
    message.ledgerInfo[0].offloadContext.offloadSegment.add(
        uidMsb=1, uidLsb=2, complete=True, assignedTimestamp=1
    )
    scene.cluster.metadata.put(path, message.SerializeToString())
    with pytest.raises(RefusedError, match="another tool"):
        open_stream(scene.stack, TOPIC, author="ops")


def test_behind_its_end_no_segment_is_assigned(scene):
    scene.write(b"a")
    scene.cut()
    before = scene.chain()
    first = scene.assigned(1).sha256
    closed = close_stream(scene.process(), before, reason="a test", author="ops")
    assert (closed.record.segments, closed.record.previous) == (1, first)
    scene.write(b"b")
    assert isinstance(assign_next(scene.process(), before, scene.when()), TakenByAnother)
    found = read_stream(scene.stack, TOPIC, scene.czxid)
    assert isinstance(found, Stored)
    assert isinstance(found.record, StreamClosed)


def test_a_segment_that_was_assigned_meanwhile_keeps_a_stream_from_its_end(scene):
    before = scene.chain()
    scene.write(b"a")
    scene.cut()
    with pytest.raises(RefusedError, match="assigned meanwhile"):
        close_stream(scene.process(), before, reason="a test", author="ops")


def test_a_segment_that_is_not_done_keeps_a_stream_from_its_end(scene):
    scene.write(b"a")
    scene.assign()
    with pytest.raises(RefusedError, match="neither offloaded nor given up"):
        close_stream(scene.process(), scene.chain(), reason="a test", author="ops")


def test_switched_on_again_it_is_another_stream(scene):
    scene.write(b"a")
    scene.cut()
    close_stream(scene.process(), scene.chain(), reason="a test", author="ops")
    second = open_stream(scene.process(), TOPIC, author="ops")
    assert isinstance(second, Stored)
    assert keys.which_stream(second.record.stream) == 2
    assert scene.chain().newest is None
    assert scene.cut().record.number == 1


def test_a_topic_that_was_made_again_has_no_stream(scene):
    scene.broker.delete_topic(TOPIC)
    scene.broker.create_topic(TOPIC)
    assert read_stream(scene.stack, TOPIC, scene.czxid) is None


def test_a_stream_whose_opening_is_lost_is_an_error(scene):
    stream = scene.chain().stream
    scene.world.objects.delete(scene.stack.book.prefix + keys.stream_opened(TOPIC, stream))
    assert read_stream(scene.stack, TOPIC, scene.czxid) is None  # nothing of it is left


def test_an_assignment_that_is_lost_is_an_error(scene):
    scene.write(b"a")
    scene.cut()
    stream = scene.chain().stream
    scene.world.objects.delete(scene.stack.book.prefix + keys.stream_link(TOPIC, stream, 1))
    with pytest.raises(FormatError, match="missing"):
        read_stream(scene.stack, TOPIC, scene.czxid)


def test_an_assignment_under_another_number_is_an_error(scene):
    scene.write(b"a")
    scene.cut()
    stream, book = scene.chain().stream, scene.stack.book
    body, _metadata = scene.world.objects.peek(book.prefix + keys.stream_link(TOPIC, stream, 1))
    scene.world.objects.put(book.prefix + keys.stream_link(TOPIC, stream, 2), body)
    with pytest.raises(FormatError, match="expected"):
        read_stream(scene.stack, TOPIC, scene.czxid)
