"""The record of a failure that no attempt tells of. docs/records.md explains its fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import AwareDatetime

from tiering_assets.records.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFailure:
    """Runs in a row failed at the ledger and left no attempt that would tell; gone once it moves
    on.

    `error` is cut, `error_class` its class in resources/errors.py; times are by the writer's clock.
    """

    kind: ClassVar[str] = "tierkeeper/failure/1"
    ledger_id: int
    ml_name: str | None
    error: str
    error_class: str
    tries: int
    first_at: AwareDatetime
    last_at: AwareDatetime
    writer: Writer
