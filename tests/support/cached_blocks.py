"""A bucket with blocks of entries of any size, made by the encoder, and a cache on a disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.layouts import plan_layout_from_sizes
from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.places import block_name
from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.settings import CacheSettings

MIB = 1024 * 1024
KEY = "object"


def encoded(payloads: Sequence[bytes], block_bytes: int) -> tuple[bytes, Sequence[BlockPlan]]:
    """The data object of these entries, and what is planned of each of its blocks."""
    plans = plan_layout_from_sizes([len(one) for one in payloads], block_bytes_max=block_bytes)
    encoder, blocks = BlockEncoder(block_bytes), []
    for plan in plans:
        encoder.begin(plan)
        encoder.add_many(
            plan.first_entry_id, payloads[plan.first_entry_id : plan.last_entry_id + 1]
        )
        blocks.append(bytes(encoder.finish()))
    return b"".join(blocks), plans


def placed(
    data: bytes,
    *,
    part: int,
    offset: int,
    length: int,
    first: int,
    last: int,
    payload_bytes: int,
) -> PlacedBlock:
    """A row of the catalogue."""
    return PlacedBlock(
        topic="public/default/persistent/orders",
        ledger_id=42,
        part=part,
        first_entry_id=first,
        last_entry_id=last,
        publish_min=None,
        publish_max=None,
        messages=None,
        bucket="b",
        data_key=KEY,
        version_id=None,
        offset=offset,
        length=length,
        payload_bytes=payload_bytes,
        sha256=sha256(data[offset : offset + length]).hexdigest(),
        uid="u",
        certificate_sha256=None,
        run_id="r",
        written_by="tierkeeper",
        page=1,
        state="published",
        bookie_copy="there",
        counts=True,
    )


def placed_plans(data: bytes, plans: Iterable[BlockPlan]) -> list[PlacedBlock]:
    return [
        placed(
            data,
            part=one.part_number,
            offset=one.offset,
            length=one.block_length,
            first=one.first_entry_id,
            last=one.last_entry_id,
            payload_bytes=one.payload_bytes,
        )
        for one in plans
    ]


class CachedBucket:
    """`ranges` are those that were read. Two of them with one folder are two processes."""

    def __init__(self, data: bytes, folder: Path, *, bytes_max: int = 64 * MIB) -> None:
        self.objects = SimulatedObjectStore()
        self.objects.put(KEY, data, metadata={})
        self.folder = folder
        self.ranges: list[tuple[int, int]] = []
        really = self.objects.get_range

        def get_range(key: str, **how: Any) -> bytes:
            self.ranges.append((how["start"], how["length"]))
            return really(key, **how)

        self.objects.get_range = get_range  # type: ignore[method-assign]
        self.stack = self._stack(CacheSettings(root=str(folder), bytes_max=bytes_max))
        self.uncached = self._stack(CacheSettings(bytes_max=0))

    def _stack(self, cache: CacheSettings) -> Any:
        """What a reader asks of one."""
        return SimpleNamespace(
            objects=self.objects,
            settings=SimpleNamespace(cache=cache),
            spending_for=lambda _topic: nullcontext(),
        )

    def file_of(self, block: PlacedBlock) -> Path:
        name = block_name(block)
        return self.folder / name[:2] / f"{name[2:]}.kept"
