"""Reads of ledgers, straight from the bookies, with failover between replicas.

Owns: every entry handed out is digest-verified and is the one asked for; a failing replica costs
time, never an entry. Follows BookKeeper `PendingReadOp` and `BatchedReadOp`: next replica on
"no such entry", "no such ledger", I/O error, limbo, silence, a lost connection and a wrong digest;
at once up on "not authorised".
Refuses to read further than somebody proved (readable.py): all of a closed ledger, or up to a bound
of an open one. To look for the end of that needs recovery, which fences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tiering_assets.resources.bookkeeper.agreed_reads import iter_agreed
from tiering_assets.resources.bookkeeper.batch_body import Entry
from tiering_assets.resources.bookkeeper.connection import Connection
from tiering_assets.resources.bookkeeper.ledger import LedgerMetadata
from tiering_assets.resources.bookkeeper.placement import (
    batch_reads_allowed,
    segment_end,
    segment_number,
    write_set_of,
)
from tiering_assets.resources.bookkeeper.pool import BatchSupport, BookiePool
from tiering_assets.resources.bookkeeper.read_streams import (
    Failure,
    stream_batches,
    stream_single_reads,
)
from tiering_assets.resources.bookkeeper.readable import BoundBy, ReadableTo, of_closed
from tiering_assets.resources.bookkeeper.runs import Run
from tiering_assets.resources.bookkeeper.stored_entry import StoredEntry, codec_for
from tiering_assets.resources.bookkeeper.wire_v2 import ReadEntry
from tiering_assets.resources.errors import (
    BookieError,
    BookieNotAuthorizedError,
    BookieUnreachableError,
    EntryUnavailableError,
    FormatError,
    IntegrityError,
)
from tiering_assets.resources.native.core import Core
from tiering_assets.resources.settings import BookieSettings

SHUN_S = 30.0  # how long a bookie that gave a bad answer is tried last for this ledger


class LedgerReader:
    """Reads one ledger. Not shared between threads, as its pool is not."""

    def __init__(
        self,
        metadata: LedgerMetadata,
        pool: BookiePool,
        settings: BookieSettings,
        *,
        first_bookie_hint: int = 0,
        reresolve: Callable[[], LedgerMetadata] | None = None,
        core: Core | None = None,
        readable_to: ReadableTo | None = None,
    ) -> None:
        """Prepare to read; nothing is sent yet.

        Args:
            metadata: of the ledger.
            pool: connections, used by this reader and by no other thread.
            settings: batch size, window, and the password where metadata has none.
            first_bookie_hint: rotates which replica is preferred, to spread tasks over bookies.
            reresolve: reads the ledger's metadata again; autorecovery replaces bookies of closed
                ledgers. Called when all replicas of an entry failed.
            core: the loop over entries in C; without it Python's, which is slower.
            readable_to: how far, of a ledger that is open; without it the ledger is CLOSED.

        Raises:
            RefusedError: the ledger is not CLOSED.
        """
        self._readable = of_closed(metadata) if readable_to is None else readable_to
        if self._readable.ledger_id != metadata.ledger_id:
            raise ValueError(
                f"a bound of ledger {self._readable.ledger_id} for ledger {metadata.ledger_id}"
            )
        self._metadata = metadata
        self._pool = pool
        self._settings = settings
        self._hint = first_bookie_hint
        self._reresolve = reresolve
        self._core = core
        self._codec = codec_for(metadata, fallback_password=settings.password.encode())
        self._shunned_until: dict[str, float] = {}

    @property
    def metadata(self) -> LedgerMetadata:
        """The metadata in use; newer than the one given if replicas had to be looked up again."""
        return self._metadata

    def iter_batches(
        self, *, first_entry_id: int, last_entry_id: int, replica: int = 0
    ) -> Iterator[Sequence[Entry]]:
        """The same as `iter_runs`, entry by entry: (entry_id, payload, cumulative_length)."""
        runs = self.iter_runs(
            first_entry_id=first_entry_id, last_entry_id=last_entry_id, replica=replica
        )
        return (run.entries() for run in runs)

    def iter_runs(
        self, *, first_entry_id: int, last_entry_id: int, replica: int = 0
    ) -> Iterator[Run]:
        """Yield the entries of a range (both ends included) in order, some at a time.

        What a run views is valid until the next step. `replica=1` prefers other bookies than
        `replica=0` does, for an independent read.

        Raises:
            ValueError: the range is not within the ledger.
            BookieNotAuthorizedError: at once; the next replica would say the same.
            EntryUnavailableError: all replicas of an entry failed; everything before it was
                yielded.
        """
        if first_entry_id < 0 or last_entry_id > self._readable.entry_id:
            raise ValueError(
                f"entries {first_entry_id} to {last_entry_id} of ledger {self._metadata.ledger_id}"
                f", which may be read up to {self._readable.entry_id} ({self._readable.by.value})"
            )
        return self._iterate(first_entry_id, last_entry_id, replica)

    def iter_agreed(self, *, first_entry_id: int, last_entry_id: int) -> Iterator[Run]:
        """The same of a ledger whose entries carry no digest: by the word of several replicas.

        Raises:
            IntegrityError: replicas differ.
            EntryUnavailableError: too few gave an entry (agreed_reads.replicas_wanted).
        """
        return iter_agreed(
            self._metadata,
            self._pool,
            self._codec,
            first_entry_id=first_entry_id,
            last_entry_id=last_entry_id,
            window=lambda: self._pool.reads_at_once(self._settings.window),
            bytes_max=self._settings.batch_bytes_max,
        )

    def read_entry(self, entry_id: int, *, replica: int = 0) -> StoredEntry:
        """Return one digest-verified entry, asking its replicas in write-set order.

        Raises:
            ValueError: the ledger has no such entry.
            BookieNotAuthorizedError: at once; the next replica would say the same.
            EntryUnavailableError: all replicas failed; `.failures` has one error per bookie.

        Source: BookKeeper PendingReadOp.
        """
        if not 0 <= entry_id <= self._readable.entry_id:
            raise ValueError(
                f"entry {entry_id} of ledger {self._metadata.ledger_id}"
                f", which may be read up to {self._readable.entry_id} ({self._readable.by.value})"
            )
        failures: dict[str, Exception] = {}
        found = self._try_replicas(entry_id, replica, failures)
        if found is None and self._look_up_again():
            found = self._try_replicas(entry_id, replica, failures)
        if found is None:
            raise EntryUnavailableError(self._metadata.ledger_id, entry_id, failures)
        return found

    def cumulative_length(self, entry_id: int) -> int:
        """Return the payload bytes of entries 0 to `entry_id`; errors as in `read_entry`."""
        return self.read_entry(entry_id).cumulative_length

    def _iterate(self, first: int, last: int, replica: int) -> Iterator[Run]:
        position = first
        while position <= last:
            number = segment_number(self._metadata, position)
            end = segment_end(self._metadata, number, last_entry_id=last)
            preferred = self._order(position, replica)[0]
            try:
                for run in self._stream(position, end, replica, preferred):
                    position += run.count
                    yield run
                continue
            except BookieNotAuthorizedError:
                raise
            except (BookieError, FormatError, IntegrityError):
                pass  # noted where it happened, with the bookie it happened to
            # One entry by way of all its replicas; whoever failed is tried last from now on.
            found = self.read_entry(position, replica=replica)
            position += 1
            yield Run.of([(found.entry_id, found.payload, found.cumulative_length)])

    def _stream(self, first: int, last: int, replica: int, preferred: str) -> Iterator[Run]:
        sticky = batch_reads_allowed(self._metadata)
        if sticky and self._pool.batch_support(preferred) is not BatchSupport.NO:
            yield from self._stream_batches(first, last, preferred)
            return

        def connection_for(entry_id: int) -> Connection:
            bookie_id = preferred if sticky else self._order(entry_id, replica)[0]
            try:
                return self._pool.connection(bookie_id)
            except BookieError as error:
                self._note_failure(bookie_id, error)
                raise

        yield from stream_single_reads(
            connection_for,
            self._codec,
            first_entry_id=first,
            last_entry_id=last,
            window=lambda: self._pool.reads_at_once(self._settings.window),
            bytes_max=self._settings.batch_bytes_max,
            on_failure=self._note_failure,
        )

    def _stream_batches(self, first: int, last: int, bookie_id: str) -> Iterator[Run]:
        """Stream from one bookie; end without an entry if batch reads must be given up on it."""
        fresh = True
        try:
            connection = self._pool.connection(bookie_id)
            fresh = connection.answered == 0
            for run in stream_batches(
                connection,
                self._codec,
                first_entry_id=first,
                last_entry_id=last,
                batch_bytes_max=self._settings.batch_bytes_max,
                ask_ahead=self._settings.batches_in_flight > 1,
                next_request_id=self._pool.next_request_id,
                core=self._core,
            ):
                self._pool.note_batch_support(bookie_id, supported=True)
                yield run
        except (BookieError, FormatError, IntegrityError) as error:
            unknown = self._pool.batch_support(bookie_id) is BatchSupport.UNKNOWN
            if isinstance(error, BookieUnreachableError) and error.closed_by_peer and unknown:
                # A bookie before 4.17 answers its first batch read so. A connection that had been
                # used may have gone stale instead: then the caller's next try is on a fresh one.
                if fresh:
                    self._pool.note_batch_support(bookie_id, supported=False)
                return
            self._note_failure(bookie_id, error)
            raise

    def _try_replicas(
        self, entry_id: int, replica: int, failures: dict[str, Exception]
    ) -> StoredEntry | None:
        request = ReadEntry(self._metadata.ledger_id, entry_id)  # a reader never fences
        for bookie_id in self._order(entry_id, replica):
            if bookie_id in failures:
                continue
            try:
                stored = self._pool.connection(bookie_id).read(request)
                entry = self._codec.decode(stored, entry_id=entry_id)
            except BookieNotAuthorizedError:
                raise
            except (BookieError, FormatError, IntegrityError) as error:
                self._note_failure(bookie_id, error)  # a wrong digest is one bad replica
                failures[bookie_id] = error
                continue
            return entry._replace(payload=memoryview(bytes(entry.payload)))
        return None

    def _order(self, entry_id: int, replica: int) -> list[str]:
        """The bookies that hold an entry, the one to ask first in front."""
        number = segment_number(self._metadata, entry_id)
        ring = self._metadata.segments[number].bookies
        if batch_reads_allowed(self._metadata):
            # Every bookie has every entry: stay with one per ledger and segment, which keeps its
            # read-ahead useful, and with different ones for different ledgers.
            start = self._metadata.ledger_id + number + self._hint + replica
        else:
            write_quorum = self._metadata.write_quorum
            ring = write_set_of(ring, write_quorum=write_quorum, entry_id=entry_id)
            start = self._hint + replica
        start %= len(ring)
        return sorted(ring[start:] + ring[:start], key=self._failed_lately)

    def _failed_lately(self, bookie_id: str) -> bool:
        shunned_until = self._shunned_until.get(bookie_id)
        shunned = shunned_until is not None and self._pool.clock() < shunned_until
        return shunned or self._pool.silent_lately(bookie_id)

    def _note_failure(self, bookie_id: str, error: Failure) -> None:
        if isinstance(error, BookieUnreachableError):
            self._pool.note_silent(bookie_id)
        elif not isinstance(error, BookieNotAuthorizedError):  # it says nothing of other ledgers
            self._shunned_until[bookie_id] = self._pool.clock() + SHUN_S

    def _look_up_again(self) -> bool:
        """Take newer metadata if it names other bookies; whether it did."""
        if self._reresolve is None:
            return False
        found = self._reresolve()
        fixed = ["ledger_id", "digest_type", "password"]
        if self._readable.by is BoundBy.CLOSED:
            of_closed(found)
            fixed += ["last_entry_id", "length"]
        for name in fixed:
            if getattr(found, name) != getattr(self._metadata, name):
                raise IntegrityError(
                    f"{name} of ledger {self._metadata.ledger_id} changed; start again from its "
                    "metadata"
                )
        if found.segments == self._metadata.segments:
            return False
        self._metadata = found
        return True
