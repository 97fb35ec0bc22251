"""When what was absorbed, and which part of the tail may go by it.

Owns: rows go only that a settled table has had for a day, by the store's clock, so that whoever
opened tables before has finished or opens them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

KEPT = timedelta(days=1)
_SAID = "settled"


@dataclass(frozen=True, slots=True)
class Settlements:
    """(time, turn) of each settlement, oldest first; one that is over a day old stands for all
    before it.
    """

    all: tuple[tuple[datetime, int], ...] = ()

    @classmethod
    def told_by(cls, commit: Mapping[str, Any]) -> Settlements:
        """What a commit of the settled table carries."""
        pairs = json.loads(commit.get(_SAID, "[]"))
        return cls(tuple((datetime.fromisoformat(at), turn) for at, turn in pairs))

    def told(self) -> dict[str, str]:
        """For the next commit."""
        return {_SAID: json.dumps([[at.isoformat(), turn] for at, turn in self.all])}

    def having(self, turn: int, *, at: datetime) -> Settlements:
        """With one more; of those over a day old the newest is kept."""
        old = [one for one in self.all if at - one[0] > KEPT]
        young = [one for one in self.all if at - one[0] <= KEPT]
        return Settlements((*old[-1:], *young, (at, turn)))

    def may_go(self, now: datetime) -> int:
        """The turn up to which rows of the tail may go; 0 if none may."""
        return max((turn for at, turn in self.all if now - at > KEPT), default=0)
