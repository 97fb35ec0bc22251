"""How many requests a copy will cost, before it starts. What `ledger plan` prints and people pay for.

Counts what steps/offload.py and steps/verify.py send when nothing fails: retries come on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiering_assets.offload_format.layout import BlockPlan

_RECORDS = 4  # claim, attempt, certificate, outcome
_HEADS = 3  # data before and after it is read back; the claim's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCount:
    """Requests to the object store for one ledger. `writes` are what providers price highest."""

    writes: int
    reads: int


def count_requests(blocks: Sequence[BlockPlan], *, read_range_bytes: int) -> RequestCount:
    """One PUT for a single block, else create, a part each and complete; then the index object."""
    uploads = 1 if len(blocks) == 1 else len(blocks) + 2
    ranges = sum(-(-block.block_length // read_range_bytes) for block in blocks)
    return RequestCount(writes=uploads + 1 + _RECORDS, reads=ranges + 1 + _HEADS)
