"""Get ready to judge while tasks run: the expectation library takes seconds to import.

Owns: it happens once a process, in a thread that nobody waits for, and whatever goes wrong is told
by the validation itself. To be called when a suite will be needed for sure, and after a runner was
begun: the library imports PySpark, and two threads must not import that at once.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock, Thread

from tiering_assets.quality import expectations_run

_LOCK = Lock()
_begun = False


def prepare_suites() -> None:
    """Begin to import the library, if nobody has; returns at once."""
    global _begun
    with _LOCK:
        if _begun:
            return
        _begun = True
    Thread(target=_prepare, name="suites", daemon=True).start()


def _prepare() -> None:
    with suppress(Exception):
        expectations_run.prepare()
