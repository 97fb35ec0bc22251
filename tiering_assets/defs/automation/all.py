"""The sensors, with their names and what people read about them."""

from __future__ import annotations

from functools import partial

import dagster as dg

from tiering_assets.defs.automation.catalogue import catalogue
from tiering_assets.defs.automation.memory import SensorMemory
from tiering_assets.defs.automation.periodic import backlog_due, coverage_due, verify_due
from tiering_assets.defs.automation.retire import retire_partitions
from tiering_assets.defs.automation.rollover import ledger_rollover
from tiering_assets.defs.automation.run_failure import run_failure_sensor
from tiering_assets.defs.automation.stuck import stuck
from tiering_assets.defs.automation.threshold import offload_threshold, release_due
from tiering_assets.defs.automation.tick import automatic
from tiering_assets.defs.jobs import define_jobs
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_api import AssetJob
from tiering_assets.resources.settings import AutoSettings, Settings

_MINUTES_5 = 300.0


def sensors_of(settings: Settings) -> list[dg.SensorDefinition]:
    """For who only wants to know what there is."""
    cluster = ClusterNames.of(settings.dagster)
    return define_sensors(SensorMemory(cluster), define_jobs(cluster), settings.auto)


def define_sensors(
    memory: SensorMemory, jobs: list[AssetJob], auto: AutoSettings
) -> list[dg.SensorDefinition]:
    """Every sensor of a cluster; `jobs` are those that they ask for runs of."""
    named, interval_s = {job.name: job for job in jobs}, auto.interval_s
    sensor = partial(automatic, memory, on=auto.enabled)
    return [
        sensor(
            "ledger_rollover",
            wakes=True,
            interval_s=interval_s,
            description="Tells of ledgers that topics have closed, as observations of sealed_ledgers.",
        )(ledger_rollover),
        sensor(
            "offload_threshold",
            wakes=True,
            job=named["offload"],
            interval_s=interval_s,
            description=(
                "Asks for offload runs of ledgers above their topic's size or time threshold, and of "
                "proven copies that wait long enough to be published."
            ),
        )(offload_threshold),
        sensor(
            "release_due",
            job=named["release"],
            interval_s=interval_s,
            description="Asks for release runs of published ledgers whose deletion lag has passed.",
        )(release_due),
        sensor(
            "verify_due",
            job=named["scrub"],
            interval_s=interval_s,
            description="Asks for a scrub run every auto.scrub_every_s; it reads again what is due.",
        )(verify_due),
        sensor(
            "backlog_due",
            job=named["discover"],
            interval_s=interval_s,
            description="Asks for a count of the backlog every auto.discover_every_s.",
        )(backlog_due),
        sensor(
            "coverage_due",
            job=named["coverage"],
            interval_s=max(interval_s, _MINUTES_5),
            description=(
                "Asks for a coverage run every auto.scrub_every_s, once the catalogue is proven: "
                "what topics list has blocks without a gap."
            ),
        )(coverage_due),
        sensor(
            "catalogue",
            interval_s=interval_s,
            description=(
                "Puts what runs wrote and what topics list into the catalogue's tables. "
                "Nothing waits for it."
            ),
        )(catalogue),
        sensor(
            "stuck",
            interval_s=max(interval_s, _MINUTES_5),
            description=(
                "Tells of dead claims, ledgers open for too long and topics past their retention that "
                "nobody has loaded, and posts new ones to auto.webhook_url."
            ),
        )(stuck),
        sensor(
            "retire_partitions",
            interval_s=max(interval_s, _MINUTES_5),
            description="Takes the partitions of ledgers away that were released long enough ago.",
        )(retire_partitions),
        run_failure_sensor(memory.cluster, jobs, on=auto.enabled),
    ]
