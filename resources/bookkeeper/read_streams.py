"""Two ways to stream a run of entries: batches from one bookie, or single reads in a window.

Owns: at every yield all answers asked for have been received, so a caller may take its time, or
stop, without leaving a bookie blocked on a socket; and memory is bounded whatever the ledger holds.
Batches keep two buffers: the one the caller looks at and the one asked ahead, which the bookie
fills while this side checks digests. Single reads stay below a byte limit by dropping the end of a
window that turned out larger and asking for it again.
Both raise at the first entry that failed, after yielding every good one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tiering_assets.resources.bookkeeper.batch_body import Entry
from tiering_assets.resources.bookkeeper.connection import Connection
from tiering_assets.resources.bookkeeper.runs import Run, find_in_batch, verify_batch
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.bookkeeper.wire_v2 import COUNT_MAX, BatchReadEntry, ReadEntry
from tiering_assets.resources.errors import BookieError, FormatError, IntegrityError
from tiering_assets.resources.native.core import Core

Failure = BookieError | FormatError | IntegrityError


def stream_batches(
    connection: Connection,
    codec: EntryCodec,
    *,
    first_entry_id: int,
    last_entry_id: int,
    batch_bytes_max: int,
    ask_ahead: bool,
    next_request_id: Callable[[], int],
    core: Core | None = None,
) -> Iterator[Run]:
    """Yield verified entries in order; what a run views is valid until the next step.

    The bookie has never heard of the ledger's last entry or of segments: the count asked for ends
    at `last_entry_id`, and what comes beyond it is dropped.
    """

    def batch_from(entry_id: int) -> BatchReadEntry:
        return BatchReadEntry(
            ledger_id=codec.ledger_id,
            first_entry_id=entry_id,
            request_id=next_request_id(),
            max_count=min(last_entry_id - entry_id + 1, COUNT_MAX),
            max_bytes=batch_bytes_max,
        )

    position = first_entry_id
    records = None
    while position <= last_entry_id:
        if records is None:
            request = batch_from(position)
            connection.submit(request)
            records = connection.receive_batch(request)
        found = find_in_batch(core, records, count_max=last_entry_id - position + 1)
        following = position + found.number
        ahead: BatchReadEntry | None = None
        late: BookieError | FormatError | None = None
        if ask_ahead and following <= last_entry_id:
            try:
                asked = batch_from(following)
                connection.submit(asked)
                ahead = asked
            except BookieError as error:
                late = error
        run, failure = verify_batch(core, codec, records, found, first_entry_id=position)
        records = None
        if ahead is not None:
            connection.hold()
            try:
                records = connection.receive_batch(ahead)
            except (BookieError, FormatError) as error:
                late = error
        if run is not None:
            yield run
        if failure is not None:
            raise failure
        position = following
        if late is not None:
            raise late


def stream_single_reads(
    connection_for: Callable[[int], Connection],
    codec: EntryCodec,
    *,
    first_entry_id: int,
    last_entry_id: int,
    window: Callable[[], int],
    bytes_max: int,
    on_failure: Callable[[str, Failure], None],
) -> Iterator[Run]:
    """Yield verified entries in order; each payload is a view of its own copy.

    `connection_for` gives the connection to the bookie that is asked for an entry. At most
    `window()` reads are in flight over all bookies, and `bytes_max` bytes kept at a time, except
    that one entry may exceed it alone. `on_failure` hears which bookie failed before the failure is
    raised.
    """
    position, width = first_entry_id, window()
    while position <= last_entry_id:
        upper = min(last_entry_id, position + width - 1)
        asked = [
            (ReadEntry(codec.ledger_id, entry_id), connection_for(entry_id))
            for entry_id in range(position, upper + 1)
        ]
        failure: Failure | None = _submit_grouped(asked, on_failure)
        entries: list[Entry] = []
        kept, largest, full = 0, 1, False
        for request, connection in asked:
            if failure is not None and connection.closed:
                continue
            try:
                stored = connection.receive_read(request)
                if failure is not None or full:
                    continue  # taken off the socket, asked again later
                entry = codec.decode(stored, entry_id=request.entry_id)
            except (BookieError, FormatError, IntegrityError) as error:
                if failure is None and not full:
                    failure = error
                    on_failure(connection.bookie_id, error)
                continue
            largest = max(largest, len(stored))
            if entries and kept + len(stored) > bytes_max:
                full = True
                continue
            kept += len(stored)
            payload = memoryview(bytes(entry.payload))
            entries.append((entry.entry_id, payload, entry.cumulative_length))
        if entries:
            yield Run.of(entries)
            position += len(entries)
        if failure is not None:
            raise failure
        width = max(1, min(window(), bytes_max // largest))


def _submit_grouped(
    asked: list[tuple[ReadEntry, Connection]], on_failure: Callable[[str, Failure], None]
) -> BookieError | None:
    """Send each bookie its requests in one write; return the first failure."""
    grouped: dict[str, tuple[Connection, list[ReadEntry]]] = {}
    for request, connection in asked:
        grouped.setdefault(connection.bookie_id, (connection, []))[1].append(request)
    failure: BookieError | None = None
    for connection, requests in grouped.values():
        try:
            connection.submit(*requests)
        except BookieError as error:
            on_failure(connection.bookie_id, error)
            failure = failure or error
    return failure
