"""For each check, a damage to the four-block golden ledger that no other check should report."""

from collections.abc import Callable
from dataclasses import replace
from struct import Struct, unpack_from

from tiering_assets.quality.facts import IndexFacts
from tiering_assets.resources._proto.BookKeeperDataFormats_pb2 import LedgerMetadataFormat

INT32, INT64 = Struct(">i"), Struct(">q")
Damage = Callable[[IndexFacts], IndexFacts]


def patched(raw: bytes, at: int, field: Struct, change: int) -> bytes:
    """`raw` with the integer at `at` raised by `change`."""
    (value,) = field.unpack_from(raw, at)
    return raw[:at] + field.pack(value + change) + raw[at + field.size :]


def in_index(at: int, field: Struct, change: int) -> Damage:
    return lambda facts: replace(facts, index=patched(facts.index, at, field, change))


def in_entry(part: int, at: int, field: Struct, change: int) -> Damage:
    def damage(facts):
        (metadata_bytes,) = unpack_from(">i", facts.index, 28)
        return in_index(32 + metadata_bytes + 20 * (part - 1) + at, field, change)(facts)

    return damage


def in_header(part: int, at: int, field: Struct, change: int) -> Damage:
    def damage(facts):
        header = patched(facts.headers[part], at, field, change)
        return replace(facts, headers={**facts.headers, part: header})

    return damage


def resized(facts: IndexFacts, index: bytes) -> IndexFacts:
    """With an index that agrees with its own new size."""
    index = index[:4] + INT32.pack(len(index)) + index[8:]
    return replace(facts, index=index, index_size=len(index))


def in_metadata(edit: Callable[[LedgerMetadataFormat], object]) -> Damage:
    def damage(facts):
        (size,) = unpack_from(">i", facts.index, 28)
        message = LedgerMetadataFormat.FromString(facts.index[32 : 32 + size])
        edit(message)
        edited = message.SerializePartialToString()
        head, entries = facts.index[:28], facts.index[32 + size :]
        return resized(facts, head + INT32.pack(len(edited)) + edited + entries)

    return damage


def in_facts(**changes: int) -> Damage:
    return lambda facts: replace(
        facts, **{name: getattr(facts, name) + change for name, change in changes.items()}
    )


def every(*damages: Damage) -> Damage:
    def damage(facts):
        for one in damages:
            facts = one(facts)
        return facts

    return damage


def raised(field: str, change: int) -> Callable[[LedgerMetadataFormat], object]:
    return lambda message: setattr(message, field, getattr(message, field) + change)


# The base: 170 entries in blocks that begin at 0, 51, 102 and 153; 5242880 bytes each but the last.
SHORT_BY = 5242880 - (128 + 12 * 51 - 1)  # a block a byte too short for 51 empty frames
ROOM = 17_470_265 - (128 * 4 + 12 * 170 + 17_412_802)  # its padding

# fmt: off
DAMAGES: list[tuple[str, Damage]] = [
    ("index_magic", in_index(0, INT32, 1)),
    ("index_length", in_index(4, INT32, 1)),
    ("index_size", in_facts(index_size=1)),
    ("entry_count", in_index(24, INT32, -1)),
    ("index_end", lambda facts: resized(facts, facts.index + bytes(7))),
    ("data_header_length", in_index(16, INT64, -1)),
    ("data_length", in_index(8, INT64, 1)),
    ("blocks_end", in_header(4, 12, INT64, -1)),
    # Everybody agrees on one payload byte more than the data object has room for.
    ("data_holds_ledger", in_facts(payload_bytes=ROOM + 1)),
    ("metadata_required_fields", in_metadata(lambda m: m.ClearField("quorumSize"))),
    ("metadata_required_fields", in_metadata(lambda m: m.segment[0].ClearField("firstEntryId"))),
    ("metadata_last_entry_id", in_metadata(raised("lastEntryId", 1))),
    ("metadata_last_entry_id", in_metadata(lambda m: m.ClearField("lastEntryId"))),
    ("metadata_length", in_metadata(raised("length", -1))),
    ("metadata_state", in_metadata(lambda m: setattr(m, "state", m.IN_RECOVERY))),
    ("metadata_state", in_metadata(lambda m: m.ClearField("state"))),
    ("metadata_no_password", in_metadata(lambda m: setattr(m, "password", b""))),
    ("topic_entries", in_facts(topic_entries=1)),
    ("topic_bytes", in_facts(topic_bytes=1)),
    ("start_entry_id", every(in_entry(1, 0, INT64, 1), in_header(1, 20, INT64, 1))),
    ("part_number", in_entry(2, 8, INT32, 5)),
    ("first_entry_id_order", every(in_entry(2, 0, INT64, 51), in_header(2, 20, INT64, 51))),
    (
        "first_entry_id_in_ledger",
        every(
            in_facts(last_entry_id=-17, topic_entries=-17),
            in_metadata(raised("lastEntryId", -17)),
        ),
    ),
    ("block_offset", in_entry(3, 12, INT64, 1)),
    ("header_magic", in_header(2, 0, INT32, 1)),
    ("header_length", in_header(2, 4, INT64, 1)),
    ("header_first_entry_id", in_header(2, 20, INT64, 1)),
    (
        "block_holds_entries",
        every(
            in_header(1, 12, INT64, -SHORT_BY),
            in_entry(2, 12, INT64, -SHORT_BY),
            in_header(2, 12, INT64, SHORT_BY),
        ),
    ),
]
# fmt: on
