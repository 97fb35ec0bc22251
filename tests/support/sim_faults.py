"""Which faults strike, drawn from the seed at each remote call, and how often each one did.

Owns the names that the coverage of a simulation is reported under. A draw depends only on the seed
and on the calls before it, so a seed replays exactly.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tiering_assets.offload_format.keys import parse_key

if TYPE_CHECKING:
    from tests.support.sim_clients import Site

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
    "copied twice, both publishers dead",
    "withdrawn by two runs",
    "released by two runs",
    "foreign object",
    "object damaged after publication",
)
# Worlds that people make: struck by sim_disasters.py and the schedules of sim_stories.py.
WORLDS: Final = (
    "objects lost before publication",
    "objects replaced before publication",
    "object lost after publication",
    "metadata restored to before a publication",
    "metadata restored to after a publication",
    "delete markers removed",
    "version deletes refused",
    "offload policy names another driver",
    "offload policy names another bucket",
    "offload policy names another endpoint",
    "offload policy names no driver",
    "broker driver removed",
    "autoSkip switched on",
    "shadow made",
    "bookies short",
    "broker restarts with other settings",
    "broker serves on after its session",
    "objects moved to a readable class",
    "objects moved to an archive",
    "objects expire",
    "paused",
)
# Processes of ours that destroy, counted where they did something.
DONE: Final = (
    "scrub",
    "heal tried",
    "healed",
    "expired copies deleted",
    "records forgotten",
    "locked versions met again",
    "released by an approved plan",
    "published along with a release",
)
NAMES: Final = (*AT_CALLS, *BY_SCHEDULE, *WORLDS, *DONE)

WRITES = frozenset(
    {
        "put", "delete", "create_upload", "upload_part", "complete_upload", "abort_upload",
        "set", "create", "check_and_delete", "unload_topic",
    }
)  # fmt: skip
_LISTS = frozenset({"list_objects", "list_uploads", "list_parts", "list_versions"})
# How much likelier than others a call is struck, as some are rare and matter much.
_EAGER: Final = {
    ("objects", "list_objects"): 5, ("objects", "list_uploads"): 8, ("objects", "list_parts"): 8,
    ("objects", "list_versions"): 8, ("objects", "get"): 2, ("objects", "get_range"): 2,
    ("objects", "complete_upload"): 4, ("metadata", "get"): 3, ("metadata", "set"): 3,
    ("metadata", "check_and_delete"): 6,
}  # fmt: skip
# Each seed has one of these struck again and again, so that rare faults meet each other.
_FAVOURITES: Final = (
    None,
    ("objects", "put"), ("objects", "complete_upload"), ("objects", "upload_part"),
    ("objects", "delete"), ("objects", "abort_upload"), ("objects", "get"), ("objects", "head"),
    ("objects", "get_range"), ("objects", "list_objects"), ("objects", "list_versions"),
    ("metadata", "set"), ("metadata", "check_and_delete"), ("metadata", "get"),
    ("broker", "unload_topic"), ("broker", "read_entry"), ("broker", "locate"),
    ("bookies", "read"),
)  # fmt: skip
_COMMON = ("request lost", "delay", "zombie", "killed before", "killed after")


@dataclass(frozen=True, slots=True)
class Fate:
    """What a schedule has in store for one process: a fault at its first call of a kind.

    `naming` is part of what the call is about, as "-ledger-" is of every data and index object's
    key.
    """

    room: str
    methods: tuple[str, ...]
    fault: str
    wait_s: float = 0.0
    naming: str = ""

    def __call__(self, room: str, method: str, args: Sequence[Any]) -> bool:
        return room == self.room and method in self.methods and self.naming in str(args[:1])


@dataclass(slots=True)
class Ambush:
    """What happens right after the nth call of a kind; `act` says whether it struck.

    It is told the caller's site and what the call was about, and strikes at a later call otherwise.
    """

    room: str
    method: str
    naming: str
    act: Callable[[Site, str], bool]
    nth: int = 1


class Faults:
    """`on` is off while a world is laid out and after the faults have stopped."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.on = False
        self.at_calls = True  # False: nothing strikes but what a schedule has laid
        self.counts: Counter[str] = Counter()
        scale = rng.choice((0.3, 1.0, 1.0, 2.5))
        self._write_p = 0.02 * scale
        self._read_p = 0.003 * scale
        self._favourite = rng.choice(_FAVOURITES)

    def strike(self, name: str) -> str:
        """Count one injection."""
        self.counts[name] += 1
        return name

    def pick(self, room: str, method: str, args: Sequence[Any]) -> str | None:
        """The fault of this call, not yet counted, or None."""
        if not self.at_calls:
            return None
        writes = method in WRITES
        p = self._write_p if writes else self._read_p
        p *= _EAGER.get((room, method), 1)
        if self._favourite == (room, method):
            p = min(0.2, p * 8)
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
            if method in ("complete_upload", "put") and parse_key(args[0]) is not None:
                kinds += ["bits rot before verification"] * 6
        elif room == "metadata":
            kinds.append("session lost")
            if method == "get":
                kinds += ["stale metadata read"] * 8
        elif room == "bookies":
            kinds += ["bookie down"] * 3
        elif room == "broker":
            kinds += ["broker fails"] * 3
        elif room == "runner":
            kinds = ["row lost", "task run twice"]
        return self.rng.choice(kinds)
