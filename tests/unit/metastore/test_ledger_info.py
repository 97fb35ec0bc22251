import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import (
    FormatError,
    MetadataConflictError,
    RefusedError,
    SettingsError,
)
from tiering_assets.resources.metastore.cursors import decode_cursor
from tiering_assets.resources.metastore.envelope import Compression, encode_enveloped
from tiering_assets.resources.metastore.ledger_info import (
    Position,
    decode_managed_ledger,
    encode_managed_ledger,
    plain_ledgers,
)
from tiering_assets.resources.metastore.offload_context import (
    OffloadContext,
    driver_properties,
    mark_bookkeeper_deleted,
    publish_contexts,
    remove_contexts,
    unmark_bookkeeper_deleted,
)

# The format's vector: ledger 7, sealed, with a prepared context; independent of our encoder.
PREPARED = bytes.fromhex(
    "0a840108071003180c20f4d395ffbc312a7508d882c1e9a3e886c3da0110b7a1e1f2f394fedeba01325d0a066177732d"
    "733312240a1a6d616e616765644c65646765724f66666c6f616444726976657212064157535f5333120b0a066275636b"
    "6574120162120b0a06726567696f6e12017212130a0f73657276696365456e64706f696e741200"
)
UID = uuid.UUID("da861b42-3d30-4158-babd-f8a73e5850b7")
OTHER = uuid.UUID("00000000-0000-4000-8000-000000000001")
# A later field of ours to nobody's knowledge: number 100, varint 7, in every message it can be in.
UNKNOWN = b"\xa0\x06\x07"


def context(uid=UID, **changes):
    values = {
        "uid": uid,
        "complete": True,
        "timestamp_ms": 1700000001000,
        "driver_name": "aws-s3",
        "properties": driver_properties(driver="aws-s3", bucket="b", region="r", endpoint=""),
    }
    return OffloadContext(**(values | changes))


def managed_ledger(*, contexts=(), **fields):
    """Ledgers 4 and 6 sealed, 9 open, unsorted as a broker leaves them."""
    message = ml_pb2.ManagedLedgerInfo(**fields)
    message.ledgerInfo.add(ledgerId=9, timestamp=0)
    message.ledgerInfo.add(ledgerId=6, entries=3, size=30, timestamp=1700000000600)
    message.ledgerInfo.add(ledgerId=4, entries=2, size=20, timestamp=1700000000400)
    return publish_contexts(decode_managed_ledger(message.SerializeToString()), dict(contexts))


def offload(ml, ledger_id):
    info = ml.ledger(ledger_id)
    assert info is not None
    return info.offload


def test_the_vector_decodes():
    ml = decode_managed_ledger(PREPARED)
    (info,) = ml.ledgers
    assert (info.ledger_id, info.entries, info.size) == (7, 3, 12)
    assert info.closed_at_ms == 1700000000500
    assert info.offload == OffloadContext(
        uid=UID,
        complete=False,
        driver_name="aws-s3",
        properties={
            "managedLedgerOffloadDriver": "AWS_S3",
            "bucket": "b",
            "region": "r",
            "serviceEndpoint": "",
        },
    )
    assert encode_managed_ledger(ml) == PREPARED


def test_a_new_node_is_empty():
    ml = decode_managed_ledger(b"")
    assert (ml.ledgers, ml.terminated_at, ml.properties) == ((), None, {})
    assert encode_managed_ledger(ml) == b""


def test_ledgers_are_sorted_and_found_by_id():
    ml = managed_ledger(properties=[ml_pb2.KeyValue(key="k", value="v")])
    assert [info.ledger_id for info in ml.ledgers] == [4, 6, 9]
    assert [info.is_open for info in ml.ledgers] == [False, False, True]
    assert [info.size for info in ml.ledgers] == [20, 30, None]
    assert ml.ledger(5) is None
    assert ml.properties == {"k": "v"}


def test_the_terminated_position():
    position = ml_pb2.NestedPositionInfo(ledgerId=9, entryId=1)
    assert managed_ledger(terminatedPosition=position).terminated_at == Position(9, 1)


def test_an_edit_keeps_unknown_fields_order_and_other_contexts():
    base = managed_ledger(contexts={4: context(OTHER)})
    data = encode_managed_ledger(base)
    inner = ml_pb2.ManagedLedgerInfo()
    inner.ParseFromString(data)
    rebuilt = b""
    for info in inner.ledgerInfo:
        body = info.SerializeToString() + UNKNOWN
        rebuilt += b"\x0a" + encode_length(len(body)) + body
    rebuilt += UNKNOWN
    edited = encode_managed_ledger(publish_contexts(decode_managed_ledger(rebuilt), {6: context()}))
    assert edited.count(UNKNOWN) == 4
    assert edited.endswith(UNKNOWN)
    ml = decode_managed_ledger(edited)
    assert (offload(ml, 6), offload(ml, 4)) == (context(), context(OTHER))
    assert [info.ledgerId for info in ml.message_copy().ledgerInfo] == [9, 6, 4]
    removed = remove_contexts(ml, {6: UID})
    assert encode_managed_ledger(removed) == rebuilt


def encode_length(value):
    return bytes([value]) if value < 128 else bytes([value & 0x7F | 0x80, value >> 7])


@pytest.mark.parametrize("kind", Compression)
def test_an_edit_is_written_in_the_form_that_was_found(kind):
    plain = encode_managed_ledger(managed_ledger())
    ml = decode_managed_ledger(encode_enveloped(plain, kind))
    edited = publish_contexts(ml, {6: context()})
    assert edited.compression is kind
    again = decode_managed_ledger(encode_managed_ledger(edited))
    assert again == edited
    assert again.uncompressed_bytes == edited.uncompressed_bytes > len(plain)


def test_an_edit_leaves_the_view_it_came_from():
    ml = managed_ledger()
    before = encode_managed_ledger(ml)
    publish_contexts(ml, {6: context()})
    ml.message_copy().Clear()
    assert encode_managed_ledger(ml) == before


def test_publish_twice_is_publish_once():
    ml = managed_ledger(contexts={6: context()})
    later = publish_contexts(ml, {6: context(timestamp_ms=1800000000000)})
    assert encode_managed_ledger(later) == encode_managed_ledger(ml)


def test_publish_completes_the_context_of_the_same_attempt():
    ml = decode_managed_ledger(PREPARED)
    assert offload(publish_contexts(ml, {7: context()}), 7) == context()


@pytest.mark.parametrize(
    ("ledger_id", "says"),
    [
        (5, "ledger 5: not in the managed ledger's list any more.*4 to 9"),
        (9, "ledger 9: expected a sealed ledger.*open"),
        (4, f"ledger 4: expected the offload context of attempt {UID}, found that of {OTHER}"),
    ],
)
def test_an_edit_on_another_list_than_expected_is_a_conflict(ledger_id, says):
    ml = managed_ledger(contexts={4: context(OTHER)})
    with pytest.raises(MetadataConflictError, match=says):
        publish_contexts(ml, {ledger_id: context()})
    for edit in (mark_bookkeeper_deleted, unmark_bookkeeper_deleted, remove_contexts):
        with pytest.raises(MetadataConflictError, match=says):
            edit(ml, {ledger_id: UID})


@pytest.mark.parametrize("edit", [mark_bookkeeper_deleted, unmark_bookkeeper_deleted])
def test_a_mark_needs_a_context(edit):
    with pytest.raises(MetadataConflictError, match="found none"):
        edit(managed_ledger(), {6: UID})


def test_mark_and_unmark_are_inverse_and_run_twice():
    ml = managed_ledger(contexts={6: context(), 4: context(OTHER)})
    marked = mark_bookkeeper_deleted(ml, {6: UID})
    assert offload(marked, 6).bookkeeper_deleted
    assert not offload(marked, 4).bookkeeper_deleted
    twice = mark_bookkeeper_deleted(marked, {6: UID})
    assert encode_managed_ledger(twice) == encode_managed_ledger(marked)
    back = unmark_bookkeeper_deleted(unmark_bookkeeper_deleted(twice, {6: UID}), {6: UID})
    assert encode_managed_ledger(back) == encode_managed_ledger(ml)


def test_an_incomplete_context_is_not_marked():
    with pytest.raises(RefusedError, match="not complete"):
        mark_bookkeeper_deleted(decode_managed_ledger(PREPARED), {7: UID})


def test_a_context_without_a_bookie_copy_is_not_removed():
    ml = mark_bookkeeper_deleted(managed_ledger(contexts={6: context()}), {6: UID})
    with pytest.raises(RefusedError, match="bookkeeperDeleted"):
        remove_contexts(ml, {6: UID})


def test_removing_an_incomplete_or_absent_context():
    removed = remove_contexts(decode_managed_ledger(PREPARED), {7: UID})
    assert offload(removed, 7) is None
    again = remove_contexts(removed, {7: UID})
    assert encode_managed_ledger(again) == encode_managed_ledger(removed)


@pytest.mark.parametrize("changes", [{"complete": False}, {"bookkeeper_deleted": True}])
def test_only_fresh_complete_contexts_are_published(changes):
    with pytest.raises(ValueError, match="complete, fresh"):
        publish_contexts(managed_ledger(), {6: context(**changes)})


def test_streaming_segments_are_left_alone():
    message = managed_ledger().message_copy()
    message.ledgerInfo[1].offloadContext.offloadSegment.add(uidMsb=1, uidLsb=2)
    ml = decode_managed_ledger(message.SerializeToString())
    with pytest.raises(RefusedError, match="PIP-76"):
        publish_contexts(ml, {6: context()})


def test_driver_properties_name_the_drivers_there_are():
    assert list(driver_properties(driver="S3", bucket="b", region="r", endpoint="e").items()) == [
        ("bucket", "b"),
        ("managedLedgerOffloadDriver", "S3"),
        ("serviceEndpoint", "e"),
        ("region", "r"),
    ]
    with pytest.raises(SettingsError, match="filesystem"):
        driver_properties(driver="filesystem", bucket="b", region="r", endpoint="e")


@given(st.uuids())
def test_any_uid_is_kept(uid):
    assert offload(managed_ledger(contexts={6: context(uid)}), 6).uid == uid


def info_with(**offload):
    message = ml_pb2.ManagedLedgerInfo()
    message.ledgerInfo.add(ledgerId=1, timestamp=5).offloadContext.CopyFrom(
        ml_pb2.OffloadContext(**offload)
    )
    return message.SerializeToString()


def test_a_context_without_an_attempt_is_none():
    assert offload(decode_managed_ledger(info_with(complete=False)), 1) is None


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\x02\x10\x01",  # a ledger without an id
        b"\x0a\x02\x08\x01\x0a\x02\x08\x01",  # ledger 1 twice
        b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # ledger -1
        b"\x1a\x06\x0a\x01\xff\x12\x01v",  # a property that is not text
        info_with(complete=True),
        info_with(uidMsb=1),
        PREPARED.replace(b"aws-s3", b"aws-s\xff"),
    ],
)
def test_broken_bytes_are_format_errors(data):
    with pytest.raises(FormatError):
        decode_managed_ledger(data)


def damaged(good):
    return st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255)).map(
        lambda hit: good[: hit[0]] + bytes([hit[1]]) + good[hit[0] + 1 :]
    )


LZ4_NODE = encode_enveloped(PREPARED, Compression.LZ4)


@given(st.binary() | damaged(PREPARED) | damaged(LZ4_NODE))
def test_any_bytes_are_a_managed_ledger_or_a_format_error(data):
    try:
        ml = decode_managed_ledger(data)
    except FormatError:
        return
    assert decode_managed_ledger(encode_managed_ledger(ml)) == ml


CURSOR = bytes.fromhex(
    "08ffffffffffffffffff01102c18ffffffffffffffffff01220a0a04082c1000120208020a00"
)


@given(st.binary() | damaged(CURSOR))
def test_any_bytes_are_a_cursor_or_a_format_error(data):
    try:
        decode_cursor(data)
    except FormatError:
        return


def test_a_cursor_without_a_position():
    message = ml_pb2.ManagedCursorInfo(cursorsLedgerId=12)
    cursor = decode_cursor(message.SerializeToString())
    assert cursor.mark_delete is None
    assert cursor.cursors_ledger_id == 12
    message.markDeleteLedgerId = 3
    with pytest.raises(FormatError, match="half"):
        decode_cursor(message.SerializeToString())


def plainly(data):
    return [
        (
            one.ledger_id,
            one.entries or 0,
            one.offload.uid.bytes if one.offload and one.offload.complete else None,
            one.is_open,
        )
        for one in decode_managed_ledger(data).ledgers
    ]


def test_ledgers_are_plainly_what_the_whole_decoding_says():
    ml, data = managed_ledger(contexts={4: context(), 6: context(OTHER)}), b""
    for compression in Compression:
        data = encode_enveloped(ml.message_copy().SerializeToString(), compression)
        assert plain_ledgers(data) == plainly(data)
    assert [one[2] for one in plainly(data)] == [UID.bytes, OTHER.bytes, None]
    assert plain_ledgers(PREPARED) == plainly(PREPARED)
    assert plain_ledgers(b"") == plainly(b"") == []
    message = ml_pb2.ManagedLedgerInfo()
    message.ledgerInfo.add(ledgerId=1).offloadContext.uidMsb = 0
    message.ledgerInfo[0].offloadContext.uidLsb = -1  # no driver is named
    message.ledgerInfo[0].offloadContext.complete = True
    assert plain_ledgers(message.SerializeToString()) == plainly(message.SerializeToString())


def unusual(change):
    message = managed_ledger(contexts={4: context()}).message_copy()
    change(message, next(one for one in message.ledgerInfo if one.ledgerId == 4))
    return message.SerializeToString()


@pytest.mark.parametrize(
    "data",
    [
        unusual(lambda message, info: message.ledgerInfo.add(ledgerId=4)),
        unusual(lambda message, info: setattr(info, "entries", -1)),
        unusual(lambda message, info: info.offloadContext.ClearField("uidMsb")),
        unusual(lambda message, info: None).replace(b"aws-s3", b"aws-s\xff"),
        b"\xff\xff",
    ],
)
def test_what_does_not_decode_is_left_to_the_whole_decoding_which_says_why(data):
    assert plain_ledgers(data) is None
    with pytest.raises(FormatError):
        decode_managed_ledger(data)


def test_properties_are_left_to_the_whole_decoding():
    pair = {"key": "k", "value": "v"}
    assert plain_ledgers(unusual(lambda message, info: message.properties.add(**pair))) is None
    assert plain_ledgers(unusual(lambda message, info: info.properties.add(**pair))) is None
