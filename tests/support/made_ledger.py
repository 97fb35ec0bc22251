"""A ledger of any size that is stored nowhere: bookies' answers and the object are made when asked
for.

Owns: what a worker gets are real answers, with real digests, of one batch or one block at a time.
So the memory that a worker takes, and the time it spends, can be measured over gigabytes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from struct import pack
from threading import Lock
from typing import Any

from tiering_assets.offload_format.block import (
    FRAME,
    FRAME_BYTES,
    HEADER_BYTES,
    PAD_PATTERN,
    encode_block_header,
)
from tiering_assets.offload_format.layout import BlockPlan, plan_layout
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.pool import BatchSupport
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec, codec_for
from tiering_assets.resources.object_store.store import Part
from tiering_assets.resources.settings import Settings
from tiering_assets.tasks.descriptors import BlockTask, LedgerSource, TaskKind
from tiering_assets.tasks.worker import Worker

LEDGER = 7


@dataclass(frozen=True)
class MadeLedger:
    """`entries` entries of `size` bytes each, in blocks of at most `block_bytes`."""

    entries: int
    size: int
    block_bytes: int

    @cached_property
    def metadata(self) -> LedgerMetadata:
        return LedgerMetadata(
            ledger_id=LEDGER,
            state=BookKeeperState.CLOSED,
            last_entry_id=self.entries - 1,
            length=self.entries * self.size,
            ensemble_size=1,
            write_quorum=1,
            ack_quorum=1,
            digest_type=DigestType.CRC32C,
            password=b"",
            segments=(EnsembleFragment(0, ("bk0",)),),
        )

    @cached_property
    def blocks(self) -> tuple[BlockPlan, ...]:
        return plan_layout(
            last_entry_id=self.entries - 1,
            ledger_length=self.entries * self.size,
            block_bytes_max=self.block_bytes,
            cumulative_length=lambda entry_id: (entry_id + 1) * self.size,
        )

    @cached_property
    def payload(self) -> bytes:
        return bytes(range(256)) * (self.size // 256) + bytes(range(self.size % 256))

    def task(self, kind: TaskKind) -> BlockTask:
        return BlockTask(
            kind=kind,
            attempt="made",
            source=LedgerSource.of(self.metadata, {"bk0": ("127.0.0.1", 1)}),
            data_key="made",
            blocks=self.blocks,
            upload_id="made",
        )

    def answer(self, codec: EntryCodec, first: int, count: int) -> bytearray:
        """The records of a batch reply."""
        body, size, payload = bytearray(), self.size, self.payload
        for entry_id in range(first, first + count):
            stored = codec.encode(
                entry_id=entry_id,
                last_add_confirmed=entry_id - 1,
                cumulative_length=(entry_id + 1) * size,
                payload=payload,
            )
            body += pack(">i", len(stored))
            body += stored
        return body


class MadeBookie:
    """Pool and connection in one, of a bookie that has the ledger. `made_s`: CPU spent on
    making.
    """

    answered = 1
    closed = False
    clock = staticmethod(time.monotonic)

    def __init__(self, ledger: MadeLedger, batch_bytes: int) -> None:
        self.made_s = 0.0
        self._ledger, self._codec = ledger, codec_for(ledger.metadata)
        record = ledger.size + 4 + self._codec.overhead_bytes
        self._count_max = max(1, batch_bytes // record)

    def connection(self, _bookie_id):
        return self

    def batch_support(self, _bookie_id):
        return BatchSupport.YES

    def note_batch_support(self, _bookie_id, *, supported):
        if not supported:
            raise ValueError("it does support them")

    def silent_lately(self, _bookie_id):
        return False

    def next_request_id(self):
        return 1

    def submit(self, request):
        """Nothing travels."""

    def hold(self):
        """Nor does anything wait."""

    def receive_batch(self, request):
        count = min(request.max_count, self._count_max)
        began = time.thread_time()
        answer = self._ledger.answer(self._codec, request.first_entry_id, count)
        self.made_s += time.thread_time() - began
        return memoryview(answer)


@dataclass
class MadeObjects:
    """Takes every part and keeps none; makes the object's bytes as they are asked for."""

    ledger: MadeLedger
    made_s: float = 0.0
    bytes_taken: int = 0
    _lock: Lock = field(default_factory=Lock)

    def upload_part(self, _key, _upload_id, *, part_number, body, sha256):
        self.bytes_taken += len(body)
        return Part(part_number=part_number, size=len(body), etag="made", sha256=sha256)

    def get_range(self, _key, *, start, length, version_id=None, into=None):
        began = time.thread_time()
        block = next(b for b in self.ledger.blocks if start < b.offset + b.block_length)
        self._fill(block, start - block.offset, into)
        with self._lock:  # ranges are read ahead by threads
            self.made_s += time.thread_time() - began
        return b""

    def _fill(self, block: BlockPlan, start: int, into: memoryview) -> None:
        """Some bytes of a block, piece by piece: nothing of any size is kept beside them."""
        at = 0

        def put(piece: bytes, begins: int) -> None:
            nonlocal at
            skipped = start + at - begins
            taken = piece[skipped : skipped + len(into) - at]
            into[at : at + len(taken)] = taken
            at += len(taken)

        frame = FRAME_BYTES + self.ledger.size
        if start < HEADER_BYTES:
            header = encode_block_header(
                block_length=block.block_length, first_entry_id=block.first_entry_id
            )
            put(header, 0)
        for i in range(max(0, (start + at - HEADER_BYTES) // frame), block.entries):
            if at == len(into):
                return
            head = FRAME.pack(self.ledger.size, block.first_entry_id + i)
            put(head + self.ledger.payload, HEADER_BYTES + i * frame)
        ends = HEADER_BYTES + block.entries * frame
        while at < len(into):
            put(PAD_PATTERN, ends)
            ends += len(PAD_PATTERN)


class MadeWorker(Worker):
    """A worker whose bookies and store are made of one ledger."""

    def __init__(self, ledger: MadeLedger, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self.objects = MadeObjects(ledger)
        self.bookie = MadeBookie(ledger, settings.bookies.batch_bytes_max)
        self._ledger = ledger
        super().__init__(settings, store=self.objects)  # type: ignore[arg-type]

    def reader(self, source: LedgerSource) -> LedgerReader:
        pool: Any = self.bookie
        return LedgerReader(self._ledger.metadata, pool, self.settings.bookies, core=self.core)

    @property
    def made_s(self) -> float:
        """CPU seconds of the calling thread that no real worker spends."""
        return self.bookie.made_s + self.objects.made_s
