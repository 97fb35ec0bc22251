"""Both ways between our objects and a real broker's offloader, byte for byte and message for
message.
"""

import os
import random
import signal
import subprocess
import time
from dataclasses import replace
from functools import cache

import pytest

from tests.support.compare import first_byte_difference, first_entry_difference
from tests.support.live_topic import client_of, read_payloads, send_payloads
from tests.support.tiered_cluster import object_entries, tiered_cluster, wait_until
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import Reason
from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES
from tiering_assets.offload_format.decoder import decode_index
from tiering_assets.offload_format.keys import check_format_version, data_key, index_key
from tiering_assets.resources._proto.BookKeeperDataFormats_pb2 import LedgerMetadataFormat
from tiering_assets.resources.bookkeeper.digest import master_key
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState, DigestType
from tiering_assets.resources.bookkeeper.placement import write_set_of
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.bookkeeper.wire_v2 import AddEntry
from tiering_assets.resources.devstack.config import rewrite_properties
from tiering_assets.resources.devstack.fetch import fetch_distribution
from tiering_assets.resources.devstack.prerequisites import find_java, parse_java_major
from tiering_assets.resources.devstack.traffic import (
    KIB,
    TopicSpec,
    content_of,
    iter_messages,
    produce,
)
from tiering_assets.resources.errors import FormatError

pytestmark = pytest.mark.stack
MIB = 1024 * 1024
BLOCK_BYTES = 5 * MIB
TOO_LARGE = BLOCK_BYTES - HEADER_BYTES - FRAME_BYTES + 1  # the smallest entry no block has room for


@pytest.fixture(scope="module")
def cluster(stack_to_stop):
    assert stack_to_stop.options.block_bytes == BLOCK_BYTES
    with tiered_cluster(stack_to_stop) as connected:
        yield connected


# ----- the same ledger, offloaded by both

BOTH = [
    TopicSpec(
        topic="public/default/both-batched",
        messages=8000,
        payload_bytes=200,
        batched=True,
        compression="LZ4",
        properties=True,
    ),
    TopicSpec(topic="public/default/both-small", messages=4500, payload_bytes=300, keys=50),
    TopicSpec(topic="public/default/both-blocks", messages=150, payload_bytes=100 * KIB),
    TopicSpec(topic="public/default/both-single", messages=1, payload_bytes=3_000_000),
]


@pytest.fixture(scope="module", params=BOTH, ids=lambda spec: spec.topic)
def offloaded_by_both(request, cluster):
    """(topic, {ledger id: (our objects, the broker's objects)}); ours are not published."""
    spec = request.param
    cluster.fill(spec, replace(spec, seed=1))
    ledger_ids = cluster.ledger_ids(spec)
    ours = {
        outcome.ledger_id: outcome.certificate.record.uid
        for outcome in cluster.offload(ledger_ids, publish=False)
    }
    assert cluster.broker_offloads(spec)["status"] == "SUCCESS"
    theirs = {i: cluster.context_uid(spec, i) for i in ledger_ids}
    assert not set(ours.values()) & set(theirs.values())
    return spec, {
        i: (cluster.objects(i, ours[i]), cluster.objects(i, theirs[i])) for i in ledger_ids
    }


@cache
def broker_has_our_order():
    """Whether its Java maps have the order of Java 17's, which is ours and that of the goldens."""
    said = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True)
    return parse_java_major(said.stderr) == 17


def in_one_order(index):
    """The index as it is, or for another Java with its ledger's custom metadata sorted."""
    if broker_has_our_order():
        return index
    metadata = decode_index(index).ledger_metadata
    message = LedgerMetadataFormat.FromString(metadata)
    message.customMetadata.sort(key=lambda item: item.key)
    return index.replace(metadata, message.SerializeToString())


def test_our_two_objects_equal_the_brokers_byte_for_byte(offloaded_by_both):
    spec, ledgers = offloaded_by_both
    assert len(ledgers) == (6 if spec.topic.endswith("small") else 2)  # small ones roll at 2000
    for ours, theirs in ledgers.values():
        assert first_byte_difference(theirs.data, ours.data) is None
        difference = first_byte_difference(in_one_order(theirs.index), in_one_order(ours.index))
        assert difference is None
        blocks = len(decode_index(theirs.index).entries)
        assert blocks == (3 if spec.topic.endswith("blocks") else 1)


def test_we_read_what_the_brokers_offloader_wrote(cluster, offloaded_by_both):
    spec, ledgers = offloaded_by_both
    for ledger_id, (_ours, theirs) in ledgers.items():
        last_entry_id = cluster.ledger(ledger_id).last_entry_id
        difference = first_entry_difference(
            cluster.bookie_entries(ledger_id), object_entries(theirs, last_entry_id)
        )
        assert difference is None
        uid = cluster.context_uid(spec, ledger_id)
        for key in (data_key(uid, ledger_id), index_key(uid, ledger_id)):
            check_format_version(cluster.steps.objects.head(key).metadata)
    by = {view.offloaded_by for view in cluster.views(spec) if view.ledger_id in ledgers}
    assert by == {"broker"}
    for outcome in offload_batch(cluster.steps, ledgers):  # nor do we replace it by our own copy
        assert outcome.wait is not None, outcome
        assert outcome.wait.reason is Reason.PUBLISHED


# ----- entries larger than a block


@pytest.fixture(scope="module")
def oversized(cluster):
    """Payloads around a 12 MB chunked message and one whose entry is the smallest too large one."""
    source = random.Random(1)  # repeatable, not secret
    probe = "persistent://public/default/oversize-probe"
    send_payloads(cluster.endpoints, probe, [bytes(TOO_LARGE - 100)], chunked=False, name="exact")
    entry_bytes = cluster.steps.broker.internal_stats(probe)["currentLedgerSize"]
    exact = TOO_LARGE - (entry_bytes - (TOO_LARGE - 100))
    sizes = (100, 12_000_000, 2000, exact, 500)
    return [source.randbytes(size) for size in sizes]


def _send_oversized(cluster, spec, payloads):
    for payload in payloads:
        chunked = len(payload) > 2 * BLOCK_BYTES
        send_payloads(
            cluster.endpoints,
            f"persistent://{spec.topic}",
            [payload],
            chunked=chunked,
            name="exact",
        )
    cluster.seal(spec)
    [ledger_id] = cluster.ledger_ids(spec)
    lengths = [len(payload) for _entry_id, payload in cluster.bookie_entries(ledger_id)]
    assert TOO_LARGE == 5_242_741
    assert TOO_LARGE in lengths
    assert sum(length > TOO_LARGE for length in lengths) == 2  # two of the three chunks
    return ledger_id


def test_entries_larger_than_a_block_are_served_after_their_release(cluster, oversized):
    spec = TopicSpec(topic="public/default/oversize-ours", messages=0, payload_bytes=0)
    ledger_id = _send_oversized(cluster, spec, oversized)
    [outcome] = cluster.offload([ledger_id])
    certificate = outcome.certificate.record
    assert sum(block.block_length > BLOCK_BYTES for block in certificate.blocks) == 3
    topic = f"persistent://{spec.topic}"
    assert read_payloads(cluster.endpoints, topic) == oversized
    cluster.release(spec, [ledger_id])
    cluster.require_gone_from_bookies([ledger_id])
    cluster.seal(spec)
    assert read_payloads(cluster.endpoints, topic) == oversized


def test_the_brokers_own_offloader_truncates_such_a_ledger_and_we_name_it(cluster, oversized):
    spec = TopicSpec(topic="public/default/oversize-theirs", messages=0, payload_bytes=0)
    ledger_id = _send_oversized(cluster, spec, oversized)
    assert cluster.broker_offloads(spec)["status"] == "SUCCESS"
    theirs = cluster.objects(ledger_id, cluster.context_uid(spec, ledger_id))
    try:
        with pytest.raises(FormatError, match=r"its writer stopped before entry 1, .* lacks that"):
            decode_index(theirs.index)
        claimed = int.from_bytes(theirs.index[8:16], "big")
        assert (claimed, len(theirs.data)) == (BLOCK_BYTES, 2 * BLOCK_BYTES)
    finally:  # its messages cannot be read: leave no such topic to other tests
        cluster.admin("DELETE", f"/persistent/{spec.topic}?force=true")


# ----- how ledgers may be written


DIGESTS = {
    "CRC32C": DigestType.CRC32C,  # the default
    "DUMMY": DigestType.DUMMY,
    "MAC": DigestType.HMAC,
    "CRC32": DigestType.CRC32,
}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("CRC32C", "DUMMY"), id="CRC32C and none"),
        pytest.param(
            ("MAC", "CRC32"),
            id="MAC and CRC32",  # a broker starts anew for each
            marks=pytest.mark.prove(
                instead="tests/golden/test_format_golden.py::test_layout_from_entry_lengths_is_the_brokers"
            ),
        ),
    ],
)
def test_ledgers_of_every_digest_type_are_read_by_the_broker_after_their_release(cluster, names):
    sent = {}

    def write(name):
        spec = TopicSpec(topic=f"public/default/digest-{name}", messages=400, payload_bytes=1000)
        sent[name] = spec, cluster.fill(spec, replace(spec, seed=1))

    try:
        for name in names:
            if name != "CRC32C":
                cluster.restart_broker(managedLedgerDigestType=name)
            write(name)
    finally:
        cluster.restart_broker()
    released = []
    for name, (spec, content) in sent.items():
        ledger_ids = cluster.ledger_ids(spec)
        types = [cluster.ledger(ledger_id).digest_type for ledger_id in ledger_ids]
        assert types == [DIGESTS[name]] * 2
        agreed = {o.certificate.record.replicas_agreed for o in cluster.offload(ledger_ids)}
        assert agreed == {2 if name == "DUMMY" else None}
        assert cluster.content(spec) == content
        cluster.release(spec, ledger_ids)
        assert cluster.content(spec) == content
        released += ledger_ids
    assert len(released) == 2 * len(names)
    cluster.require_gone_from_bookies(released)


def test_a_ledger_whose_ensemble_changed_while_it_was_written(cluster):
    spec = TopicSpec(topic="public/default/ensemble-change", messages=600, payload_bytes=KIB)
    messages = list(iter_messages(spec))
    with client_of(cluster.endpoints) as client:
        producer = client.create_producer(f"persistent://{spec.topic}", batching_enabled=False)
        for message in messages[:300]:
            producer.send(message.payload)
        [open_ledger] = cluster.ledger_ids(spec, "open")
        lost = cluster.ledger(open_ledger).segments[-1].bookies[0]
        server = cluster.endpoints.bookie_names[lost]
        cluster.running.stop_server(server, kill=True)
        try:
            for message in messages[300:]:
                producer.send(message.payload)
        finally:
            cluster.running.start_server(server)
        producer.close()
    cluster.seal(spec)
    [ledger_id] = cluster.ledger_ids(spec)
    metadata = cluster.ledger(ledger_id)
    assert ledger_id == open_ledger
    assert [s.first_entry_id for s in metadata.segments] == [0, 300]
    assert lost not in metadata.segments[1].bookies
    cluster.offload([ledger_id])
    cluster.release(spec, [ledger_id])
    cluster.require_gone_from_bookies([ledger_id])
    assert cluster.content(spec) == content_of(messages)


# ----- a ledger that recovery closed


def test_a_length_beyond_the_last_entry_is_no_contradiction(cluster, tmp_path):
    """As a killed broker leaves it: an entry that nobody was promised is on one bookie only.

    That bookie's answer gives recovery the length, and the other one's, which has no such entry,
    the end of the ledger. BookKeeper's own shell recovers it: a broker asks either of them first,
    by chance.
    """
    spec = TopicSpec(topic="public/default/recovered", messages=60, payload_bytes=100 * KIB)
    produce(cluster.endpoints, spec)
    [ledger_id] = cluster.ledger_ids(spec, "open")
    cluster.running.stop_server("broker", kill=True)
    first_asked = write_one_more(cluster, ledger_id, bytes(1000))
    name = cluster.endpoints.bookie_names[first_asked]
    [pid] = [one.pid for one in cluster.running.status() if one.name == name]
    said = tmp_path / "said"
    with start_recovery(cluster.running, ledger_id, said) as recovery:
        # No sooner: a bookie that is stopped for longer than its session lasts is nobody's any
        # more.
        wait_until(lambda: "ZooKeeper client is connected" in said.read_text(), "the shell runs")
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(
                lambda: cluster.ledger(ledger_id).state is BookKeeperState.IN_RECOVERY,
                "BookKeeper's shell recovers the ledger",
            )
            time.sleep(2)  # the bookie that runs answers in milliseconds
        finally:
            os.kill(pid, signal.SIGCONT)
    assert recovery.returncode == 0
    cluster.running.start_server("broker")
    cluster.steps.broker.internal_stats(f"persistent://{spec.topic}")  # loads it

    closed = cluster.ledger(ledger_id)
    payload_bytes = sum(len(payload) for _entry_id, payload in cluster.bookie_entries(ledger_id))
    assert (closed.last_entry_id, closed.length - payload_bytes) == (59, 1000)
    [outcome] = cluster.offload([ledger_id], publish=False)
    assert "1000 bytes beyond the last entry 59" in str(outcome.notes)
    ours = cluster.objects(ledger_id, outcome.certificate.record.uid)
    assert len(decode_index(ours.index).entries) == 2
    assert cluster.broker_offloads(spec)["status"] == "SUCCESS"
    theirs = cluster.objects(ledger_id, cluster.context_uid(spec, ledger_id))
    assert first_byte_difference(theirs.data, ours.data) is None
    assert first_byte_difference(theirs.index, ours.index) is None


def start_recovery(running, ledger_id, said):
    """BookKeeper's shell, which closes the ledger and reads it: in the order of its write sets, and
    however long the first bookie of one takes.
    """
    conf = running.directory / "conf"
    in_order = conf / "in_order.conf"
    changes = {
        "stickyReadSEnabled": "false",
        "reorderReadSequenceEnabled": "false",
        "speculativeReadTimeout": "0",
        "readEntryTimeoutSec": "60",
    }
    in_order.write_text(rewrite_properties((conf / "bookie1.conf").read_text(), changes))
    distribution = fetch_distribution(version=running.options.pulsar_version)
    places = {
        "BOOKIE_CONF": str(in_order),
        "BOOKIE_LOG_DIR": str(running.directory / "logs"),
        "BOOKIE_MEM": "-Xmx256m",
        "BOOKIE_GC_LOG": "-Dtierkeeper.gclog=off",
    }
    shell = str(distribution / "bin" / "bookkeeper")
    command = [shell, "shell", "readledger", "-r", "-l", str(ledger_id), "-fe", "0", "-le", "59"]
    with said.open("w") as log:
        return subprocess.Popen(command, env=os.environ | places, stdout=log)


def write_one_more(cluster, ledger_id, payload):
    """Add the next entry of an open ledger to the last bookie of its write set; return the
    first.
    """
    ledger = cluster.ledger(ledger_id)
    settings = cluster.steps.settings.bookies
    codec = EntryCodec(
        ledger_id=ledger_id, digest_type=ledger.digest_type, password=ledger.password
    )
    with BookiePool(settings, cluster.steps.ledgers.resolve) as pool:
        as_if_closed = replace(ledger, last_entry_id=59, state=BookKeeperState.CLOSED)
        length = LedgerReader(as_if_closed, pool, settings).cumulative_length(59)
        bookies = write_set_of(
            ledger.segments[-1].bookies, write_quorum=ledger.write_quorum, entry_id=60
        )
        assert len(bookies) == 2
        connection = pool.connection(bookies[-1])
        request = AddEntry(
            ledger_id=ledger_id,
            entry_id=60,
            master_key=master_key(ledger.password),
            stored=codec.encode(
                entry_id=60,
                last_add_confirmed=59,
                cumulative_length=length + len(payload),
                payload=payload,
            ),
        )
        connection.submit(request)
        connection.receive(request)
    return bookies[0]
