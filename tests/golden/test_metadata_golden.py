"""The metadata nodes of a real broker: what we read in them and what we would write back."""

import json
import uuid
from pathlib import Path

import pytest

from tests.support.golden_objects import golden_ledgers
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.bookkeeper.ledger_metadata import (
    decode_index_ledger_metadata,
    decode_ledger_metadata,
    encode_ledger_metadata,
    index_ledger_metadata,
)
from tiering_assets.resources.metastore.cursors import decode_cursor
from tiering_assets.resources.metastore.envelope import Compression
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.ledger_paths import LedgerLayout, ledger_id_at, ledger_path
from tiering_assets.resources.metastore.offload_context import (
    OffloadContext,
    driver_properties,
    mark_bookkeeper_deleted,
    publish_contexts,
    remove_contexts,
    unmark_bookkeeper_deleted,
)
from tiering_assets.resources.metastore.topic_names import (
    managed_ledger_path,
    never_touched,
    parse_managed_ledger_name,
    parse_topic_name,
)

GOLDEN = Path(__file__).parent
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/manifest.json"))
LEDGERS = golden_ledgers()


def manifest(case):
    return json.loads((GOLDEN / case / "manifest.json").read_text())


ML_NODES = [
    (case, facts["file"], facts["decoded"])
    for case in CASES
    for facts in manifest(case)["files"].values()
    if facts["file"].startswith("ml.")
]
CURSORS = [(case, facts) for case in CASES for facts in manifest(case)["cursors"]]


def test_the_golden_set_is_here():
    assert len(CASES) == 18
    assert len(ML_NODES) >= 37
    assert len(CURSORS) == 6
    assert len(LEDGERS) == 22


def expected_context(facts):
    if facts is None:
        return None
    mask = 2**64 - 1
    driver = facts["driverMetadata"]
    return OffloadContext(
        uid=uuid.UUID(int=(facts["uidMsb"] & mask) << 64 | facts["uidLsb"] & mask),
        complete=facts["complete"],
        bookkeeper_deleted=facts.get("bookkeeperDeleted", False),
        timestamp_ms=facts["timestamp"],
        driver_name=driver["name"],
        properties={pair["key"]: pair["value"] for pair in driver["properties"]},
    )


def as_list(value):
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize(("case", "file", "facts"), ML_NODES)
def test_a_managed_ledger_decodes_to_its_manifest(case, file, facts):
    ml = decode_managed_ledger((GOLDEN / case / file).read_bytes())
    listed = sorted(as_list(facts["ledgerInfo"]), key=lambda info: info["ledgerId"])
    assert [info.ledger_id for info in ml.ledgers] == [info["ledgerId"] for info in listed]
    for info, expected in zip(ml.ledgers, listed, strict=True):
        assert info.entries == expected.get("entries")
        assert info.size == expected.get("size")
        assert info.closed_at_ms == (expected["timestamp"] or None)
        assert info.is_open == ("entries" not in expected)
        assert info.offload == expected_context(expected.get("offloadContext"))
    position = facts.get("terminatedPosition")
    found = ml.terminated_at
    assert (found is None) == (position is None)
    if found is not None:
        assert (found.ledger_id, found.entry_id) == (position["ledgerId"], position["entryId"])
    properties = {pair["key"]: pair["value"] for pair in as_list(facts.get("properties", []))}
    assert ml.properties == properties


@pytest.mark.parametrize(("case", "file", "facts"), ML_NODES)
def test_an_unedited_managed_ledger_is_written_back_as_it_was(case, file, facts):
    data = (GOLDEN / case / file).read_bytes()
    ml = decode_managed_ledger(data)
    codec = case.removeprefix("envelope-").upper() if case.startswith("envelope-") else "NONE"
    assert ml.compression is Compression[codec]
    if ml.compression is Compression.NONE:
        assert encode_managed_ledger(ml) == data
        assert ml.uncompressed_bytes == len(data)
    else:
        again = encode_managed_ledger(ml)
        assert again[:7] == data[:7]  # magic, metadata size, first tag
        assert decode_managed_ledger(again) == ml


def parsed(ml):
    """The message by ledger id: the broker's own offload leaves the list unsorted."""
    message = ml_pb2.ManagedLedgerInfo()
    message.CopyFrom(ml.message_copy())
    ordered = sorted(message.ledgerInfo, key=lambda info: info.ledgerId)
    del message.ledgerInfo[:]
    message.ledgerInfo.extend(ordered)
    return message


@pytest.mark.parametrize("case", CASES)
def test_our_publish_equals_the_brokers(case):
    before = decode_managed_ledger((GOLDEN / case / "ml.before.bin").read_bytes())
    after = decode_managed_ledger((GOLDEN / case / "ml.after.bin").read_bytes())
    driver = driver_properties(
        driver="aws-s3",
        bucket="pulsar-offload",
        region="us-east-1",
        endpoint="http://127.0.0.1:17070",
    )
    contexts = {
        info.ledger_id: OffloadContext(
            uid=info.offload.uid,
            complete=True,
            timestamp_ms=info.offload.timestamp_ms,
            driver_name="aws-s3",
            properties=driver,
        )
        for info in after.ledgers
        if info.offload is not None
    }
    assert contexts
    ours = publish_contexts(before, contexts)
    listed_after = {info.ledger_id for info in after.ledgers}
    if {info.ledger_id for info in ours.ledgers} == listed_after:
        assert parsed(ours) == parsed(after)
    else:  # the topic rolled over in between
        ours_by_id = {info.ledger_id: info for info in ours.ledgers}
        for info in after.ledgers:
            if info.offload is not None:
                assert ours_by_id[info.ledger_id] == info
    again = publish_contexts(decode_managed_ledger(encode_managed_ledger(ours)), contexts)
    assert encode_managed_ledger(again) == encode_managed_ledger(ours)
    uids = {ledger_id: context.uid for ledger_id, context in contexts.items()}
    assert encode_managed_ledger(remove_contexts(ours, uids)) == encode_managed_ledger(before)


def test_our_mark_equals_the_brokers():
    folder = GOLDEN / "bk-deleted"
    ml = decode_managed_ledger((folder / "ml.v11.bin").read_bytes())
    uids = {info.ledger_id: info.offload.uid for info in ml.ledgers if info.offload is not None}
    marked = mark_bookkeeper_deleted(ml, uids)
    for file in ("ml.v12.bin", "ml.bkdeleted.bin"):
        assert parsed(marked) == parsed(decode_managed_ledger((folder / file).read_bytes()))
    unmarked = unmark_bookkeeper_deleted(marked, uids)
    assert encode_managed_ledger(unmarked) == (folder / "ml.v11.bin").read_bytes()


@pytest.mark.parametrize(("case", "facts"), CURSORS)
def test_a_cursor_decodes_to_its_manifest(case, facts):
    cursor = decode_cursor((GOLDEN / case / facts["file"]).read_bytes())
    expected = facts["decoded"]
    assert cursor.mark_delete is not None
    assert cursor.cursors_ledger_id == expected["cursorsLedgerId"]
    assert cursor.mark_delete.ledger_id == expected["markDeleteLedgerId"]
    assert cursor.mark_delete.entry_id == expected["markDeleteEntryId"]
    assert cursor.last_active_ms == expected["lastActive"]
    ranges = [
        {
            "lower": {"ledgerId": item.lower.ledger_id, "entryId": item.lower.entry_id},
            "upper": {"ledgerId": item.upper.ledger_id, "entryId": item.upper.entry_id},
        }
        for item in cursor.individually_deleted
    ]
    assert ranges == expected.get("individualDeletedMessages", [])


@pytest.mark.parametrize("ledger", LEDGERS, ids=str)
def test_ledger_metadata_decodes_to_its_manifest(ledger):
    metadata = decode_ledger_metadata(ledger.ledger_id, ledger.znode())
    expected = ledger.facts["bk_metadata"]
    assert metadata.state is BookKeeperState.CLOSED
    assert metadata.entries == ledger.facts["entries"]
    assert metadata.last_entry_id == ledger.facts["last_entry_id"]
    assert metadata.length == ledger.facts["payload_bytes"]
    assert metadata.digest_type.value == expected["digestType"]
    assert metadata.write_quorum == expected["quorumSize"]
    assert metadata.ensemble_size == expected["ensembleSize"]
    assert metadata.ack_quorum == expected["ackQuorumSize"]
    assert metadata.password == expected["password"].encode()
    segments = [
        (item["firstEntryId"], as_list(item["ensembleMember"]))
        for item in as_list(expected["segment"])
    ]
    assert [(item.first_entry_id, list(item.bookies)) for item in metadata.segments] == segments
    custom = {key: value.decode() for key, value in metadata.custom.items()}
    ml_name = custom["pulsar/managed-ledger"]
    assert ml_name == manifest(ledger.folder.name)["ml_name"]
    assert custom["application"] == "pulsar"


@pytest.mark.parametrize("ledger", LEDGERS, ids=str)
def test_ledger_metadata_is_encoded_as_bookkeeper_does(ledger):
    metadata = decode_ledger_metadata(ledger.ledger_id, ledger.znode())
    assert encode_ledger_metadata(metadata, ctoken=0) == ledger.znode()


@pytest.mark.parametrize("ledger", LEDGERS, ids=str)
def test_the_index_metadata_equals_the_brokers(ledger):
    index = ledger.index()
    inside = index[32 : 32 + int.from_bytes(index[28:32], "big")]
    ctime_ms = ledger.facts["bk_znode_stat"]["ctime"]
    made = index_ledger_metadata(ledger.znode(), ledger_id=ledger.ledger_id, ctime_ms=ctime_ms)
    assert made == inside
    read = decode_index_ledger_metadata(inside)
    assert read.ctime_ms == ctime_ms
    assert read.ledger_id == -1
    assert read.password is None


@pytest.mark.parametrize("ledger", LEDGERS, ids=str)
def test_the_path_of_a_ledger_is_bookkeepers(ledger):
    path = ledger.facts["bk_znode"]
    assert ledger_path("/ledgers", ledger.ledger_id, LedgerLayout.HIERARCHICAL) == path
    assert ledger_id_at("/ledgers", path, LedgerLayout.HIERARCHICAL) == ledger.ledger_id


@pytest.mark.parametrize("case", CASES)
def test_the_names_of_a_topic_are_pulsars(case):
    facts = manifest(case)
    topic = parse_topic_name(facts["topic"])
    assert topic.managed_ledger_name == facts["ml_name"]
    assert str(parse_managed_ledger_name(facts["ml_name"])) == facts["topic"]
    assert managed_ledger_path(facts["ml_name"]) == facts["ml_znode"]
    assert never_touched(facts["ml_name"], {}) is None
