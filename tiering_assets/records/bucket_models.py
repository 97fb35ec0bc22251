"""Records of a bucket as a whole: that its store keeps its promises, and the wanted rates.

docs/records.md explains their fields, models.py has the rules of every record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import AwareDatetime, NonNegativeInt

from tiering_assets.records.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketProof:
    """Written when every promise that the protocols rely on was tried out in the bucket, and held.

    `promises` are the names of what was tried, `endpoint` is through which.
    """

    kind: ClassVar[str] = "tierkeeper/bucket-proof/1"
    bucket: str
    endpoint: str
    promises: tuple[str, ...]
    proven_at: AwareDatetime
    writer: Writer


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
