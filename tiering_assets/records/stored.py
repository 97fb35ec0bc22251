"""A record as it lies in the bucket: with its digest, and with what the store says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from tiering_assets.records.models import Record

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Stored(Generic[R]):
    """A record with the digest of its exact bytes and the time the store gave it.

    `body` is the JSON object as it lies there, with the fields that we do not know.
    """

    key: str
    record: R
    sha256: str
    stored_at: datetime
    etag: str
    body: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
