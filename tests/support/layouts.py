"""Blocks planned from lengths that are all known, as no real ledger's are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from tiering_assets.offload_format.layout import BlockPlan, plan_layout


def plan_layout_from_sizes(sizes: Sequence[int], *, block_bytes_max: int) -> tuple[BlockPlan, ...]:
    """Plan the blocks of entries whose payload lengths are all known. Errors as `plan_layout`."""
    sums = list(accumulate(sizes))
    return plan_layout(
        last_entry_id=len(sizes) - 1,
        ledger_length=sums[-1] if sums else 0,
        block_bytes_max=block_bytes_max,
        cumulative_length=sums.__getitem__,
    )
