"""What our processes do in the simulation: the real steps, as jobs and people start them.

Owns: which step an act runs, and that it is counted under its name only where it did something. A
plan that a person approves is made by one process and carried out by another, a while later.
"""

from __future__ import annotations

from tests.support.sim_clients import Process
from tiering_assets.automation.choices import due_ledgers
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.batch.release_batch import (
    ReleaseOutcome,
    release_batch,
)
from tiering_assets.batch.release_plan import execute_plan, make_plan
from tiering_assets.clean import clean_up
from tiering_assets.records.sweep_models import Swept
from tiering_assets.release.work import Released
from tiering_assets.retention.expired import execute_expired, plan_expired
from tiering_assets.retention.forget import execute_forget, plan_forget
from tiering_assets.scrub.heal import Healed
from tiering_assets.scrub.scrub import scrub


def sealed(process: Process) -> list[int]:
    """Ledgers that a sensor would have put into the run's config a moment ago."""
    return [i for ids in sealed_by_topic(process).values() for i in ids]


def sealed_by_topic(process: Process) -> dict[str, list[int]]:
    return {
        ml_name: [info.ledger_id for info in topic.ledgers if not info.is_open]
        for ml_name, topic in process.world.monitor.topics_of(process.site)
    }


def run_offload(process: Process) -> None:
    for outcome in offload_batch(process.stack(), sealed(process)):
        process.world.note(process.name, f"{outcome.ledger_id}: {outcome.state} {outcome.error}")


def run_copy(process: Process) -> None:
    """Copies and proves, and leaves the publication to a release's reload."""
    offload_batch(process.stack(), sealed(process), publish=False)


def run_release(process: Process) -> None:
    _tell(process, release_batch(process.stack(), sealed(process)).outcomes)


def run_release_along(process: Process) -> None:
    stack = process.stack()
    done = release_batch(stack, due_ledgers(stack), publish_waiting=True)
    _tell(process, done.outcomes)
    if done.along:
        process.world.faults.strike("published along with a release")


def _tell(process: Process, outcomes: list[ReleaseOutcome]) -> int:
    """How many ledgers were released just now."""
    for outcome in outcomes:
        process.world.note(process.name, f"{outcome.ledger_id}: {outcome.result}")
    return sum(isinstance(o.result, Released) and not o.result.noop for o in outcomes)


def run_sweep(process: Process) -> None:
    stack = process.stack()
    locked = sum(
        bool(stored.record.bytes_stay)
        for stored in process.quiet_book().iter_records(Swept, "sweeps/")
    )
    clean_up.clean_up(stack, execute=True)
    if locked:
        process.world.faults.strike("locked versions met again")


def run_scrub(process: Process) -> None:
    _scrub(process, deep=False)


def run_deep_scrub(process: Process) -> None:
    _scrub(process, deep=True)


def _scrub(process: Process, *, deep: bool) -> None:
    done = scrub(process.stack(), deep=deep)
    world = process.world
    if done.looked:
        world.faults.strike("scrub")
    for ledger_id, result in done.healed.items():
        world.note(process.name, f"{ledger_id}: {result}")
    if done.healed:
        world.faults.strike("heal tried")
    if any(isinstance(result, Healed) for result in done.healed.values()):
        world.faults.strike("healed")


# ----- plans that a person approves


def plan_release(process: Process) -> None:
    written = make_plan(process.stack(), sealed_by_topic(process))
    if written.plan.release:
        process.site.release_plan = written


def run_planned_release(process: Process) -> None:
    written = process.site.release_plan
    if written is None:
        return
    done = execute_plan(process.stack(), written, publish_waiting=True)
    if done.along:
        process.world.faults.strike("published along with a release")
    for _ledger in range(_tell(process, done.outcomes)):
        process.world.faults.strike("released by an approved plan")


def plan_expiry(process: Process) -> None:
    plan, _found = plan_expired(process.stack())
    if plan is not None:
        process.site.plans["expired"] = plan.digest


def run_expiry(process: Process) -> None:
    digest = process.site.plans.get("expired")
    if digest is None:
        return
    process.world.monitor.approve(process.site, digest)
    if any(one.done is not None for one in execute_expired(process.stack(), digest)):
        process.world.faults.strike("expired copies deleted")


def plan_forgetting(process: Process) -> None:
    plan, _found = plan_forget(process.stack())
    if plan is not None:
        process.site.plans["forget"] = plan.digest


def run_forgetting(process: Process) -> None:
    digest = process.site.plans.get("forget")
    if digest is None:
        return
    process.world.monitor.approve(process.site, digest)
    if any(one.deleted for one in execute_forget(process.stack(), digest)):
        process.world.faults.strike("records forgotten")
