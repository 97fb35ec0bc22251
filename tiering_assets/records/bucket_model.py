"""The record that a bucket keeps its store's promises. docs/records.md explains its fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import AwareDatetime

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
