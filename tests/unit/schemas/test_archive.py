"""A topic's schemas become records: from where, once, and never in place of another."""

from base64 import b64decode
from dataclasses import replace
from hashlib import sha256
from unittest.mock import patch

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tests.support.stored_schemas import AVRO, INT32, STRING, Registry
from tiering_assets.look.topic.archived_schemas import archived_schemas, whole_topic
from tiering_assets.records import keys
from tiering_assets.records.broker_models import TopicSchema
from tiering_assets.resources.errors import (
    BrokerError,
    FormatError,
    IntegrityError,
    LedgerNotFoundError,
    MetadataError,
    ObjectStoreError,
)
from tiering_assets.resources.pulsar.schema_storage import StoredSchema
from tiering_assets.schemas.archive import archive_schemas

ONE, TWO = b'{"type":"string"}', b'{"type":"long"}'


class Archive:
    """`told` is what people are told."""

    def __init__(self):
        self.scene = Scene()
        self.registry = Registry(self.scene.cluster, "/schemas/t/ns/orders")
        self.told: list[str] = []
        self.stack = replace(
            self.scene.process("archive"), narrate=lambda line: self.told.append(str(line))
        )

    def run(self, ml_name=TOPIC, partitions=(TOPIC,)):
        return archive_schemas(self.stack, ml_name, partitions)

    def load(self):
        """A broker has the topic in memory, and its stats show it."""
        self.scene.broker.load(TOPIC)
        self.scene.wait(120)

    def unload(self):
        self.scene.idle()

    def tell(self, *schemas, kind="AVRO"):
        self.scene.broker.told_schemas = {
            version: StoredSchema(
                type=kind, definition=definition, properties={}, registered_at_ms=1
            )
            for version, definition in schemas
        }

    def records(self):
        found = archived_schemas(self.stack.book, TOPIC, lambda _key, _error: None)
        return [one.record for one in found]


@pytest.fixture
def archive():
    return Archive()


def test_the_schemas_of_an_unloaded_topic_come_from_its_entries(archive):
    archive.registry.register(ONE, properties={"a": "b"})
    archive.registry.register(b"", INT32)
    archive.unload()
    done = archive.run()
    first, second = archive.records()
    assert (done.versions, done.written, done.failed) == (2, (first, second), ())
    assert b64decode(first.definition) == ONE
    assert first.sha256 == sha256(ONE).hexdigest()
    assert (first.type, first.properties, first.read_from) == ("AVRO", {"a": "b"}, "bookies")
    assert first.position == f"{archive.registry.ledgers[0]}:0"
    assert (second.type, second.version, second.registered_at_ms) == ("INT32", 1, 1)
    assert archive.scene.broker.topics == {}  # nobody loaded it


def test_a_second_run_reads_and_writes_nothing(archive):
    archive.registry.register(ONE)
    archive.run()
    archive.stack = archive.scene.process("again")
    with patch.object(archive.scene.broker, "locate", side_effect=AssertionError):
        done = archive.run()
    assert (done.versions, done.written, done.failed) == (1, (), ())


def test_a_new_version_joins_those_that_are_there(archive):
    archive.registry.register(ONE)
    archive.run()
    archive.registry.register(TWO)
    assert [one.version for one in archive.run().written] == [1]
    assert [one.version for one in archive.records()] == [0, 1]


def test_an_entry_of_an_open_ledger_is_read_without_closing_it(archive):
    archive.registry.register(ONE, closes=False)
    before = dict(archive.scene.cluster.metadata.nodes)
    assert [one.version for one in archive.run().written] == [0]
    ledger = archive.scene.cluster.path(archive.registry.ledgers[0])
    assert archive.scene.cluster.metadata.nodes[ledger] == before[ledger]


def test_a_broker_is_asked_only_where_it_has_the_topic_loaded(archive):
    archive.registry.register(ONE)
    archive.tell((0, ONE))
    archive.unload()
    with patch.object(archive.scene.broker, "schemas", side_effect=AssertionError, create=True):
        archive.run()
    assert archive.records()[0].read_from == "bookies"
    archive.registry.register(TWO)
    archive.tell((1, TWO))
    archive.load()
    with patch.object(archive.stack.ledgers, "read", side_effect=AssertionError):
        archive.run()
    assert archive.records()[1].read_from == "broker"


def test_what_a_broker_tells_counts_only_where_it_is_what_was_stored(archive):
    archive.registry.register(ONE)
    archive.registry.register(TWO)
    archive.tell((0, ONE + b" "))  # and the second it does not tell: it was deleted since
    archive.load()
    archive.run()
    first, second = archive.records()
    assert (b64decode(first.definition), first.read_from) == (ONE, "bookies")
    assert (b64decode(second.definition), second.read_from) == (TWO, "bookies")


@pytest.mark.parametrize("error", [BrokerError("gone"), FormatError("odd")])
def test_a_broker_that_does_not_tell_is_done_without(archive, error):
    archive.registry.register(ONE)
    archive.load()
    with patch.object(archive.scene.broker, "schemas", side_effect=error, create=True):
        done = archive.run()
    assert [one.read_from for one in done.written] == ["bookies"]
    assert any("are read from bookies" in line for line in archive.told)


def test_what_a_broker_tells_of_schemas_that_came_after_is_not_taken(archive):
    archive.registry.register(b"", STRING)
    archive.load()

    def made_again(_topic):
        data = archive.scene.cluster.metadata.nodes.pop(archive.registry.path).data
        archive.scene.cluster.metadata.put(archive.registry.path, data)
        archive.tell((0, b""), kind="INT32")  # the same digest, of no bytes
        return archive.scene.broker.told_schemas

    with patch.object(archive.scene.broker, "schemas", made_again, create=True):
        archive.run()
    assert [(one.type, one.read_from) for one in archive.records()] == [("STRING", "bookies")]


def test_a_legacy_topic_is_not_asked_for_by_a_name_that_brokers_do_not_know(archive):
    archive.registry.register(ONE)
    with patch.object(archive.scene.broker, "locate", side_effect=AssertionError):
        done = archive.run("t/ns/persistent/orders", ["t/c/ns/persistent/orders"])
    assert [one.read_from for one in done.written] == ["bookies"]


def test_a_topic_made_again_has_schemas_of_its_own(archive):
    archive.registry.register(ONE)
    archive.run()
    archive.registry.forget()
    archive.registry.register(TWO)
    archive.run()
    assert [(one.version, b64decode(one.definition)) for one in archive.records()] == [
        (0, ONE),
        (0, TWO),
    ]
    first, second = archive.records()
    assert first.incarnation < second.incarnation


def test_so_has_one_whose_node_names_the_same_entries(archive):
    archive.registry.register(ONE)
    archive.run()
    data = archive.scene.cluster.metadata.nodes.pop(archive.registry.path).data
    archive.scene.cluster.metadata.put(archive.registry.path, data)
    assert [one.version for one in archive.run().written] == [0]
    first, second = archive.records()
    assert first.incarnation < second.incarnation


def test_a_node_that_goes_meanwhile_is_archived_as_it_was_seen(archive):
    archive.registry.register(ONE)
    archive.tell((0, ONE))
    archive.load()

    def deleted(_topic):
        del archive.scene.cluster.metadata.nodes[archive.registry.path]
        return archive.scene.broker.told_schemas

    with patch.object(archive.scene.broker, "schemas", deleted, create=True):
        [record] = archive.run().written
    assert (b64decode(record.definition), record.read_from) == (ONE, "bookies")


def test_another_schema_under_a_version_is_an_error_that_names_both(archive):
    archive.registry.register(ONE)
    archive.registry.register(b'{"type":"int"}')
    archive.run()
    archive.registry.index.clear()
    archive.registry.register(TWO, version=0)  # the same node: no other incarnation
    before = archive.records()
    [(version, error)] = archive.run().failed
    assert version == 0
    assert isinstance(error, IntegrityError)
    for digest in (sha256(ONE).hexdigest(), sha256(TWO).hexdigest()):
        assert digest in str(error)
    assert archive.records() == before


@pytest.mark.parametrize("how", [{"kind": STRING}, {"properties": {"x": "y"}}])
def test_so_is_one_of_another_type_or_with_other_properties(archive, how):
    archive.registry.register(ONE)
    archive.run()
    archive.registry.index.clear()
    archive.registry.register(ONE, **({"kind": AVRO} | how), version=0)
    assert [type(error) for _version, error in archive.run().failed] == [IntegrityError]


def test_the_same_schema_stored_elsewhere_is_no_error(archive):
    archive.registry.register(ONE)
    archive.run()
    archive.registry.index.clear()
    archive.registry.register(ONE, version=0)
    done = archive.run()
    assert (done.written, done.failed) == ((), ())


def test_one_that_cannot_be_read_hides_no_other(archive):
    for definition in (ONE, TWO, b"{}"):
        archive.registry.register(definition)
    archive.scene.cluster.delete_ledger(archive.registry.ledgers[0])
    archive.scene.cluster.bookies[archive.registry.ledgers[1]] = [b"\xff"]
    done = archive.run()
    assert [(v, type(error)) for v, error in done.failed] == [
        (0, LedgerNotFoundError),
        (1, FormatError),
    ]
    assert str(archive.registry.ledgers[0]) in str(done.failed[0][1])
    assert str(archive.registry.ledgers[1]) in str(done.failed[1][1])
    assert [one.version for one in archive.records()] == [2]


def test_a_schema_too_large_for_a_record_is_told(archive):
    archive.registry.register(b"x" * 4_000_000)
    archive.registry.register(ONE)
    [(version, error)] = archive.run().failed
    assert version == 0
    assert "bytes" in str(error)
    assert [one.version for one in archive.records()] == [1]


def test_a_store_that_does_not_take_records_ends_it(archive):
    archive.registry.register(ONE)
    with (
        patch.object(archive.scene.world.objects, "put", side_effect=ObjectStoreError("down")),
        pytest.raises(ObjectStoreError),
    ):
        archive.run()


def test_a_topic_without_schemas_has_none(archive):
    assert archive.run().versions == 0
    assert archive.records() == []


def test_metadata_that_cannot_be_asked_is_not_absence(archive):
    with (
        patch.object(
            archive.stack.metadata.__class__, "__getattr__", side_effect=MetadataError("x")
        ),
        pytest.raises(MetadataError),
    ):
        archive.run()


def test_a_node_that_says_nothing_is_named(archive):
    archive.scene.cluster.metadata.put(archive.registry.path, b"\xff")
    with pytest.raises(FormatError, match="metadata node /schemas/t/ns/orders"):
        archive.run()


def test_a_record_that_cannot_be_read_is_told_and_stays(archive):
    archive.registry.register(ONE)
    incarnation = archive.scene.cluster.metadata.nodes[archive.registry.path].stat.czxid
    key = archive.stack.book.prefix + keys.topic_schema(TOPIC, incarnation, 0)
    archive.scene.world.objects.put(key, b"{}")
    done = archive.run()
    assert [version for version, _error in done.failed] == [0]
    assert any("stays as it is" in line for line in archive.told)


def test_partitions_share_the_schemas_of_their_topic(archive):
    assert whole_topic(f"{TOPIC}-partition-7") == TOPIC
    archive.registry.register(ONE)
    archive.run()
    found = archived_schemas(archive.stack.book, f"{TOPIC}-partition-7", lambda *_: None)
    assert [one.record for one in found] == archive.records()


def test_a_deletion_is_archived_as_one(archive):
    archive.registry.register(ONE)
    archive.registry.delete()
    archive.run()
    assert [one.type for one in archive.records()] == ["AVRO", "DELETED"]


def test_records_are_named_in_the_day_book(archive):
    archive.registry.register(ONE)
    archive.run()
    archive.stack.book.close_page()
    [record] = archive.records()
    key = keys.topic_schema(TOPIC, record.incarnation, 0)
    stored = archive.stack.book.require(TopicSchema, key)
    newest = archive.stack.book.keys(keys.DAY_BOOK)[0]
    named = archive.stack.book.read_any(newest).record["records"]
    assert {"key": key, "sha256": stored.sha256} in named
