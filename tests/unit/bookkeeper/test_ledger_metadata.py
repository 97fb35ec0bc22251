import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.ledger_metadata import (
    decode_index_ledger_metadata,
    decode_ledger_metadata,
    encode_ledger_metadata,
    index_ledger_metadata,
)
from tiering_assets.resources.errors import FormatError, IntegrityError

HEADER = b"BookieMetadataFormatVersion\t"
# CLOSED, E3 W2 A2, one entry of 5 bytes, CRC32C, empty password; written by a BookKeeper client.
V3 = bytes.fromhex(
    "426f6f6b69654d65746164617461466f726d617456657273696f6e09330a340802100318052000280332200a0862"
    "6b313a333138310a08626b323a333138310a08626b333a3331383110003803420048026000"
)
# Metadata of the index that the format's test vector A prints.
INDEX = bytes.fromhex(
    "08021002180c2002280332200a0d626f6f6b69652d313a333138310a0d626f6f6b69652d323a3331383110003803"
    "48025080d095ffbc315a1b0a09636f6d706f6e656e74120e6d616e616765642d6c65646765725a340a1570756c73"
    "61722f6d616e616765642d6c6564676572121b7075626c69632f64656661756c742f70657273697374656e742f74"
    "5a150a0b6170706c69636174696f6e120670756c736172"
)
VECTOR_A = LedgerMetadata(
    ledger_id=-1,
    state=BookKeeperState.CLOSED,
    last_entry_id=2,
    length=12,
    ensemble_size=2,
    write_quorum=2,
    ack_quorum=2,
    segments=(EnsembleFragment(0, ("bookie-1:3181", "bookie-2:3181")),),
    digest_type=DigestType.CRC32C,
    ctime_ms=1700000000000,
    custom={
        "component": b"managed-ledger",
        "pulsar/managed-ledger": b"public/default/persistent/t",
        "application": b"pulsar",
    },
)


def test_version_3():
    metadata = decode_ledger_metadata(9, V3)
    assert metadata == LedgerMetadata(
        ledger_id=9,
        state=BookKeeperState.CLOSED,
        last_entry_id=0,
        length=5,
        ensemble_size=3,
        write_quorum=2,
        ack_quorum=2,
        segments=(EnsembleFragment(0, ("bk1:3181", "bk2:3181", "bk3:3181")),),
        digest_type=DigestType.CRC32C,
        password=b"",
    )
    assert metadata.entries == 1
    assert encode_ledger_metadata(metadata, ctoken=0) == V3


def test_version_2_is_text():
    text = rb"""quorumSize: 2
ensembleSize: 2
length: 0
lastEntryId: -1
state: IN_RECOVERY
segment { ensembleMember: "a:1" ensembleMember: "b:2" firstEntryId: 7 }
segment { ensembleMember: "a:1" ensembleMember: "c:3" firstEntryId: 0 }
digestType: HMAC
password: "\303\251\000\"\\\n"
ackQuorumSize: 1
customMetadata { key: "k" value: "\001" }
someLaterField: 5
"""
    metadata = decode_ledger_metadata(1, HEADER + b"2\n" + text)
    assert metadata.state is BookKeeperState.IN_RECOVERY
    assert metadata.last_entry_id == -1
    assert [segment.first_entry_id for segment in metadata.segments] == [0, 7]
    assert metadata.segments[0].bookies == ("a:1", "c:3")
    assert metadata.digest_type is DigestType.HMAC
    assert metadata.password == b'\xc3\xa9\x00"\\\n'
    assert metadata.ack_quorum == 1
    assert metadata.custom == {"k": b"\x01"}
    assert metadata.format_version == 2


@pytest.mark.parametrize(
    ("last", "state", "last_entry_id"),
    [
        ("", BookKeeperState.OPEN, -1),
        ("\n11\tCLOSED", BookKeeperState.CLOSED, 11),
        ("\n-1\tCLOSED", BookKeeperState.CLOSED, -1),
        ("\n-102\tCLOSED", BookKeeperState.IN_RECOVERY, -1),
    ],
)
def test_version_1_is_lines(last, state, last_entry_id):
    lines = f"2\n3\n100\n0\ta:1\tb:2\tc:3\n5\ta:1\tb:2\td:4{last}".encode()
    metadata = decode_ledger_metadata(1, HEADER + b"1\n" + lines)
    assert (metadata.state, metadata.last_entry_id) == (state, last_entry_id)
    assert (metadata.write_quorum, metadata.ensemble_size, metadata.ack_quorum) == (2, 3, 2)
    assert metadata.segments[1] == EnsembleFragment(5, ("a:1", "b:2", "d:4"))
    assert metadata.password is None


def test_the_index_vector_decodes_and_is_made_again():
    assert decode_index_ledger_metadata(INDEX) == VECTOR_A
    node = encode_ledger_metadata(VECTOR_A, ctoken=5)
    assert index_ledger_metadata(node, ledger_id=3, ctime_ms=99) == INDEX


def test_the_index_takes_the_creation_time_of_the_node_if_the_value_has_none():
    made = index_ledger_metadata(V3, ledger_id=9, ctime_ms=1234)
    metadata = decode_index_ledger_metadata(made)
    assert metadata.ctime_ms == 1234
    assert metadata.password is None  # present and empty in the node


def test_a_password_never_gets_into_an_index_or_a_message():
    secret = b"correct horse"
    node = encode_ledger_metadata(
        LedgerMetadata(
            ledger_id=1,
            state=BookKeeperState.CLOSED,
            last_entry_id=-1,
            length=0,
            ensemble_size=1,
            write_quorum=1,
            ack_quorum=1,
            segments=(EnsembleFragment(0, ("a:1",)),),
            password=secret,
        )
    )
    assert secret in node
    metadata = decode_ledger_metadata(1, node)
    assert metadata.password == secret
    assert "correct" not in repr(metadata)
    assert secret not in index_ledger_metadata(node, ledger_id=1, ctime_ms=0)


def test_an_open_ledger_gets_no_index():
    text = b'quorumSize: 1 ensembleSize: 1 length: 0 state: OPEN segment { ensembleMember: "a:1" firstEntryId: 0 }'
    with pytest.raises(
        IntegrityError, match="ledger 4: an index needs a CLOSED ledger, found OPEN"
    ):
        index_ledger_metadata(HEADER + b"2\n" + text, ledger_id=4, ctime_ms=0)


GOOD = (
    "quorumSize: 1 ensembleSize: 1 length: 1 lastEntryId: 0 state: CLOSED "
    'segment { ensembleMember: "a:1" firstEntryId: 0 }'
)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("lastEntryId: 0", "", "CLOSED without lastEntryId"),
        ("lastEntryId: 0", "lastEntryId: -2", "last entry"),
        ("length: 1", "length: -1", "length"),
        ("length: 1", "", "required"),
        ("state: CLOSED", "state: 9", "not version 2 text|required"),
        ("quorumSize: 1", "quorumSize: 2", "quorums"),
        ("ensembleSize: 1", "ensembleSize: 2", "needs 2 bookies, found 1"),
        ("firstEntryId: 0", "firstEntryId: 1", "segments must start at 0"),
        ('"a:1"', '"\\377"', "UTF-8|not version 2"),
        ('"a:1"', '""', "bookies"),
        ("}", '} segment { ensembleMember: "b:1" firstEntryId: 0 }', "segments"),
    ],
)
def test_what_contradicts_itself_is_refused(old, new, says):
    assert old in GOOD
    data = HEADER + b"2\n" + GOOD.replace(old, new, 1).encode()
    with pytest.raises(FormatError, match="metadata of ledger 77") as raised:
        decode_ledger_metadata(77, data)
    assert re.search(says, str(raised.value))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"2\n",
        HEADER,
        HEADER + b"4\n",
        HEADER + b"3\n",
        HEADER + b"3\n\xff\xff\xff\xff\xff\xff",
        V3[:-1],
        V3 + b"\x00",
        V3.replace(b"bk1", b"\xff\xff\xff"),
        HEADER + b"1\n2\n3",
        HEADER + b"1\n1\n1\n0\n0\ta:1\nCLOSED",
        HEADER + b"2\n" + b"customMetadata {" * 5000,
    ],
)
def test_broken_bytes_are_format_errors(data):
    with pytest.raises(FormatError):
        decode_ledger_metadata(1, data)


def damaged(good):
    return st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255)).map(
        lambda hit: good[: hit[0]] + bytes([hit[1]]) + good[hit[0] + 1 :]
    )


V1 = HEADER + b"1\n1\n1\n5\n0\ta:1\n3\tCLOSED"
GARBAGE = st.one_of(
    st.binary(),
    st.tuples(st.sampled_from([b"1\n", b"2\n", b"3\n"]), st.binary()).map(
        lambda parts: HEADER + parts[0] + parts[1]
    ),
    st.text().map(lambda text: HEADER + b"2\n" + text.encode("utf-8", "surrogatepass")),
    damaged(V3),
    damaged(V1),
    damaged(HEADER + b"2\n" + GOOD.encode()),
)


@given(GARBAGE)
def test_any_bytes_decode_to_what_encodes_back_or_are_a_format_error(data):
    try:
        metadata = decode_ledger_metadata(5, data)
    except FormatError:
        return
    again = decode_ledger_metadata(5, encode_ledger_metadata(metadata))
    assert again.segments == metadata.segments
    assert (again.state, again.last_entry_id) == (metadata.state, metadata.last_entry_id)
    assert (again.length, again.custom) == (metadata.length, metadata.custom)


@given(st.binary() | damaged(INDEX))
def test_any_bytes_are_index_metadata_or_a_format_error(data):
    with contextlib.suppress(FormatError):
        assert decode_index_ledger_metadata(data).ledger_id == -1
