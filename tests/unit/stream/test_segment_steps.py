"""What planning, copying and proving a segment refuse, and how much they ask for."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.made_segments import plan_from_entries
from tests.support.sim_scene import TOPIC
from tests.support.stream_scene import StreamScene
from tiering_assets.records import keys
from tiering_assets.records.stream_models import StreamClosed, StreamOpened
from tiering_assets.resources._proto.MLDataFormats_pb2 import ManagedLedgerInfo
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.bookkeeper.ledger_metadata import (
    decode_ledger_metadata,
    encode_ledger_metadata,
)
from tiering_assets.resources.errors import (
    EntryUnavailableError,
    FormatError,
    IntegrityError,
    ObjectNotFoundError,
    RefusedError,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.stream.segment_copy import lots_of_parts
from tiering_assets.stream.segment_plan import plan_copy
from tiering_assets.stream.switch import WHICH_MAX, open_stream
from tiering_assets.tasks.descriptors import TaskKind


@pytest.fixture
def scene():
    return StreamScene()


def is_data(key):
    return "/" not in key and not key.endswith("-index")


class Meddled:
    """A store that answers some calls about objects as `how` says, and all others as it is."""

    def __init__(self, objects, **how):
        self._objects, self._how, self.calls = objects, how, []

    def __getattr__(self, name):
        found, how = getattr(self._objects, name), self._how.get(name)

        def call(*args, **kwargs):
            self.calls.append(name)
            return found(*args, **kwargs) if how is None else how(found, *args, **kwargs)

        return call if callable(found) else found


def meddled(scene, **how):
    stack = scene.process()
    return replace(stack, objects=Meddled(stack.objects, **how))


# ----- planning


def test_a_closed_ledgers_time_is_in_the_index_and_an_open_ones_is_none(scene):
    sealed = scene.write(b"a")
    scene.roll_over()
    written = scene.write(b"b")
    plan = plan_copy(scene.process(), scene.assign().record)
    infos = {i: ManagedLedgerInfo.LedgerInfo.FromString(info) for i, info in plan.infos.items()}
    assert infos[sealed].timestamp > 0
    assert infos[written].timestamp == 0


def test_a_segment_of_a_topic_that_is_gone_is_still_copied(scene):
    scene.write(b"a")
    assigned = scene.assign().record
    del scene.cluster.metadata.nodes[managed_ledger_path(TOPIC)]
    assert plan_copy(scene.process(), assigned).ledger_ids == (assigned.ranges[0].ledger_id,)


def test_a_ledger_that_is_gone_is_named(scene):
    ledger_id = scene.write(b"a")
    assigned = scene.assign().record
    scene.cluster.delete_ledger(ledger_id)
    with pytest.raises(EntryUnavailableError, match=f"no ledger {ledger_id}"):
        plan_copy(scene.process(), assigned)


def test_what_was_closed_below_its_assignment_is_an_alarm(scene):
    ledger_id = scene.write(b"a", b"b", b"c")
    assigned = scene.assign().record
    for lists in (scene.cluster.written, scene.cluster.bookies):
        del lists[ledger_id][2:]
    scene.roll_over()
    with pytest.raises(IntegrityError, match="was closed with last entry 1, assigned up to 2"):
        plan_copy(scene.process(), assigned)


def test_what_is_not_confirmed_at_the_moment_waits(scene):
    scene.write(b"a", b"b", b"c")
    assigned = scene.assign().record
    scene.cluster.unconfirmed = 1
    with pytest.raises(EntryUnavailableError):
        plan_copy(scene.process(), assigned)


def test_what_is_in_recovery_waits(scene):
    ledger_id = scene.write(b"a")
    assigned = scene.assign().record
    path = scene.cluster.path(ledger_id)
    metadata = decode_ledger_metadata(ledger_id, scene.cluster.metadata.nodes[path].data)
    recovering = replace(metadata, state=BookKeeperState.IN_RECOVERY)
    scene.cluster.metadata.put(path, encode_ledger_metadata(recovering))
    with pytest.raises(RefusedError, match="in recovery"):
        plan_copy(scene.process(), assigned)


def test_of_many_ledgers_one_is_open_at_a_time(scene):
    for n in range(6):
        scene.write(*(bytes([n]) * 150 for _ in range(9)))  # several blocks
        scene.roll_over()
    assigned, stack = scene.assign().record, scene.process()
    opened, most, done = [], [], list[int]()

    @contextmanager
    def open_points(settings, source):
        with stack.open_points(settings, source) as points:
            opened.append(source.ledger_id)
            most.append(len(opened) - len(done))
            yield points
            done.append(source.ledger_id)

    plan = plan_copy(replace(stack, open_points=open_points), assigned)
    assert len(plan.blocks) > 12
    assert max(most) == 1
    assert opened == done == [*plan.ledger_ids, *plan.ledger_ids]  # to be checked, and to be cut


# ----- copying


def test_a_small_segment_is_one_put(scene):
    scene.write(b"a")
    stack = meddled(scene)
    scene.next(stack)
    assert "create_upload" not in stack.objects.calls


def test_parts_go_to_tasks_by_their_size_and_only_with_their_neighbours():
    entries = {(7, n): bytes(100) for n in range(60)}
    _slices, blocks = plan_from_entries(entries, [(7, 0, 59)], block_bytes_max=500)
    parts = [[one] for one in blocks]
    own = blocks[0].block_length
    assert len(parts) > 8
    assert lots_of_parts(parts, range(6), bytes_max=2 * own) == [[0, 1], [2, 3], [4, 5]]
    assert lots_of_parts(parts, [0, 1, 4, 5], bytes_max=100 * own) == [[0, 1], [4, 5]]
    assert lots_of_parts(parts, [3], bytes_max=1) == [[3]]


class Runs:
    """A runner that notes what it is given, and may lose rows."""

    def __init__(self, runner, lose=lambda _row: False):
        self._runner, self._lose, self.tasks = runner, lose, []

    def __getattr__(self, name):
        return getattr(self._runner, name)

    def run(self, tasks, *, progress=None):
        self.tasks += tasks
        return [row for row in self._runner.run(tasks, progress=progress) if not self._lose(row)]


def test_a_block_without_a_row_is_not_there(scene):
    scene.write(*(b"x" * 200 for _ in range(6)))
    stack = scene.process()
    losing = Runs(stack.runner, lambda row: row.part_number == 2)
    with pytest.raises(IntegrityError, match=r"without a row for blocks \[2\]"):
        scene.next(replace(stack, runner=losing))


def test_a_block_that_was_not_read_back_is_no_proof(scene):
    scene.write(*(b"x" * 200 for _ in range(3)))
    stack = scene.process()
    lost = Runs(stack.runner, lambda row: row.kind is TaskKind.READ_BACK and row.part_number == 2)
    with pytest.raises(IntegrityError, match="block 2: object not read"):
        scene.next(replace(stack, runner=lost))


def test_the_block_that_failed_is_told_in_its_own_words(scene):
    scene.write(*(b"x" * 200 for _ in range(6)))

    def refuse(found, key, upload_id, *, part_number, body, sha256):
        if part_number == 3:
            raise FormatError("part 3 is odd")
        return found(key, upload_id, part_number=part_number, body=body, sha256=sha256)

    stack = meddled(scene, upload_part=refuse)
    runner = scene.process().runner
    runner._make_worker = lambda make=runner._make_worker: _with_store(make(), stack.objects)
    with pytest.raises(FormatError, match=r"segment 1 of .*, ledger \d+: part 3 is odd"):
        scene.next(replace(stack, runner=runner))


def _with_store(worker, objects):
    worker.store = objects
    return worker


def test_an_upload_of_another_key_is_not_aborted_with_a_failed_attempt(scene):
    scene.write(*(b"x" * 200 for _ in range(6)))
    others = []

    def create(found, key, **kwargs):
        others.append((f"{key}-else", found(f"{key}-else", **kwargs)))
        return found(key, **kwargs)

    def refuse(_found, *_args, **_kwargs):
        raise IntegrityError("no")

    with pytest.raises(IntegrityError):
        scene.next(meddled(scene, create_upload=create, complete_upload=refuse, list_parts=refuse))
    [(key, upload_id)] = others
    left = [(one.key, one.upload_id) for one in scene.world.objects.list_uploads("")]
    assert left == [(key, upload_id)]


# ----- proving


@pytest.mark.parametrize(("how_many", "again"), [("off", 0), ("all", 3)])
def test_other_replicas_are_asked_for_as_many_blocks_as_the_settings_say(scene, how_many, again):
    scene.write(*(b"x" * 200 for _ in range(3)))
    stack = scene.process()
    verify = replace(stack.settings.verify, second_replica=how_many)
    runs = Runs(stack.runner)
    scene.next(replace(stack, runner=runs, settings=replace(stack.settings, verify=verify)))
    asked = [task for task in runs.tasks if task.kind is TaskKind.READ_SOURCE]
    assert sum(len(task.blocks) for task in asked) == again
    assert all(task.blocks for task in asked)


@pytest.mark.parametrize("which", ["data", "index"])
def test_an_object_that_is_gone_is_named(scene, which):
    scene.write(b"a")

    def head(found, key):
        return None if which == "data" and is_data(key) else found(key)

    def get(found, key, **kwargs):
        return None if which == "index" and key.endswith("-index") else found(key, **kwargs)

    with pytest.raises(ObjectNotFoundError) as told:
        scene.next(meddled(scene, head=head, get=get))
    assert ("-index" in str(told.value)) is (which == "index")


@pytest.mark.parametrize("now", ["gone", "another"])
def test_an_object_that_changes_while_it_is_read_is_no_certificate(scene, now):
    scene.write(b"a")
    heads = []

    def head(found, key):
        said = found(key)
        if is_data(key):
            heads.append(key)
            if len(heads) > 1:
                return None if now == "gone" else replace(said, etag='"other"')
        return said

    with pytest.raises(IntegrityError, match="changed while it was read back"):
        scene.next(meddled(scene, head=head))


def test_a_block_that_cannot_be_read_back_is_told(scene):
    scene.write(b"a")

    def head(found, key):
        said = found(key)
        if is_data(key):
            scene.world.objects.delete(key)
        return said

    with pytest.raises(ObjectNotFoundError, match="ledger 1 block 1"):
        scene.next(meddled(scene, head=head))


def test_an_index_that_says_something_else_is_no_certificate(scene):
    scene.write(b"a")

    def get(found, key, **kwargs):
        said = found(key, **kwargs)
        if key.endswith("-index"):
            body = bytearray(said.body)
            body[15] += 1  # the length of the data object
            return replace(said, body=bytes(body))
        return said

    with pytest.raises(IntegrityError, match="data object length in the index"):
        scene.next(meddled(scene, get=get))


# ----- opening


def test_a_system_topic_is_refused(scene):
    name = "t/ns/persistent/__change_events"
    scene.broker.create_topic(name)
    scene.broker.produce(name, [b"x"])
    with pytest.raises(RefusedError, match="is not streamed"):
        open_stream(scene.stack, name, author="ops")


def test_a_topic_without_a_ledger_is_refused(scene):
    scene.cluster.metadata.put(managed_ledger_path("t/ns/persistent/new"), b"")
    with pytest.raises(RefusedError, match="no ledger yet"):
        open_stream(scene.stack, "t/ns/persistent/new", author="ops")


def test_after_the_last_number_there_is_no_stream(scene):
    stack = scene.stack
    stream = keys.stream_name(scene.czxid, WHICH_MAX)
    opened = stack.book.require(StreamOpened, keys.stream_opened(TOPIC, scene.chain().stream))
    last = replace(opened.record, stream=stream)
    stored = stack.book.create(keys.stream_opened(TOPIC, stream), last)
    closed = StreamClosed(
        ml_name=TOPIC,
        stream=stream,
        segments=0,
        reason="a test",
        author="ops",
        closed_at=stack.now(),
        writer=stack.writer,
        previous=stored.sha256,
    )
    stack.book.create(keys.stream_link(TOPIC, stream, 1), closed)
    with pytest.raises(RefusedError, match="gets no more"):
        open_stream(stack, TOPIC, author="ops")


def test_a_link_of_another_kind_is_an_error(scene):
    stack = scene.stack
    opened = stack.book.require(StreamOpened, keys.stream_opened(TOPIC, scene.chain().stream))
    stack.book.create(keys.stream_link(TOPIC, opened.record.stream, 1), opened.record)
    with pytest.raises(FormatError, match="tierkeeper/stream-opened/1"):
        scene.chain()
