"""The records of a batch reply: where each one lies, and the loop that verifies them all.

Owns: record i of an answer to "from `first`" must be entry first + i of the ledger, with a good
digest; what stands before the first bad record is accepted (BookKeeper `BatchedReadOp`). A reply
has no count and may hold fewer or more entries than wanted. This is the hot loop of every copy:
one entry costs under a microsecond, so it builds plain tuples and calls nothing it can avoid.
"""

from __future__ import annotations

from itertools import islice
from struct import Struct

from google_crc32c import extend, value

from tiering_assets.resources.bookkeeper.frames import LENGTH
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.errors import FormatError, IntegrityError

# entry_id, payload, cumulative_length (payload bytes of entries 0 to this one)
Entry = tuple[int, memoryview, int]

# As bytes the header costs less to digest than as a view: a tenth of this loop at 100 B.
_CRC32C_RECORD = Struct(">4x32sI")  # length skipped, header, crc
_HEADER = Struct(">qq8xq")  # ledger, entry, LAC skipped, cumulative


def find_records(records: memoryview, *, count_max: int) -> list[int]:
    """Return where the first `count_max` records begin, and where the last of them ends.

    Raises:
        FormatError: there is no record, or one runs over the end or has a negative length.
    """
    unpack_length = LENGTH.unpack_from
    last_start = len(records) - LENGTH.size
    at = 0
    bounds = [0]
    append = bounds.append
    while count_max > 0 and at <= last_start:
        (length,) = unpack_length(records, at)
        at += 4 + length
        if length < 0 or at > len(records):
            raise FormatError(
                f"record {len(bounds) - 1} of a batch has {length} bytes; "
                f"{len(records) - bounds[-1] - LENGTH.size} are left"
            )
        append(at)
        count_max -= 1
    if count_max > 0 and at != len(records):
        raise FormatError(f"a batch ends with {len(records) - at} bytes that are no record")
    if len(bounds) == 1:
        raise FormatError("a batch was answered with success and no record")
    return bounds


def verify_records(
    codec: EntryCodec, records: memoryview, bounds: list[int], *, first_entry_id: int
) -> tuple[list[Entry], FormatError | IntegrityError | None]:
    """Verify the records found; payloads are views of `records`.

    Returns:
        The good entries up to the first bad one, and what is wrong with that one (None: all good).
    """
    if codec.digest_type is DigestType.CRC32C:
        entries = _verify_crc32c(codec, records, bounds, first_entry_id)
    else:
        entries = []
    for i in range(len(entries), len(bounds) - 1):  # other digests; or the one that is bad
        stored = records[bounds[i] + LENGTH.size : bounds[i + 1]]
        try:
            entry = codec.decode(stored, entry_id=first_entry_id + i)
        except (FormatError, IntegrityError) as error:
            return entries, error
        entries.append((entry.entry_id, entry.payload, entry.cumulative_length))
    return entries, None


def _verify_crc32c(
    codec: EntryCodec, records: memoryview, bounds: list[int], first_entry_id: int
) -> list[Entry]:
    """Stop before the first record that is not plainly good; the codec then says why."""
    unpack, ledger_id = _CRC32C_RECORD.unpack_from, codec.ledger_id
    unpack_header = _HEADER.unpack
    entry_id = first_entry_id
    entries: list[Entry] = []
    append = entries.append
    start = bounds[0]
    for end in islice(bounds, 1, None):
        if end - start < _CRC32C_RECORD.size:
            break
        header, digest = unpack(records, start)
        ledger_found, entry_found, cumulative = unpack_header(header)
        payload = records[start + 40 : end]
        if (
            digest != extend(value(header), bytes(payload))
            or entry_found != entry_id
            or ledger_found != ledger_id
        ):
            break
        append((entry_id, payload, cumulative))
        entry_id += 1
        start = end
    return entries
