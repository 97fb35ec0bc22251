"""What commits of `topic_changes` say of scans: when one began, and how often rows were wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tiering_assets.resources.tables import Table

_SCANNED_AT: Final = "scanned_at"
_WRONG: Final = "wrong"


@dataclass(frozen=True, slots=True)
class ScansTold:
    """`scanned_at` is to some minutes, None before a whole scan. Of so many ledgers rows said that
    they were due, and they were not (`wrong`), ever since the tables were made.
    """

    scanned_at: datetime | None = None
    wrong: int = 0

    @classmethod
    def by(cls, topic_changes: Table) -> ScansTold:
        told = topic_changes.newest_with(_SCANNED_AT)
        at = told.get(_SCANNED_AT)
        return cls(datetime.fromisoformat(at) if at else None, int(told.get(_WRONG, 0)))

    def told(self) -> dict[str, str]:
        """For the next commit."""
        at = "" if self.scanned_at is None else self.scanned_at.isoformat()
        return {_SCANNED_AT: at, _WRONG: str(self.wrong)}
