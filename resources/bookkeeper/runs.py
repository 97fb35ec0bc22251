"""Runs of verified entries: those of a batch as they lie in it, or entries built one by one.

Owns: a run is believed as its entries are, by their digests. With the library of core.c a batch of
a CRC32C ledger becomes a run without an object per entry; where a record is not plainly good, or
without it, batch_body.py looks at all of them, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from tiering_assets.resources.bookkeeper.batch_body import Entry, find_records, verify_records
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.errors import FormatError, IntegrityError
from tiering_assets.resources.native.core import Core


class Found(NamedTuple):
    """How many records an answer has; `bounds` as of `find_records`, where that looked for them."""

    number: int
    bounds: list[int] | None


@dataclass(frozen=True, slots=True)
class Run:
    """Verified entries that follow each other; what they view is valid until the next run.

    `records` are those of a batch, each with its good CRC32C before its payload, by which a copy of
    the payload can be checked again, and `codec` is their ledger's. Without them `built` has the
    entries.
    """

    first_entry_id: int
    count: int
    payload_bytes: int
    records: memoryview | None = None
    codec: EntryCodec | None = None
    built: Sequence[Entry] = ()

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self:
        """The run of some entries, at least one."""
        payload_bytes = sum(len(payload) for _id, payload, _length in entries)
        return cls(entries[0][0], len(entries), payload_bytes, built=entries)

    def entries(self) -> Sequence[Entry]:
        """Each entry by itself; payloads are views. What the library verified Python does again.

        Raises:
            FormatError, IntegrityError: the records are not any more what they were.
        """
        if self.records is None or self.codec is None:
            return self.built
        bounds = find_records(self.records, count_max=self.count)
        entries, failure = verify_records(
            self.codec, self.records, bounds, first_entry_id=self.first_entry_id
        )
        if failure is not None:
            raise failure
        return entries


def find_in_batch(core: Core | None, records: memoryview, *, count_max: int) -> Found:
    """Look for the first `count_max` records of an answer. Raises as `find_records` does."""
    found = None if core is None else core.find(records, count_max=count_max)
    if found is not None:
        return Found(found[0], None)
    bounds = find_records(records, count_max=count_max)
    return Found(len(bounds) - 1, bounds)


def verify_batch(
    core: Core | None, codec: EntryCodec, records: memoryview, found: Found, *, first_entry_id: int
) -> tuple[Run | None, FormatError | IntegrityError | None]:
    """Verify the records found.

    Returns:
        The good entries up to the first bad one (None: not one is), and what is wrong with that.
    """
    bounds = found.bounds
    if bounds is None:
        if core is not None and codec.digest_type is DigestType.CRC32C:
            good = core.verify(
                records,
                count=found.number,
                ledger_id=codec.ledger_id,
                first_entry_id=first_entry_id,
            )
            if good.good == found.number:
                run = Run(
                    first_entry_id,
                    good.good,
                    good.payload_bytes,
                    records=records[: good.end],
                    codec=codec,
                )
                return run, None
        bounds = find_records(records, count_max=found.number)
    entries, failure = verify_records(codec, records, bounds, first_entry_id=first_entry_id)
    return Run.of(entries) if entries else None, failure
