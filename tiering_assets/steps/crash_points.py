"""Named points before and after every remote effect, where a test may kill the process.

Owns the list: a point that no step reaches, or that is not in the list, fails a test. With the
environment variable unset, reaching a point costs one comparison. The kill is SIGKILL to ourselves,
so nothing is flushed, closed or cleaned up, exactly as when the machine loses power.
"""

from __future__ import annotations

import os
import signal
from typing import Final

POINTS: Final = (
    "offload.claimed",
    "offload.attempt_recorded",
    "offload.upload_created",
    "offload.parts_sent",
    "offload.completed",
    "offload.index_put",
    "verify.read_back",
    "verify.certified",
    "publish.outcome_won",
    "publish.context_set",
    "publish.unloaded",
    "publish.confirmed",
    "publish.recorded",
    "publish.withdrawn",  # only where the broker could not read what was published
    "release.intended",
    "release.marked",
    "release.unloaded",
    "release.rehearsed",
    "release.deleted",
    "release.recorded",
    "release.unmarked",  # only where the rehearsal failed
    "sweep.abandoned",
    "sweep.aborted",
    "sweep.deleted",
    "scrub.quarantined",
    "scrub.recorded",
)

VARIABLE: Final = "TIERKEEPER_CRASH_AT"
_wanted = os.environ.get(VARIABLE, "")


def reach(point: str) -> None:
    """Die here if this is the point that the environment names."""
    if not _wanted:
        return
    if point not in POINTS:
        raise ValueError(f"unknown crash point {point!r}")
    if point == _wanted:
        os.kill(os.getpid(), signal.SIGKILL)
