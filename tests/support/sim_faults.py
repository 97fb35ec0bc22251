"""Which faults strike, drawn from the seed at each remote call, and how often each one did.

Owns the names that the coverage of a simulation is reported under. A draw depends only on the seed
and on the calls before it, so a seed replays exactly.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

# Struck at single remote calls.
AT_CALLS: Final = (
    "request lost",
    "answer lost",
    "delay",
    "zombie",
    "killed before",
    "killed after",
    "store answers 503",
    "stale listing",
    "partial listing",
    "stale metadata read",
    "session lost",
    "corrupted read-back",
    "bits rot before verification",
    "bookie down",
    "broker fails",
    "row lost",
    "task run twice",
)
# Struck by the schedule.
BY_SCHEDULE: Final = (
    "duplicate run",
    "worker clock steps",
    "store clock steps",
    "metadata restored",
    "two instances in one bucket",
    "bucket keeps versions",
    "topic made again",
    "hold set",
    "ledger trimmed",
    "broker offloads",
    "broker releases",
    "broker restarts",
    "broker cannot read objects",
    "foreign object",
    "object damaged after publication",
)
NAMES: Final = (*AT_CALLS, *BY_SCHEDULE)

WRITES = frozenset(
    {
        "put", "delete", "create_upload", "upload_part", "complete_upload", "abort_upload",
        "set", "create", "check_and_delete", "unload_topic",
    }
)  # fmt: skip
_LISTS = frozenset({"list_objects", "list_uploads", "list_parts", "list_versions"})
_EAGER: Final = {
    "list_objects": 5, "list_uploads": 8, "list_parts": 8, "list_versions": 8,
    "get": 2, "get_range": 2,
}  # fmt: skip
_COMMON = ("request lost", "delay", "zombie", "killed before", "killed after")


class Faults:
    """`on` is off while a world is laid out and after the faults have stopped."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.on = False
        self.counts: Counter[str] = Counter()
        scale = rng.choice((0.3, 1.0, 1.0, 2.5))
        self._write_p = 0.02 * scale
        self._read_p = 0.003 * scale

    def strike(self, name: str) -> str:
        """Count one injection."""
        self.counts[name] += 1
        return name

    def pick(self, room: str, method: str) -> str | None:
        """The fault of this call, counted, or None."""
        writes = method in WRITES
        p = self._write_p if writes else self._read_p * _EAGER.get(method, 1)
        if self.rng.random() >= p:
            return None
        kinds = [*_COMMON]
        if writes:
            kinds += ["answer lost", "answer lost", "killed after", "zombie"]
        if room == "objects":
            kinds.append("store answers 503")
            if method in _LISTS:
                kinds += ["stale listing", "partial listing"] * 2
            if method == "get_range":
                kinds += ["corrupted read-back"] * 3
            if method in ("complete_upload", "put"):
                kinds += ["bits rot before verification"]
        elif room == "metadata":
            kinds.append("session lost")
            if method == "get":
                kinds += ["stale metadata read"] * 4
        elif room == "bookies":
            kinds += ["bookie down"] * 3
        elif room == "broker":
            kinds += ["broker fails"] * 3
        elif room == "runner":
            kinds = ["row lost", "task run twice"]
        return self.rng.choice(kinds)
