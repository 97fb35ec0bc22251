"""Every error tierkeeper raises on purpose, and the exit code each one ends a command with.

    TierkeeperError
    ├─ SettingsError                bad configuration, told before any connection
    ├─ PrerequisiteError            something the machine must have is missing (Java, a wheel, a port)
    ├─ FormatError                  bytes break a layout (theirs or ours)
    ├─ IntegrityError               well-formed but wrong: digest, gap, count, length, comparison
    │  ├─ CopyChangedError          a certified copy is not the one that was proven any more
    │  └─ ExpectationError          every byte is equal, and the suite over the index found something
    ├─ BookieError                  a bookie answered with an error, or not at all
    │  ├─ BookieNotAuthorizedError  the next replica would say the same
    │  ├─ BookieUnreachableError    no connection, lost or silent; says nothing about the ledger
    │  └─ LedgerNotOnBookieError    this bookie has no such ledger; says nothing about the others
    ├─ EntryUnavailableError        no replica gave the entry; one failure per bookie
    ├─ LedgerNotFoundError          the ledger is gone from BookKeeper's metadata
    ├─ MetadataError                the metadata store refused or could not be reached
    │  ├─ MetadataConflictError     compare-and-set lost; retry only from a fresh read
    │  └─ MetadataUnknownError      sent, answer lost; resolve by reading again
    ├─ ObjectStoreError             after the client's own retries
    │  ├─ ObjectExistsError         a create-if-absent lost to another writer
    │  ├─ ObjectNotFoundError       the key, version or upload is not there
    │  ├─ ObjectConflictError       an If-Match lost to another writer
    │  ├─ ObjectArchivedError       in a storage class that answers no read until it is restored
    │  └─ ObjectTooLargeError       more bytes than anything of ours has; it was not read
    ├─ BrokerError                  the broker's admin API refused or could not be reached
    │  ├─ BrokerNotFoundError       the broker says that it has no such topic, ledger or entry
    │  └─ BrokerUnknownError        sent, answer lost; resolve by looking or by repeating
    ├─ CatalogueError               a table of the catalogue cannot be read or written; it is a view
    ├─ StaleEvidenceError           what was known is too old to act on; nothing was changed
    ├─ RunInterruptedError          somebody ended the run; the next one goes on where it stopped
    ├─ RefusedError                 a rule forbids it; the message names the rule and what lifts it
    └─ BatchError                   some ledgers of a batch failed; carries one error per ledger

A message names the ledger, topic or key, the value expected and the value found, and the next step
where there is one. A ledger that merely waits is a decision, not an error.
"""  # noqa: W505  a tree of names that docs/cli.md repeats line by line

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Self


class TierkeeperError(Exception):
    """Base of all expected errors. `retryable` says whether the same call may succeed later."""

    exit_code: ClassVar[int] = 10
    retryable: ClassVar[bool] = False

    @classmethod
    def retold(cls, message: str) -> Self:
        """This kind of error, known by its message alone: a task reports what failed as text."""
        error = cls.__new__(cls)
        Exception.__init__(error, message)
        return error


class SettingsError(TierkeeperError):
    exit_code = 11


class PrerequisiteError(TierkeeperError):
    exit_code = 12


class FormatError(TierkeeperError):
    exit_code = 13


class IntegrityError(TierkeeperError):
    exit_code = 14


class CopyChangedError(IntegrityError):
    pass


class ExpectationError(IntegrityError):
    exit_code = 32


class BookieError(TierkeeperError):
    exit_code = 15
    retryable = True


class BookieNotAuthorizedError(BookieError):
    retryable = False


class BookieUnreachableError(BookieError):
    """`closed_by_peer`: it ended a connection that stood, as an old one does on a batch read."""

    closed_by_peer: bool = False

    def __init__(self, message: str, *, closed_by_peer: bool = False) -> None:
        self.closed_by_peer = closed_by_peer
        super().__init__(message)


class LedgerNotOnBookieError(BookieError):
    retryable = False


class EntryUnavailableError(TierkeeperError):
    """No replica gave the entry, or too few. `failures` maps each bookie id to what it did."""

    exit_code = 16
    retryable = True
    ledger_id: int = -1  # what a retold error does not know
    entry_id: int = -1
    failures: Mapping[str, Exception] = MappingProxyType({})

    def __init__(
        self,
        ledger_id: int,
        entry_id: int,
        failures: Mapping[str, Exception],
        *,
        why: str = "no replica gave it",
    ) -> None:
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.failures = dict(failures)
        said = "; ".join(f"{bookie}: {error}" for bookie, error in self.failures.items())
        super().__init__(f"ledger {ledger_id} entry {entry_id}: {why} ({said})")


class LedgerNotFoundError(TierkeeperError):
    exit_code = 17


class MetadataError(TierkeeperError):
    exit_code = 18
    retryable = True


class MetadataConflictError(MetadataError):
    exit_code = 19
    retryable = True


class MetadataUnknownError(MetadataError):
    exit_code = 20


class ObjectStoreError(TierkeeperError):
    exit_code = 21
    retryable = True


class ObjectExistsError(ObjectStoreError):
    exit_code = 22
    retryable = False


class ObjectNotFoundError(ObjectStoreError):
    """`of_key`: the store says of the key that it is missing, so its bucket is there."""

    exit_code = 23
    retryable = False
    of_key = False


class ObjectConflictError(ObjectStoreError):
    exit_code = 24
    retryable = False


class ObjectArchivedError(ObjectStoreError):
    retryable = False


class ObjectTooLargeError(ObjectStoreError):
    retryable = False


class BrokerError(TierkeeperError):
    exit_code = 25
    retryable = True


class BrokerNotFoundError(BrokerError):
    exit_code = 28
    retryable = False


class BrokerUnknownError(BrokerError):
    exit_code = 29


class CatalogueError(TierkeeperError):
    exit_code = 35
    retryable = True


class StaleEvidenceError(TierkeeperError):
    exit_code = 33
    retryable = True


class RunInterruptedError(TierkeeperError):
    exit_code = 34
    retryable = True


class RefusedError(TierkeeperError):
    exit_code = 26
