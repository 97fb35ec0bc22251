"""Scanning a bucket of golden objects that a broker wrote, damaged in known ways."""

import struct
from dataclasses import replace
from uuid import UUID

import pytest

from tests.support.golden_objects import golden_ledgers
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.audit.scan.object_scan import ScanCounts, scan_objects
from tiering_assets.offload_format.keys import (
    FORMAT_VERSION,
    FORMAT_VERSION_KEY,
    INSTANCE_KEY,
    ML_NAME_KEY,
)
from tiering_assets.records.models import EntryRange
from tiering_assets.resources.errors import MetadataError, ObjectStoreError

TOPIC = "t/ns/persistent/orders"
META = {FORMAT_VERSION_KEY: FORMAT_VERSION, ML_NAME_KEY: TOPIC}
LEDGERS = [one for one in golden_ledgers() if one.has_data and len(one.data()) < 2_000_000]
TWO_BLOCKS = next(one for one in golden_ledgers() if one.folder.name == "multi-block")
ONE = next(one for one in LEDGERS if len(one.entries()) > 10)


class Bucket:
    def __init__(self):
        self.world = World(1)
        self.site = self.world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        self.site.broker.create_topic(TOPIC)
        self.stack = Process(self.world, "cli", self.site).stack()

    def put(self, ledger, *, data=None, index=None, metadata=META, without=()):
        key = ledger.facts["data_key"]
        for name, body in (
            (key, ledger.data() if data is None else data),
            (f"{key}-index", ledger.index() if index is None else index),
        ):
            if name.removeprefix(key) not in without:
                self.world.objects.put(name, bytes(body), metadata=metadata)
        return key

    def scan(self, stack=None, **how):
        counts = ScanCounts()
        return list(scan_objects(stack or self.stack, counts, **how)), counts


@pytest.fixture
def bucket():
    return Bucket()


def everything(ledger):
    return (EntryRange(0, len(ledger.entries()) - 1),)


def test_what_brokers_wrote_is_whole(bucket):
    for ledger in LEDGERS:
        bucket.put(ledger)
    bucket.world.objects.put("somebody/elses", b"x")
    ours = sum(key.startswith("tierkeeper/") for key in bucket.world.objects.peek_keys())
    found, counts = bucket.scan()
    assert found == []
    assert (counts.pairs, counts.others, counts.unread) == (len(LEDGERS), 1 + ours, [])


@pytest.mark.parametrize(
    ("without", "kind"), [({""}, "index without data"), ({"-index"}, "data without index")]
)
@pytest.mark.parametrize("shallow", [True, False])
def test_a_half_alone_gives_no_entry(bucket, without, kind, shallow):
    key = bucket.put(ONE, without=without)
    [found], counts = bucket.scan(shallow=shallow)
    assert (found.kind, found.key, found.written_by) == (kind, key, "broker")
    assert counts.pairs == 1
    if without == {""}:  # the index still says how many there were
        assert found.unreadable == everything(ONE)
    else:
        assert (found.unreadable, found.entries) == (None, None)


def test_one_flipped_bit_of_a_payload_costs_that_entry_alone(bucket):
    data = bytearray(ONE.data())
    at = 128 + 12 + ONE.entries()[0][1] - 1  # the last byte of entry 0
    data[at] ^= 1
    bucket.put(ONE, data=data)
    # Nothing in the format protects a payload: only the message's own checksum and our digests can
    # tell, so a scan without a certificate reads every frame and finds the frames right.
    found, _counts = bucket.scan()
    assert [one.kind for one in found] in ([], ["bad bytes"])
    data[128 + 12 + ONE.entries()[0][1] + 4] ^= 0x40  # the id in the second frame
    bucket.put(ONE, data=data)
    [found], _counts = bucket.scan()
    assert found.kind == "bad bytes"
    last = len(ONE.entries()) - 1
    assert found.unreadable is not None
    assert found.unreadable[-1].last_entry_id == last
    assert bucket.scan(shallow=True)[0] == []


def test_a_data_object_that_was_cut_loses_the_entries_behind_the_cut(bucket):
    data = ONE.data()
    kept = ONE.entries()[:5]
    cut = 128 + sum(12 + length for _id, length, _digest in kept) + 3
    bucket.put(ONE, data=data[:cut])
    for shallow in (True, False):
        [found], _counts = bucket.scan(shallow=shallow)
        assert found.kind == "truncated"
        assert found.unreadable == (EntryRange(5, len(ONE.entries()) - 1),)


def test_the_signature_of_a_brokers_truncation_has_its_name(bucket):
    """As lab-measured: the index tells fewer bytes than the object has; the last block is
    padding.
    """
    index = bytearray(ONE.index())
    data = ONE.data()
    struct.pack_into(">q", index, 8, len(data))
    metadata_length = struct.unpack_from(">i", index, 28)[0]
    count = struct.unpack_from(">i", index, 24)[0]
    assert count == 1
    struct.pack_into(">i", index, 24, 2)
    stop = len(ONE.entries()) // 2
    index += struct.pack(">qiq", stop, 2, len(data))
    struct.pack_into(">i", index, 4, len(index))
    assert len(index) > 40 + metadata_length
    bucket.put(ONE, index=index, data=data + b"\xfe\xdc\xde\xad" * 32)
    [found], _counts = bucket.scan(shallow=True)
    assert found.kind == "truncated"
    assert found.unreadable == (EntryRange(stop, len(ONE.entries()) - 1),)


def test_an_index_of_garbage_gives_nothing(bucket):
    bucket.put(ONE, index=b"garbage")
    [found], _counts = bucket.scan()
    assert (found.kind, found.unreadable) == ("index does not decode", None)


def test_whether_the_bookie_copy_lives_is_told_gone_or_unknown_and_never_guessed(bucket):
    key = bucket.put(ONE, without={"-index"})
    [found], _counts = bucket.scan()
    assert (found.bookie_copy, found.readers) == ("gone", "read by nobody")
    assert found.lost is None  # nothing says how many
    assert "orphan list" in found.next_step

    class Away:
        def __getattr__(self, _name):
            def refuse(*_args, **_options):
                raise MetadataError("ZooKeeper zk:h:1: its ACL denies us to read it")

            return refuse

    away = replace(
        bucket.stack,
        ledgers=type(bucket.stack.ledgers)(Away()),
        topics=type(bucket.stack.topics)(Away()),
    )
    [found], _counts = bucket.scan(away)
    assert (found.bookie_copy, found.readers, found.lost) == ("unknown", "unknown", ())
    assert "metadata.store" in found.next_step

    bucket.world.objects.put(key, ONE.data(), metadata=META | {INSTANCE_KEY: "another"})
    [found], _counts = bucket.scan()
    assert (found.bookie_copy, found.written_by) == ("unknown", "tierkeeper of instance another")
    bucket.world.objects.put(key, ONE.data(), metadata=META | {ML_NAME_KEY: "t/ns/persistent/no"})
    assert bucket.scan()[0][0].bookie_copy == "unknown"  # this cluster does not know the topic


def test_a_ledger_that_lives_is_to_be_scrubbed(bucket):
    site = bucket.site
    site.broker.produce(TOPIC, [b"first", b"later"])
    site.broker.roll_over(TOPIC)
    found = bucket.stack.topics.read(TOPIC)
    ledger_id = found[0].ledgers[0].ledger_id
    uid = UUID(int=7)
    bucket.world.objects.put(f"{uid}-ledger-{ledger_id}", b"x", metadata=META)
    [damage], _counts = bucket.scan()
    assert (damage.bookie_copy, damage.entries, damage.lost) == ("lives", 2, ())
    assert damage.unreadable == (EntryRange(0, 1),)
    assert damage.readers == "read by nobody"


def test_one_object_that_the_store_does_not_give_hides_no_other(bucket):
    key = bucket.put(ONE)
    bucket.put(next(one for one in LEDGERS if one is not ONE), without={""})

    class Denying:
        def __getattr__(self, name):
            real = getattr(bucket.stack.objects, name)

            def call(*args, **options):
                if args and args[0] == key:
                    raise ObjectStoreError(f"{key}: access denied")
                return real(*args, **options)

            return call

    found, counts = bucket.scan(replace(bucket.stack, objects=Denying()))
    assert [one.kind for one in found] == ["index without data"]
    assert [one.key for one in counts.unread] == [key]
