"""What is read where there is no catalogue, and of ledgers that lie on bookies alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.pulsar_entries import message
from tests.unit.catalogue.desk import OTHER_UID, example
from tests.unit.lineage.test_commands import TIME
from tests.unit.lineage.test_topic_read import rows
from tests.unit.records.examples import UID
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.lineage.messages import from_records, plan
from tiering_assets.lineage.messages.from_records import blocks_from_records
from tiering_assets.lineage.messages.listed_ledgers import TopicLedger, listed_ledgers
from tiering_assets.lineage.messages.options import cold_options
from tiering_assets.lineage.messages.plan import plan_messages, ranges_of, reading
from tiering_assets.lineage.messages.pushed import Pushed
from tiering_assets.lineage.messages.read_messages import read_messages
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, Quarantine
from tiering_assets.resources import tables
from tiering_assets.resources.errors import (
    CatalogueError,
    LedgerNotFoundError,
    MetadataError,
    ObjectNotFoundError,
)
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.offload_context import OffloadContext

TOPIC = "t/ns/persistent/cold"
NAME, EVERY = "t/ns/cold", "t/ns/col*"
DAY = ("topic", "read", NAME, "--from", "2026-11-21")


@pytest.fixture(autouse=True)
def own_topic(scene):
    scene.broker.create_topic(TOPIC)


def fill(scene, *payloads):
    return scene.fill(TOPIC, *(message(TIME, payload=one) for one in payloads))


@pytest.fixture
def payloads(scene):
    """Of what a plan reads, in its order."""

    def read(**options):
        asked = cold_options({"topic": NAME, **options})
        found = plan_messages(scene.stack, asked)
        with reading(scene.stack, found) as entries:
            batches = read_messages(
                entries, found.blocks, asked.messages, before=found.before, after=found.after
            )
            return [one for _, batch in batches for one in batch.column("payload").to_pylist()]

    return read


@pytest.fixture
def without_catalogue(catalogue, monkeypatch):
    """Nothing was ever posted."""
    monkeypatch.setattr(Catalogue, "of", lambda _stack: catalogue)


@pytest.fixture
def with_catalogue(scene, posted, without_catalogue):
    return posted


@pytest.mark.parametrize("topic", [NAME, EVERY])
def test_records_say_what_is_read_where_there_is_no_catalogue(
    scene, payloads, without_catalogue, topic
):
    scene.publish(fill(scene, b"published"))
    scene.certify(fill(scene, b"certified"))
    fill(scene, b"on bookies")
    assert payloads(topic=topic) == [b"published", b"certified"]
    assert payloads(topic=topic, include_hot="true") == [b"published", b"certified", b"on bookies"]


def test_without_the_package_of_tables_records_say_it_too(scene, payloads, monkeypatch):
    monkeypatch.setattr(tables, "missing_package", lambda: "deltalake")
    monkeypatch.setattr(plan, "missing_package", lambda: "deltalake")
    scene.publish(fill(scene, b"published"))
    assert payloads() == [b"published"]


def test_the_newest_certified_attempt_that_is_sound_counts(desk):
    def certify(uid, hour):
        ledger = replace(example(Certificate).ledger, ledger_id=42)
        at = example(Certificate).verified_at + timedelta(hours=hour)
        record = example(Certificate, ledger=ledger, uid=uid, verified_at=at)
        desk.book.create(keys.certificate(42, uid), record)

    def counted():
        info = LedgerInfo(ledger_id=42, entries=8, size=100, closed_at_ms=1)
        found = blocks_from_records(desk.stack, NAME, [TopicLedger(TOPIC, info)])
        return {one.uid for one in found}

    assert counted() == set()
    certify(UID, 1)
    certify(OTHER_UID, 0)
    assert counted() == {str(UID)}
    record = example(Quarantine, ledger_id=42, uid=UID)
    desk.book.create(keys.quarantine(42, UID), record)
    assert counted() == {str(OTHER_UID)}


@pytest.fixture
def by_broker(scene):
    """A ledger that a broker offloaded, and nobody looked at."""
    scene.publish(fill(scene, b"ours"))
    ledger = fill(scene, b"one", b"two")
    assert scene.broker.offload(TOPIC)
    return ledger


def test_a_copy_of_a_broker_is_read_by_its_index(scene, payloads, without_catalogue, by_broker):
    uid = scene.context(by_broker, TOPIC).uid
    assert payloads() == [b"ours", b"one", b"two"]
    block = plan_messages(scene.stack, cold_options({"topic": NAME})).blocks[-1]
    assert (block.by_broker, block.data_key) == (True, data_key(uid, by_broker))
    assert (block.first_entry_id, block.last_entry_id) == (0, 1)


@pytest.mark.parametrize("topic", [NAME, EVERY])
def test_the_catalogue_knows_a_copy_of_a_broker_without_its_blocks(
    scene, payloads, with_catalogue, by_broker, catalogue, topic
):
    with_catalogue()
    assert payloads(topic=topic) == [b"ours"]
    scan(scene.stack, catalogue)
    assert payloads(topic=topic) == [b"ours", b"one", b"two"]


def test_an_index_that_is_gone_or_in_another_bucket_is_named(
    scene, payloads, without_catalogue, by_broker
):
    uid = scene.context(by_broker, TOPIC).uid
    info = LedgerInfo(
        ledger_id=by_broker,
        entries=2,
        size=6,
        closed_at_ms=1,
        offload=OffloadContext(uid=uid, complete=True, properties={"bucket": "elsewhere"}),
    )
    with pytest.raises(CatalogueError, match=f"ledger {by_broker} of .* is in bucket 'elsewhere'"):
        blocks_from_records(scene.stack, NAME, [TopicLedger(TOPIC, info)])
    scene.broker.objects.delete(index_key(uid, by_broker))
    with pytest.raises(ObjectNotFoundError, match=f"ledger {by_broker} of .* there is no {uid}"):
        payloads()


def test_so_many_ledgers_are_looked_up_without_a_catalogue(
    scene, payloads, without_catalogue, monkeypatch
):
    monkeypatch.setattr(from_records, "LEDGERS_MAX", 1)
    scene.publish(fill(scene, b"one"))
    assert payloads() == [b"one"]
    scene.publish(fill(scene, b"two"))
    with pytest.raises(
        CatalogueError, match="has 2 ledgers that the catalogue has no blocks of, and at most 1"
    ):
        payloads()


def test_ids_of_ledgers_are_known_to_the_catalogue_alone(scene, without_catalogue):
    with pytest.raises(CatalogueError, match="found by the catalogue alone"):
        plan_messages(scene.stack, cold_options({"ledger": "7"}))


def test_a_topic_that_nobody_knows_is_named(scene, without_catalogue):
    with pytest.raises(CatalogueError, match="no topic that is named so has a closed ledger"):
        plan_messages(scene.stack, cold_options({"topic": "public/default/nothing"}))


def test_a_ledger_is_read_once_from_where_it_is(scene, payloads, with_catalogue):
    """Posted, published since the posting, and on bookies alone."""
    scene.publish(fill(scene, b"posted"))
    with_catalogue()
    scene.publish(fill(scene, b"since"))
    fill(scene, b"on bookies")
    assert payloads() == [b"posted"]
    assert payloads(include_hot="true") == [b"posted", b"since", b"on bookies"]


def test_the_command_tells_how_far_it_went(scene, told, posted):
    scene.publish(fill(scene, b"posted"))
    posted()
    hot = fill(scene, b"on bookies")
    assert [row["payload"] for row in rows(told(*DAY))] == ["posted"]
    document = told.document(*DAY, "--include-hot")
    assert [row["payload"] for row in document["rows"]] == ["posted", "on bookies"]
    assert document["on_bookies"] == [hot]


def test_the_command_says_that_there_is_no_catalogue(scene, told, catalogue):
    scene.publish(fill(scene, b"published"))
    lines = told(*DAY)
    assert [row["payload"] for row in rows(lines)] == ["published"]
    assert "without a catalogue, by the topic and its records" in lines[-1]
    assert told.document(*DAY)["as_of"] is None


def test_nothing_is_read_of_a_ledger_that_bookkeeper_has_not_closed(
    scene, payloads, without_catalogue, monkeypatch
):
    ledger = fill(scene, b"one")
    really = scene.stack.ledgers.read

    def opened(ledger_id):
        node = really(ledger_id)
        state = type(node.metadata.state).OPEN
        return replace(node, metadata=replace(node.metadata, state=state))

    monkeypatch.setattr(scene.stack.ledgers, "read", opened)
    with pytest.raises(MetadataError, match=f"ledger {ledger} of .* is closed by its topic"):
        payloads(include_hot="true")
    monkeypatch.setattr(scene.stack.ledgers, "read", lambda _id: None)
    with pytest.raises(LedgerNotFoundError, match="BookKeeper does not have it"):
        payloads(include_hot="true")


def test_pieces_that_lie_before_are_found_without_a_catalogue(scene, payloads, without_catalogue):
    def piece(which, content):
        fields = [(27, 3), (29, which), (26, b"p-1"), (9, 5)]
        return message(TIME, *fields, payload=content)

    scene.publish(scene.fill(TOPIC, piece(0, b"he")))
    scene.fill(TOPIC, piece(1, b"ll"))
    scene.publish(scene.fill(TOPIC, piece(2, b"o"), message(TIME, payload=b"more")))
    assert payloads(include_hot="true") == [b"hello", b"more"]
    found = plan_messages(scene.stack, cold_options({"topic": NAME, "include_hot": "true"}))
    last = found.blocks[-1]
    assert [one.ledger_id for one in found.earlier(last)] == [
        one.ledger_id for one in reversed(found.blocks[:-1])
    ]


def test_a_block_that_a_filter_left_out_is_looked_into_for_pieces(scene, without_catalogue):
    first, last = fill(scene, b"one"), fill(scene, b"two")
    asked = cold_options({"topic": NAME, "include_hot": "true"})
    found = plan_messages(scene.stack, asked, [Pushed("ledger_id", ">", first)])
    [block] = found.blocks
    assert block.ledger_id == last
    assert [one.ledger_id for one in found.before(block)] == [first]


@pytest.mark.parametrize(
    ("entries", "size", "ranges"),
    [(3, 30, [(0, 2)]), (3, 3 * plan._HOT_BYTES, [(0, 0), (1, 1), (2, 2)]), (4, 0, [(0, 3)])],
)
def test_a_ledger_on_bookies_is_read_so_much_at_once(entries, size, ranges):
    info = LedgerInfo(ledger_id=7, entries=entries, size=size, closed_at_ms=1)
    found = [*ranges_of(TopicLedger("public/default/persistent/a", info))]
    assert [(one.first_entry_id, one.last_entry_id) for one in found] == ranges
    assert sum(one.length for one in found) == size
    assert [one.part for one in found] == [*range(1, len(ranges) + 1)]


def test_open_and_empty_ledgers_are_none(scene):
    ledger = fill(scene, b"one")
    scene.broker.load(TOPIC)  # has an open one
    assert [one.info.ledger_id for one in listed_ledgers(scene.stack, NAME)] == [ledger]
    assert [one.copy for one in listed_ledgers(scene.stack, NAME)] == [None]
