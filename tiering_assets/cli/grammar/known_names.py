"""Topics and ledger ids that a listing showed lately, in a file of the user's cache.

Owns: completion asks no server, so it knows what was listed here and nothing else. The file is a
convenience: one that is missing, damaged or cannot be written is no error of any command. It names
topics, so it can be read by its owner alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import Final

from tiering_assets.resources.user_cache import replace_file, user_cache

TOPICS_MAX: Final = 100_000
LEDGERS_MAX: Final = 10_000  # the newest; older ones are seldom typed
_SCHEME: Final = "persistent://"


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Topics without `persistent://` in name order, and ledger ids, the newest first."""

    topics: tuple[str, ...] = ()
    ledger_ids: tuple[int, ...] = ()


def names_file() -> Path:
    """Where they lie."""
    return user_cache() / "names.json"


def read_names() -> KnownNames:
    """What is known; nothing where the file cannot be read."""
    try:
        found = json.loads(names_file().read_text(encoding="utf-8"))
        return KnownNames(
            tuple(str(name) for name in found["topics"]),
            tuple(int(one) for one in found["ledger_ids"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return KnownNames()


def remember_names(topics: Iterable[str] = (), ledger_ids: Iterable[int] = ()) -> None:
    """Add what was listed; never fails."""
    known = read_names()
    names = {*known.topics, *(topic.removeprefix(_SCHEME) for topic in topics)}
    ids = {*known.ledger_ids, *nlargest(LEDGERS_MAX, ledger_ids)}
    now = KnownNames(
        tuple(islice(sorted(names), TOPICS_MAX)),
        tuple(islice(sorted(ids, reverse=True), LEDGERS_MAX)),
    )
    if now != known:
        with suppress(OSError):
            text = json.dumps({"topics": now.topics, "ledger_ids": now.ledger_ids})
            replace_file(names_file(), text.encode())
