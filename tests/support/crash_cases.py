"""Every crash point with a scenario that reaches it.

Owns: no point is without a case; tests/unit/test_crash_cases.py holds that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.crash_scenarios import (
    broker_cannot_read,
    broker_failed,
    broker_failed_before,
    copy_differs,
    copy_fails,
    copy_replaced,
    create_lost,
    hold,
    pause,
    plain,
    plan,
    rehearsal_fails,
    release,
    scrub,
    scrub_of_a_brokers,
    sweep,
    sweep_stray,
    two_ledgers,
    withdrawn_differs,
)
from tests.support.crash_scene import Scene, Shop


@dataclass(frozen=True, slots=True)
class Case:
    """Die at this point (`name:2` is its second time) of this scenario."""

    at: str
    prepare: Callable[[Shop], Scene]

    @property
    def point(self) -> str:
        return self.at.partition(":")[0]

    @property
    def name(self) -> str:
        return f"{self.at} of {self.prepare.__name__}"


_POINTS: tuple[tuple[Callable[[Shop], Scene], str], ...] = (
    (
        plain,
        "offload.claimed offload.attempt_recorded offload.upload_created copy.part_sent "
        "copy.part_sent:2 offload.parts_sent offload.completed offload.index_put verify.read_back "
        "verify.certified publish.outcome_won publish.context_set reload.recorded "
        "publish.unloaded publish.confirmed publish.recorded publish.canary_recorded "
        "offload.claim_dropped",
    ),
    (
        two_ledgers,
        "day_book.opened offload.claimed:2 copy.part_sent:2 offload.index_put:2 publish.outcome_won:2 "
        "day_book.closed",
    ),
    (create_lost, "offload.strays_aborted"),
    (copy_fails, "offload.abandoned offload.upload_aborted"),
    (copy_differs, "verify.quarantined"),
    (withdrawn_differs, "release.quarantined"),
    (copy_replaced, "publish.quarantined"),
    (
        broker_cannot_read,
        "publish.unloaded undo.recorded publish.context_removed publish.withdrawn",
    ),
    (
        release,
        "release.begun release.intended release.intended:2 release.marked reload.recorded release.unloaded "
        "release.rehearsed release.deleted release.recorded release.recorded:2",
    ),
    (rehearsal_fails, "undo.recorded release.marks_removed release.unmarked"),
    (plan, "release.planned release.deleted"),
    (hold, "hold.lift_recorded day_book.gone_noted hold.lifted"),
    (pause, "pause.lift_recorded pause.lifted"),
    (sweep, "sweep.abandoned sweep.aborted:2 sweep.deleted sweep.deleted:2 sweep.recorded"),
    (broker_failed, "sweep.noted"),
    (
        broker_failed_before,
        "sweep.intended sweep.taken_out sweep.reloaded sweep.aborted sweep.deleted sweep.recorded",
    ),
    (sweep_stray, "sweep.stray_aborted"),
    (
        scrub,
        "scrub.quarantined scrub.recorded copy.part_sent:2 offload.index_put verify.certified "
        "publish.context_set publish.recorded",
    ),
    (scrub_of_a_brokers, "scrub.copy_recorded"),
)

CASES = tuple(Case(at, prepare) for prepare, points in _POINTS for at in points.split())
