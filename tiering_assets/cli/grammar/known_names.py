"""Topics and ledger ids that a listing showed lately, in a file of the user's cache.

Owns: completion asks no server, so it knows what was listed here and nothing else. The file is a
convenience: one that is missing, damaged or cannot be written is no error of any command. It names
topics, so it can be read by its owner alone.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import Final

TOPICS_MAX: Final = 100_000
LEDGERS_MAX: Final = 10_000  # the newest; older ones are seldom typed
_SCHEME: Final = "persistent://"


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Topics without `persistent://` in name order, and ledger ids, the newest first."""

    topics: tuple[str, ...] = ()
    ledger_ids: tuple[int, ...] = ()


def names_file() -> Path:
    """Where they lie: XDG_CACHE_HOME, or ~/.cache."""
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "tierkeeper" / "names.json"


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
            _replace(names_file(), json.dumps({"topics": now.topics, "ledger_ids": now.ledger_ids}))


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".names.")  # 0600, as mkstemp has it
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
