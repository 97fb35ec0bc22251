"""A broker's copy is recorded once, by the first deep look that read it whole and found nothing."""

import json
from dataclasses import replace
from hashlib import sha256
from uuid import UUID

import pytest

from tests.support.copies import BLOCK_BYTES, BROKERS, OURS, PAYLOADS, Copy
from tests.support.golden_objects import GOLDEN, golden_ledgers
from tests.support.sim_scene import TOPIC, Scene
from tests.unit.records.examples import EXAMPLES
from tiering_assets.catalogue.facts.read_pages import FoundRecord, ReadPage, ReadPages
from tiering_assets.catalogue.facts.rows import block_rows
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage, NamedRecord
from tiering_assets.records.models import Attempt, BrokerCopy, Scrub
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.scrub.broker_copy import record_copy
from tiering_assets.scrub.check import check_copy
from tiering_assets.scrub.plan import Candidate, Depth, DueLook
from tiering_assets.scrub.scrub import scrub
from tiering_assets.verify.object_check import look_at_object, plans_of_index

ALL = len(PAYLOADS) * BLOCK_BYTES


class Looked(Copy):
    """`told` is what people are told."""

    def __init__(self, who=BROKERS, **how):
        super().__init__(who, **how)
        self.told = []

    @property
    def stack(self):
        return replace(self.scene.process(), narrate=lambda line: self.told.append(str(line)))

    def check(self, stack, depth=Depth.DEEP, *, bytes_max=ALL, begun=None):
        candidate = self.candidate
        listed = stack.topics.read(candidate.ml_name)[0].ledger(self.ledger_id)
        look = DueLook(candidate=candidate, depth=depth, bytes_max=bytes_max)
        return check_copy(stack, look, listed, stack.ledgers.read(self.ledger_id), begun)

    def look(self, depth=Depth.DEEP, **how):
        stack = self.stack
        checked = self.check(stack, depth, **how)
        record_copy(stack, checked)
        return checked

    @property
    def key(self):
        return keys.broker_copy(self.ledger_id, self.uid)

    def record(self):
        found = self.scene.stack.book.read(BrokerCopy, self.key)
        return None if found is None else found.record


@pytest.fixture
def copy():
    return Looked()


def test_a_whole_deep_look_says_what_lies_in_each_block(copy):
    checked = copy.look()
    record, body = copy.record(), copy.body(copy.data_key)
    blocks = [body[at : at + BLOCK_BYTES] for at in range(0, ALL, BLOCK_BYTES)]
    assert [one.sha256 for one in record.blocks] == [sha256(one).hexdigest() for one in blocks]
    assert [(one.part_number, one.offset, one.payload_bytes) for one in record.blocks] == [
        (at + 1, at * BLOCK_BYTES, 260) for at in range(6)
    ]
    assert [(one.first_entry_id, one.last_entry_id) for one in record.blocks] == [
        (at, at) for at in range(6)
    ]
    assert (record.entries, record.payload_bytes) == (6, 6 * 260)
    joint = sha256(b"".join(sha256(one).digest() for one in blocks)).hexdigest()
    assert record.data.sha256 == joint
    assert record.index.sha256 == sha256(copy.body(copy.index_key)).hexdigest()
    for facts in (record.data, record.index):
        head = copy.scene.world.objects.peek_head(facts.key)
        assert (facts.size, facts.etag, facts.version_id) == (head.size, head.etag, head.version_id)
    assert (record.data.key, record.index.key) == (copy.data_key, copy.index_key)
    assert (record.ledger_id, record.uid, record.ml_name) == (copy.ledger_id, copy.uid, TOPIC)
    assert (record.bucket, record.bookies_compared) == (copy.stack.objects.bucket, True)
    assert checked.findings == ()
    assert copy.told == []


def test_it_says_where_bookies_had_nothing_to_compare(copy):
    copy.lose_ledger()
    copy.look()
    assert copy.record().bookies_compared is False


def test_a_scrub_records_it_before_its_look(copy):
    copy.scene.wait(5)
    stack = copy.stack
    scrub(stack, deep=True)
    deep = copy.scene.stack.book.read(Scrub, keys.scrub(copy.ledger_id, copy.uid, "deep"))
    there = copy.scene.stack.book.read(BrokerCopy, copy.key)
    assert there.stored_at <= deep.stored_at
    assert there.record.read_at <= deep.record.scrubbed_at


def test_a_copy_of_ours_has_its_certificate_and_no_such_record():
    ours = Looked(OURS)
    for _ in range(2):
        assert ours.look().read
        assert ours.record() is None
        attempt = keys.attempt(ours.ledger_id, ours.uid)
        ours.scene.world.objects.delete(ours.scene.stack.book.prefix + attempt)


def test_an_attempt_of_ours_without_a_certificate_gets_no_such_record(copy):
    """What is certified later would have its blocks twice."""
    example = next(one for one in EXAMPLES if isinstance(one, Attempt))
    ledger = replace(example.ledger, ledger_id=copy.ledger_id)
    key = keys.attempt(copy.ledger_id, copy.uid)
    copy.scene.stack.book.create(key, replace(example, uid=copy.uid, ledger=ledger))
    copy.look()
    assert copy.record() is None


def test_a_shallow_look_has_read_nothing(copy):
    assert copy.look(Depth.SHALLOW).read == ()
    assert copy.record() is None


def test_a_look_that_found_something_records_nothing(copy):
    copy.flip()
    assert copy.look().findings
    assert copy.record() is None


def test_a_look_whose_last_finding_is_of_the_sums_records_nothing(copy):
    checked = replace(copy.check(copy.stack), findings=("entries: too few",))
    record_copy(copy.stack, checked)
    assert copy.record() is None


def test_an_index_says_of_a_broken_copy_what_it_says_of_a_whole_one(copy):
    """Which is why no rows are made from it."""
    before = look_at_object(copy.stack, copy.data_key)
    copy.flip()
    after = look_at_object(copy.stack, copy.data_key)
    assert plans_of_index(after, []) == plans_of_index(before, [])
    assert (after.problems, after.data) == (before.problems, before.data)
    assert copy.look().findings


def begun_of(copy, checked):
    example = next(one for one in EXAMPLES if isinstance(one, Scrub))
    data = checked.sight.data
    return replace(
        example,
        data_bytes=data.size,
        data_etag=data.etag,
        data_version_id=data.version_id,
        blocks=checked.blocks,
        blocks_read=checked.blocks_read,
        entries=checked.entries,
        payload_bytes=checked.payload_bytes,
    )


def test_a_look_that_went_on_where_a_budget_ended_another_records_nothing(copy):
    first = copy.look(bytes_max=2 * BLOCK_BYTES)
    assert len(first.read) == 2
    second = copy.look(begun=begun_of(copy, first))
    assert (second.whole, second.blocks_read, len(second.read)) == (True, 6, 4)
    assert copy.record() is None
    copy.look()
    assert len(copy.record().blocks) == 6


def test_it_is_written_once(copy):
    copy.look()
    before = copy.scene.stack.book.read(BrokerCopy, copy.key)
    copy.scene.wait(60)
    copy.look()
    after = copy.scene.stack.book.read(BrokerCopy, copy.key)
    assert (after.sha256, after.etag) == (before.sha256, before.etag)
    assert copy.told == []


def test_another_object_in_its_place_is_told_and_the_record_stays(copy):
    copy.look()
    before = copy.record()
    store, body = copy.scene.world.objects, copy.body(copy.data_key)
    head = store.peek_head(copy.data_key)
    copy.scene.wait(60)
    store.keep_versions()
    store.put(copy.data_key, body, metadata=head.metadata)
    copy.look()
    assert copy.record() == before
    assert "its copy is another than when it was recorded" in copy.told[-1]


def test_an_object_that_changes_while_it_is_read_is_not_recorded(copy):
    stack = copy.stack
    checked = copy.check(stack)
    store, head = copy.scene.world.objects, copy.scene.world.objects.peek_head(copy.data_key)
    store.put(copy.data_key, copy.body(copy.data_key) + b"x", metadata=head.metadata)
    record_copy(stack, checked)
    assert copy.record() is None
    store.delete(copy.data_key)
    record_copy(stack, checked)
    assert copy.record() is None


def test_who_is_slower_reads_the_record_of_who_was_faster(copy, monkeypatch):
    stack = copy.stack
    checked, really = copy.check(stack), stack.objects.head

    def head(key):
        copy.look()
        return really(key)

    monkeypatch.setattr(stack.objects, "head", head)
    record_copy(stack, checked)
    faster = copy.scene.stack.book.read(BrokerCopy, copy.key)
    assert faster.record.blocks == checked.read
    assert copy.told == []


def test_it_takes_five_requests_once_and_one_from_then_on(copy):
    stack = copy.stack
    stack.book.take_up([copy.ledger_id])
    checked, world = copy.check(stack), copy.scene.world
    for expected in (5, 1):
        before = world.calls
        record_copy(stack, checked)
        assert world.calls - before == expected


@pytest.mark.parametrize(
    "harm", ["damaged", ObjectStoreError("503 SlowDown"), ValueError("too large")], ids=str
)
def test_a_scrub_goes_on_without_the_record(copy, harm, monkeypatch):
    copy.scene.wait(5)
    stack = copy.stack
    if harm == "damaged":
        copy.scene.world.objects.put(stack.book.prefix + copy.key, b"{}")
    else:
        really = stack.book.create_or_read

        def create_or_read(key, record):
            if key == copy.key:
                raise harm
            return really(key, record)

        monkeypatch.setattr(stack.book, "create_or_read", create_or_read)
    looked = {one.depth: one for one in scrub(stack, deep=True).looked}
    assert (looked[Depth.DEEP].error, looked[Depth.DEEP].findings) == (None, ())
    assert copy.scene.stack.book.read(Scrub, keys.scrub(copy.ledger_id, copy.uid, "deep"))
    assert any("its copy is not recorded" in line for line in copy.told)


# ----- copies that real brokers wrote

CONSUMED = {
    (case, ledger_id, part): tuple(told)
    for case, ledger_id, part, *told in json.loads((GOLDEN / "consumed.json").read_text())
}
HAVE_DATA = [ledger for ledger in golden_ledgers() if ledger.has_data]


def recorded(golden):
    """What a deep look says of a golden copy, whose ledger no bookie has."""
    scene = Scene()
    for what in ("data", "index"):
        body = getattr(golden, what)()
        metadata = golden.facts[f"{what}_head"]["metadata"]
        scene.world.objects.put(golden.facts[f"{what}_key"], body, metadata=metadata)
    uid = UUID(golden.facts["uuid"])
    candidate = Candidate(
        ledger_id=golden.ledger_id,
        uid=uid,
        ml_name="public/default/persistent/golden",
        object_bytes=len(golden.data()),
        certified=False,
        in_bookkeeper=False,
        published_at_ms=0,
        shallow_at=None,
        deep_at=None,
        failed_at=None,
    )
    stack = scene.process()
    listed = LedgerInfo(
        ledger_id=golden.ledger_id, entries=golden.facts["entries"], size=1, closed_at_ms=1
    )
    look = DueLook(candidate=candidate, depth=Depth.DEEP, bytes_max=2**40)
    checked = check_copy(stack, look, listed, None, None)
    assert checked.findings == ()
    record_copy(stack, checked)
    return stack.book.require(BrokerCopy, keys.broker_copy(golden.ledger_id, uid))


def rows_of(stored):
    names = (NamedRecord(key=stored.key, sha256=stored.sha256),)
    record = DayBookPage(
        number=1,
        previous="",
        phase="close",
        command="test",
        written_at=stored.stored_at,
        writer=stored.record.writer,
        records=names,
    )
    page = ReadPage(
        number=1,
        stored=Stored(key="", record=record, sha256="", stored_at=stored.stored_at, etag=""),
    )
    return [*block_rows(ReadPages([page], {stored.key: FoundRecord(stored=stored)}))]


def milliseconds(when):
    return None if when is None else round(when.timestamp() * 1000)


@pytest.mark.parametrize("golden", HAVE_DATA, ids=str)
def test_rows_of_a_copy_that_a_broker_wrote_are_what_independent_readers_saw(golden):
    stored = recorded(golden)
    data, rows = golden.data(), rows_of(stored)
    assert len(rows) == len(golden.facts["blocks"])
    for row, block in zip(rows, golden.facts["blocks"], strict=True):
        first, last = block["first"], block["first"] + block["entries"] - 1
        at = (row["part"], row["first_entry_id"], row["last_entry_id"], row["offset"])
        assert at == (block["part"], first, last, block["offset"])
        assert row["length"] == block["length"]
        its = data[block["offset"] : block["offset"] + block["length"]]
        assert row["sha256"] == sha256(its).hexdigest()
        sizes = [size for entry_id, size, _digest in golden.entries() if first <= entry_id <= last]
        assert row["payload_bytes"] == sum(sizes)
        told = CONSUMED[golden.folder.name, golden.ledger_id, block["part"]]
        times = milliseconds(row["publish_min"]), milliseconds(row["publish_max"])
        assert (row["messages"], *times) == told
        assert (row["written_by"], row["certificate_sha256"]) == ("broker", None)
        assert row["run_id"] == stored.record.writer.run_id
        assert (row["data_key"], row["topic"]) == (golden.facts["data_key"], stored.record.ml_name)
        assert row["uid"] == str(stored.record.uid)
    assert stored.record.index.sha256 == golden.facts["index_sha256"]
    assert (stored.record.data.size, stored.record.index.size) == (
        golden.facts["data_size"],
        golden.facts["index_size"],
    )
    assert stored.record.bookies_compared is False


def test_golden_copies_have_blocks_and_messages():
    """A parametrised test over nothing would pass."""
    assert sum(len(golden.facts["blocks"]) for golden in HAVE_DATA) > 20
