"""Everything Dagster loads, merged; nothing is defined here.

Owns: the settings are read here, once, when definitions are loaded, and handed on as values.
"""

from __future__ import annotations

import dagster as dg

from tiering_assets.defs.automation.all import define_sensors
from tiering_assets.defs.automation.memory import SensorMemory
from tiering_assets.defs.jobs import define_jobs
from tiering_assets.defs.lineage import define_assets
from tiering_assets.defs.pause_job import define_pause_tiering
from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.resources import TieringStack
from tiering_assets.defs.verify_checks import define_verify_ledgers
from tiering_assets.resources.garbage import freeze_once
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import load_settings


def build_definitions(settings: Settings, stack: TieringStack | None = None) -> dg.Definitions:
    """All of one cluster; a process may build those of several.

    Args:
        settings: what names and presents the cluster, how often its sensors tick, and whether they
            do before anybody switches them. A run reads the settings again, and refuses those of
            another cluster.
        stack: through which runs and ticks reach the cluster, where their settings are in a file
            that is not this process's own.
    """
    dressing = Dressing.of(settings.dagster, console_url=settings.store.console_url)
    cluster = dressing.cluster
    jobs = define_jobs(cluster)
    return dg.Definitions(
        assets=define_assets(dressing, fresh_s=settings.objectives.fresh_s),
        asset_checks=[define_verify_ledgers(cluster)],
        jobs=[*jobs, define_pause_tiering(cluster)],
        sensors=define_sensors(SensorMemory(cluster), jobs, settings.auto),
        resources={"tiering_stack": stack or TieringStack()},
        # A step of a process of its own costs five CPU seconds; Spark brings the parallelism.
        executor=dg.in_process_executor,
    )


defs = build_definitions(load_settings().settings)
freeze_once("definitions")
