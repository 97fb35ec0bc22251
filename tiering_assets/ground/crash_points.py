"""Named points at every remote effect, where a test may kill the process.

Owns the list: a point that no step reaches, or that is not in the list, fails a test. With the
environment variable unset, reaching a point costs one comparison. The kill is SIGKILL to ourselves,
so nothing is flushed, closed or cleaned up, exactly as when the machine loses power.

There is one point per gap: right after each effect, and none right before it, as nothing happens
between one effect's "after" and the next one's "before" but reads. Before the first effect of a step
there is nothing to leave behind. Where effects repeat (parts, outcomes, deletes) the point repeats
with them, and `name:2` is its second time. Effects that a step shares with others have one name:
claims (taken, renewed), parts and read-backs of an offload are also those of a heal. A record alone,
as a hold or a pause is set, leaves nothing half done. docs/crash-points.md says what each leaves.
"""

from __future__ import annotations

import os
import signal
from typing import Final

POINTS: Final = (
    "offload.claimed",
    "offload.attempt_recorded",
    "offload.upload_created",
    "copy.part_sent",  # or the whole object of one block
    "offload.parts_sent",
    "offload.completed",
    "offload.strays_aborted",  # only where a create was sent twice
    "offload.index_put",
    "offload.abandoned",  # only where a copy failed
    "offload.upload_aborted",
    "verify.read_back",
    "verify.quarantined",  # only where the copy differs
    "verify.certified",
    "publish.quarantined",  # only where the copy is not the certified one any more
    "publish.outcome_won",
    "publish.context_set",
    "reload.recorded",
    "publish.unloaded",
    "publish.confirmed",
    "publish.recorded",
    "publish.canary_recorded",
    "undo.recorded",  # only where a publication or the marks of a release are taken back
    "publish.context_removed",  # only where the broker could not read what was published
    "publish.withdrawn",
    "offload.claim_dropped",
    "release.planned",
    "release.begun",
    "release.intended",
    "release.quarantined",  # only where the copy, read again, differs
    "release.marked",
    "release.unloaded",
    "release.rehearsed",
    "release.deleted",
    "release.recorded",
    "release.marks_removed",  # only where the rehearsal failed
    "release.unmarked",
    "hold.lift_recorded",
    "hold.lifted",
    "pause.lift_recorded",  # a change of its mode, too
    "pause.lifted",
    "sweep.abandoned",
    "sweep.aborted",
    "sweep.stray_aborted",
    "sweep.deleted",
    "sweep.recorded",
    "sweep.noted",  # only where a broker left something
    "sweep.intended",
    "sweep.taken_out",
    "sweep.reloaded",
    "scrub.quarantined",
    "scrub.recorded",
)

VARIABLE: Final = "TIERKEEPER_CRASH_AT"


class _Countdown:
    """The point that the environment names, and how often it is still passed alive."""

    def __init__(self, wanted: str) -> None:
        self.point, _, times = wanted.partition(":")
        self.left = int(times or 1)


_wanted = _Countdown(os.environ.get(VARIABLE, ""))


def reach(point: str) -> None:
    """Die here if this is the point, and the time, that the environment names."""
    if not _wanted.point:
        return
    if point not in POINTS:
        raise ValueError(f"unknown crash point {point!r}")
    if point == _wanted.point:
        _wanted.left -= 1
        if _wanted.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
