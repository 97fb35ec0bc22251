"""Reads of entries that carry no digest: all replicas that can be reached must give the same bytes.

Owns: a DUMMY ledger's entry is believed when at least two of its write set gave it alike and nobody
else gave it otherwise; with a write quorum of 1 there is one to believe. A replica that cannot be
reached, or has not the entry, says nothing; one that differs ends the reading, whichever is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tiering_assets.resources.bookkeeper.batch_body import Entry
from tiering_assets.resources.bookkeeper.ledger import LedgerMetadata
from tiering_assets.resources.bookkeeper.placement import write_set
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.runs import Run
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec, StoredEntry
from tiering_assets.resources.bookkeeper.wire_v2 import ReadEntry
from tiering_assets.resources.errors import (
    BookieError,
    BookieNotAuthorizedError,
    BookieUnreachableError,
    EntryUnavailableError,
    FormatError,
    IntegrityError,
)

REPLICAS_MIN = 2


def replicas_wanted(write_quorum: int) -> int:
    """How many replicas must give an entry alike: two, or the only one there is."""
    return min(REPLICAS_MIN, write_quorum)


def iter_agreed(
    metadata: LedgerMetadata,
    pool: BookiePool,
    codec: EntryCodec,
    *,
    first_entry_id: int,
    last_entry_id: int,
    window: Callable[[], int],
    bytes_max: int,
) -> Iterator[Run]:
    """Yield the entries of a range (both ends included) in order, each a copy of its own.

    Every entry is read write-quorum times, `window()` entries at a time or as many as fit into
    `bytes_max`: one entry may exceed it alone.

    Raises:
        IntegrityError: two replicas differ, or one gave another entry than it was asked for.
        EntryUnavailableError: fewer than `replicas_wanted` gave an entry.
        BookieNotAuthorizedError: a bookie refused; nothing else is asked for after its window.
    """
    position, width = first_entry_id, 1
    while position <= last_entry_id:
        upper = min(last_entry_id, position + width - 1)
        entries = _read_window(metadata, pool, codec, range(position, upper + 1))
        yield Run.of(entries)
        position = upper + 1
        largest = max(1, *(len(payload) for _id, payload, _length in entries))
        width = max(1, min(window(), bytes_max // largest))


def _read_window(
    metadata: LedgerMetadata, pool: BookiePool, codec: EntryCodec, entry_ids: range
) -> list[Entry]:
    asked: dict[str, list[ReadEntry]] = {}
    for entry_id in entry_ids:
        for bookie_id in write_set(metadata, entry_id):
            asked.setdefault(bookie_id, []).append(ReadEntry(metadata.ledger_id, entry_id))
    given: dict[int, dict[str, StoredEntry]] = {entry_id: {} for entry_id in entry_ids}
    failures: dict[int, dict[str, Exception]] = {entry_id: {} for entry_id in entry_ids}
    # All answers are taken off the sockets before any is judged.
    for bookie_id, requests in asked.items():
        for request, answer in _ask(pool, codec, bookie_id, requests):
            if isinstance(answer, Exception):
                failures[request.entry_id][bookie_id] = answer
            else:
                given[request.entry_id][bookie_id] = answer
    return [_agreed(metadata, i, given[i], failures[i]) for i in entry_ids]


def _agreed(
    metadata: LedgerMetadata,
    entry_id: int,
    given: dict[str, StoredEntry],
    failures: dict[str, Exception],
) -> Entry:
    for error in failures.values():
        if isinstance(error, BookieNotAuthorizedError | FormatError | IntegrityError):
            raise error  # it has something there, and it is not this entry
    wanted = replicas_wanted(metadata.write_quorum)
    if len(given) < wanted:
        raise EntryUnavailableError(
            metadata.ledger_id,
            entry_id,
            failures,
            why=f"its digest type is DUMMY, so {wanted} replicas must give it alike, and {len(given)} "
            f"gave it; start its bookies",
        )
    (one, first), *others = given.items()
    for other, entry in others:
        if (entry.payload, entry.cumulative_length) != (first.payload, first.cumulative_length):
            raise IntegrityError(
                f"ledger {metadata.ledger_id} entry {entry_id}: its digest type is DUMMY and its "
                f"replicas differ: {one} gave {len(first.payload)} bytes, {other} "
                f"{len(entry.payload)}; which one is right is unknown"
            )
    return entry_id, first.payload, first.cumulative_length


def _ask(
    pool: BookiePool, codec: EntryCodec, bookie_id: str, requests: list[ReadEntry]
) -> Iterator[tuple[ReadEntry, StoredEntry | Exception]]:
    """One bookie's answer, or what went wrong, to each request. A silent one costs one timeout."""
    if pool.silent_lately(bookie_id):
        silent = BookieUnreachableError(f"bookie {bookie_id}: silent a moment ago")
        yield from ((request, silent) for request in requests)
        return
    try:
        connection = pool.connection(bookie_id)
        connection.submit(*requests)
    except BookieError as error:
        pool.note_silent(bookie_id)
        yield from ((request, error) for request in requests)
        return
    lost: Exception | None = None
    for request in requests:
        if lost is not None and connection.closed:
            yield request, lost
            continue
        try:
            entry = codec.decode(connection.receive_read(request), entry_id=request.entry_id)
            yield request, entry._replace(payload=memoryview(bytes(entry.payload)))
        except (BookieError, FormatError, IntegrityError) as error:
            if isinstance(error, BookieUnreachableError):
                pool.note_silent(bookie_id)
            lost = error
            yield request, error
