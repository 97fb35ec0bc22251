"""`backlog_due`, `verify_due` and `coverage_due`: runs that look at everything, every so often.

Which ledgers a scrub reads again, and how much, is decided in the run by their age and the budgets
of [scrub]; a count of the backlog has no choice to make. So here only the clock decides.
"""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from tiering_assets.defs.automation.nominated import nominating
from tiering_assets.defs.automation.tick import Result, Tick
from tiering_assets.defs.shared.run_history import SENSOR_TAG, our_records


def backlog_due(tick: Tick) -> Result:
    """Count the backlog again after auto.discover_every_s."""
    return _every(tick, "backlog_due", "discover", tick.auto.discover_every_s)


def verify_due(tick: Tick) -> Result:
    """Look at published and released copies again after auto.scrub_every_s."""
    return _every(tick, "verify_due", "scrub", tick.auto.scrub_every_s)


def coverage_due(tick: Tick) -> Result:
    """Compare blocks with topics' lists as often as copies are looked at again."""
    if nominating(tick) is None:
        return dg.SkipReason("the catalogue is off, or nobody has proven it yet")
    return _every(tick, "coverage_due", "coverage", tick.auto.scrub_every_s)


def _every(tick: Tick, sensor: str, job: str, seconds: float) -> Result:
    newest = our_records(tick.instance, tick.cluster, job, limit=1)
    if newest:
        [record] = newest
        if not record.dagster_run.is_finished:
            return dg.SkipReason(f"{job} run {record.dagster_run.run_id} is unfinished")
        began = record.create_timestamp.replace(tzinfo=UTC)
        age = (datetime.now(UTC) - began).total_seconds()
        if age < seconds:
            return dg.SkipReason(
                f"the last {job} run began {age:.0f} s ago, the next at {seconds:.0f} s"
            )
    return dg.SensorResult(run_requests=[dg.RunRequest(job_name=job, tags={SENSOR_TAG: sensor})])
