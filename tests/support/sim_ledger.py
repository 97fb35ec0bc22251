"""A closed ledger on three simulated bookies, its plan, and its object's bytes made another way."""

from __future__ import annotations

import struct
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate

from tests.support.bookie_sim import BookieSim
from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.tasks.descriptors import BlockTask, LedgerSource, TaskKind

IDS = ("bk0", "bk1", "bk2")
PASSWORD = b"pw"


class SimBookies:
    """Three bookies; every ledger is on all of them."""

    def __init__(self, stack: ExitStack) -> None:
        self.sims = {name: stack.enter_context(BookieSim(name)) for name in IDS}
        self.addresses = {name: sim.address for name, sim in self.sims.items()}

    def reads(self):
        return [seen for sim in self.sims.values() for seen in sim.seen]


@dataclass(frozen=True)
class SimLedger:
    source: LedgerSource
    payloads: list[bytes]
    blocks: tuple[BlockPlan, ...]
    key: str

    @classmethod
    def store(
        cls,
        bookies: SimBookies,
        ledger_id: int,
        payloads: list[bytes],
        *,
        block_bytes: int,
        digest_type: DigestType = DigestType.CRC32C,
    ) -> SimLedger:
        """Store the payloads on the bookies as a closed ledger whose password is PASSWORD."""
        metadata = LedgerMetadata(
            ledger_id=ledger_id,
            state=BookKeeperState.CLOSED,
            last_entry_id=len(payloads) - 1,
            length=sum(map(len, payloads)),
            ensemble_size=3,
            write_quorum=3,
            ack_quorum=2,
            digest_type=digest_type,
            password=PASSWORD,
            segments=(EnsembleFragment(0, IDS),),
        )
        codec = EntryCodec(ledger_id=ledger_id, digest_type=metadata.digest_type, password=PASSWORD)
        lengths = accumulate(map(len, payloads))
        for entry_id, (payload, length) in enumerate(zip(payloads, lengths, strict=True)):
            stored = codec.encode(
                entry_id=entry_id,
                last_add_confirmed=entry_id - 1,
                cumulative_length=length,
                payload=payload,
            )
            for sim in bookies.sims.values():
                sim.entries[ledger_id, entry_id] = stored
        return cls(
            source=LedgerSource.of(metadata, bookies.addresses),
            payloads=payloads,
            blocks=plan_layout_from_sizes([len(p) for p in payloads], block_bytes_max=block_bytes),
            key=f"data-ledger-{ledger_id}",
        )

    def task(self, kind=TaskKind.COPY, *, upload_id=None, blocks=None):
        return BlockTask(
            kind=kind,
            attempt=f"attempt-{self.source.ledger_id}",
            source=self.source,
            data_key=self.key,
            blocks=self.blocks if blocks is None else blocks,
            upload_id=upload_id,
            user_metadata={"role": "data"},
        )

    def object_bytes(self):
        return b"".join(self.block_bytes(block) for block in self.blocks)

    def block_bytes(self, block):
        """What PIP-17 says of one block, written down without the encoder."""
        body = struct.pack(">Iqqq", 0xFBDBABCB, 128, block.block_length, block.first_entry_id)
        body = body.ljust(128, b"\0")
        for entry_id in range(block.first_entry_id, block.last_entry_id + 1):
            payload = self.payloads[entry_id]
            body += struct.pack(">iq", len(payload), entry_id) + payload
        padding = block.block_length - len(body)
        return body + (bytes.fromhex("fedcdead") * (padding // 4 + 1))[:padding]
