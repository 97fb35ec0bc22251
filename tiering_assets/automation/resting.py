"""Topics of which nothing is due before their node moves, a time comes, or a policy changes.

Owns: hints of one process, lost with it; then each topic is looked at once more. A few of those
that rest longest are looked at in each tick all the same: a policy may change and tell nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

ROTATED: Final = 200  # topics a tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """`mzxid` of the node that was judged; `until` None is until it moves."""

    mzxid: int
    until: datetime | None


class Resting:
    """By topic, the one that rests longest first. About 300 bytes each."""

    def __init__(self) -> None:
        self._rests: dict[str, Rest] = {}
        self._by: object = None

    def begin(self, policies: object) -> None:
        """What holds for every topic, to be compared: when it changes, nobody rests."""
        if policies != self._by:
            self._rests.clear()
        self._by = policies

    def rest(self, topic: str, rest: Rest) -> None:
        self._rests.pop(topic, None)
        self._rests[topic] = rest

    def wake(self, topic: str) -> None:
        self._rests.pop(topic, None)

    def awake(self, topics: Mapping[str, int], *, now: datetime) -> list[str]:
        """Of these topics, with the mzxid of their nodes, those to look at, in name order."""
        for gone in self._rests.keys() - topics.keys():
            del self._rests[gone]
        up = {topic for topic, mzxid in topics.items() if self._is_up(topic, mzxid, now)}
        longest = [topic for topic in self._rests if topic not in up][:ROTATED]
        return sorted({*up, *longest})

    def _is_up(self, topic: str, mzxid: int, now: datetime) -> bool:
        rest = self._rests.get(topic)
        if rest is None or mzxid > rest.mzxid:
            return True
        return rest.until is not None and rest.until <= now
