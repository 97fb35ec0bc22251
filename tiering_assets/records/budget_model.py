"""The wanted rates that whoever spends looks up: see models.py for the rules of every record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import AwareDatetime, NonNegativeInt

from tiering_assets.records.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The wanted rates of the cluster and of each topic: 0 is no bound, None is as settings say.

    Overwritten in place; whoever spends reads it every 10 s (docs/budgets.md).
    """

    kind: ClassVar[str] = "tierkeeper/budget/1"
    author: str
    set_at: AwareDatetime
    writer: Writer
    upload_bytes_per_s: NonNegativeInt | None = None
    bookie_read_bytes_per_s: NonNegativeInt | None = None
    store_requests_per_s: NonNegativeInt | None = None
    topic_upload_bytes_per_s: NonNegativeInt | None = None
    topic_bookie_read_bytes_per_s: NonNegativeInt | None = None
    topic_store_requests_per_s: NonNegativeInt | None = None
