"""What travels to a worker and what comes back: descriptors in, one row per block out.

Owns the contract between the driver, which decides and commits, and tasks, which may run twice,
late, or after everyone forgot them. A descriptor holds no secret: workers resolve credentials and
the ledger password from their own settings. Payload never appears in either direction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

import tiering_assets.resources.errors as errors
from tiering_assets.offload_format.digests import DigestKind
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.offload_format.segments.block import SegmentBlock
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.readable import ReadableTo, of_closed, proven_bound
from tiering_assets.resources.errors import IntegrityError, ObjectStoreError, TierkeeperError


class TaskKind(Enum):
    """`COPY` sends blocks, `READ_BACK` reads them from the store, `READ_SOURCE` from bookies."""

    COPY = "copy"
    READ_BACK = "read_back"
    READ_SOURCE = "read_source"


Block = BlockPlan | SegmentBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEnd:
    """What proves how far a ledger that is open may be read (resources/bookkeeper/readable.py).

    `confirmed` is what bookies of its newest ensemble confirm, `acknowledged` what its broker does.
    """

    confirmed: dict[str, int]
    acknowledged: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSource:
    """Where the entries of one ledger are: metadata without its password, and addresses.

    `pages` are those of the bookies' HTTP servers, where they are known. The ledger is closed
    where it has no `open_end`.
    """

    ledger_id: int
    last_entry_id: int
    length: int
    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    digest_type: str
    segments: tuple[tuple[int, tuple[str, ...]], ...]
    addresses: dict[str, tuple[str, int]]
    pages: dict[str, tuple[str, int]] = field(default_factory=dict)
    open_end: OpenEnd | None = None

    @classmethod
    def of(cls, metadata: LedgerMetadata, addresses: dict[str, tuple[str, int]]) -> LedgerSource:
        return cls(
            ledger_id=metadata.ledger_id,
            last_entry_id=metadata.last_entry_id,
            length=metadata.length,
            ensemble_size=metadata.ensemble_size,
            write_quorum=metadata.write_quorum,
            ack_quorum=metadata.ack_quorum,
            digest_type=metadata.digest_type.name,
            segments=tuple((s.first_entry_id, s.bookies) for s in metadata.segments),
            addresses=addresses,
        )

    @property
    def is_unchecked(self) -> bool:
        """Whether its entries carry no digest, so that one replica alone proves nothing."""
        return DigestType[self.digest_type] is DigestType.DUMMY

    def metadata(self, password: bytes) -> LedgerMetadata:
        """The ledger as a reader wants it; the password is the worker's own setting."""
        return LedgerMetadata(
            ledger_id=self.ledger_id,
            state=BookKeeperState.CLOSED if self.open_end is None else BookKeeperState.OPEN,
            last_entry_id=self.last_entry_id,
            length=self.length,
            ensemble_size=self.ensemble_size,
            write_quorum=self.write_quorum,
            ack_quorum=self.ack_quorum,
            digest_type=DigestType[self.digest_type],
            password=password,
            segments=tuple(EnsembleFragment(first, bookies) for first, bookies in self.segments),
        )

    def readable_to(self) -> ReadableTo:
        """How far the ledger may be read. IntegrityError as of proven_bound."""
        metadata, end = self.metadata(b""), self.open_end
        if end is None:
            return of_closed(metadata)
        broker = None if end.acknowledged is None else (self.ledger_id, end.acknowledged)
        return proven_bound(metadata, confirmed=end.confirmed, acknowledged=broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPart:
    """A part that an earlier run sent, as the store lists it. `sha256` is hex, empty if
    unlisted.
    """

    part_number: int
    size: int
    etag: str
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class TaskPart:
    """A part of an upload, and how many of the task's blocks it holds, one behind the other."""

    number: int
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTask:
    """Some blocks of one attempt. `upload_id` is None where one block is a plain PUT.

    `listed` are parts that need not be sent again if their checksum is right.
    """

    kind: TaskKind
    attempt: str
    source: LedgerSource
    data_key: str
    blocks: tuple[Block, ...]
    upload_id: str | None = None
    user_metadata: dict[str, str] | None = None
    version_id: str | None = None
    listed: tuple[ListedPart, ...] = ()
    topic: str = (
        ""  # managed-ledger name, whose budgets the task spends; empty is the cluster's alone
    )
    budget_key: str = ""  # object with the wanted budgets; empty leaves those of the settings
    digest: DigestKind = "frames"  # of the entries, as the certificate has it that rows meet
    parts: tuple[TaskPart, ...] = ()  # none: each block is a part, of its own number
    others: tuple[LedgerSource, ...] = ()  # of its blocks that are not of `source`

    @property
    def bytes(self) -> int:
        """Work in this task, for packing."""
        return sum(block.block_length for block in self.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRow:
    """What one task says of one block. `error` is empty when all other fields are facts.

    `sha256` is of the block's bytes (empty for READ_SOURCE, which frames nothing); `entries_sha256`
    is the task's digest of its verified entries (offload_format/digests.py). `sent` is False for a
    part that the store had already.
    """

    kind: TaskKind
    attempt: str
    ledger_id: int
    part_number: int
    entries: int
    payload_bytes: int
    block_length: int
    sha256: str
    entries_sha256: str
    seconds: float
    etag: str = ""  # of the part, as the store answered after checking its SHA-256
    header: str = ""  # hex of the block header as it was read back
    sent: bool = True
    error: str = ""
    error_class: str = ""
    retryable: bool = False
    messages: int | None = None  # these three are of READ_BACK, as message_facts.py has them
    publish_min_ms: int | None = None
    publish_max_ms: int | None = None
    part: int = 0  # of the upload that holds it; bytes and SHA-256 of all that part. Of COPY alone
    part_bytes: int = 0
    part_sha256: str = ""


def ledger_of(task: BlockTask, block: Block) -> int:
    """The ledger whose entries a block of the task holds."""
    return block.ledger_id if isinstance(block, SegmentBlock) else task.source.ledger_id


T = TypeVar("T")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def encode_task(task: BlockTask) -> str:
    return _adapter(BlockTask).dump_json(task).decode()


def decode_task(text: str) -> BlockTask:
    decoded: BlockTask = _adapter(BlockTask).validate_json(text)
    return decoded


def failure_row(task: BlockTask, block: Block, error: Exception, seconds: float) -> BlockRow:
    """A failure as data: one bad ledger must not stop the batch it travels in."""
    return BlockRow(
        kind=task.kind,
        attempt=task.attempt,
        ledger_id=task.source.ledger_id,
        part_number=block.part_number,
        entries=0,
        payload_bytes=0,
        block_length=block.block_length,
        sha256="",
        entries_sha256="",
        seconds=seconds,
        error=str(error) or type(error).__name__,
        error_class=type(error).__name__,
        retryable=bool(getattr(error, "retryable", False)),
    )


def revive(row: BlockRow, message: str) -> TierkeeperError:
    """The error that a task reported as data, in its own class: that decides the exit code."""
    kind = getattr(errors, row.error_class, None)
    if isinstance(kind, type) and issubclass(kind, TierkeeperError):
        return kind.retold(message)
    return ObjectStoreError(message) if row.retryable else IntegrityError(message)
