"""Everything Dagster loads, merged; nothing is defined here."""

from __future__ import annotations

import dagster as dg

from resources.garbage import freeze_once
from tiering_assets.defs.automation.all import SENSORS
from tiering_assets.defs.jobs import JOBS
from tiering_assets.defs.lineage import ASSETS
from tiering_assets.defs.pause_job import pause_tiering
from tiering_assets.defs.shared.resources import TieringStack
from tiering_assets.defs.verify_checks import verify_ledgers

defs = dg.Definitions(
    assets=ASSETS,
    asset_checks=[verify_ledgers],
    jobs=[*JOBS, pause_tiering],
    sensors=SENSORS,
    resources={"tiering_stack": TieringStack()},
    # A step of a process of its own costs five CPU seconds; Spark brings the parallelism.
    executor=dg.in_process_executor,
)
freeze_once("definitions")
