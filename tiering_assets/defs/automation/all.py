"""The sensors, with their names and what people read about them."""

from __future__ import annotations

import dagster as dg

from resources.settings_sources import load_settings
from tiering_assets.defs.automation.periodic import backlog_due, verify_due
from tiering_assets.defs.automation.retire import retire_partitions
from tiering_assets.defs.automation.rollover import ledger_rollover
from tiering_assets.defs.automation.run_failure import run_failure_sensor
from tiering_assets.defs.automation.stuck import stuck
from tiering_assets.defs.automation.threshold import offload_threshold, release_due
from tiering_assets.defs.automation.tick import automatic
from tiering_assets.defs.jobs import JOBS

_INTERVAL_S = load_settings().settings.auto.interval_s
_MINUTES_5 = 300.0

SENSORS: list[dg.SensorDefinition] = [
    automatic(
        "ledger_rollover",
        wakes=True,
        interval_s=_INTERVAL_S,
        description="Tells of ledgers that topics have closed, as observations of sealed_ledgers.",
    )(ledger_rollover),
    automatic(
        "offload_threshold",
        wakes=True,
        job="offload",
        interval_s=_INTERVAL_S,
        description=(
            "Asks for offload runs of ledgers above their topic's size or time threshold, and of "
            "proven copies that wait long enough to be published."
        ),
    )(offload_threshold),
    automatic(
        "release_due",
        job="release",
        interval_s=_INTERVAL_S,
        description="Asks for release runs of published ledgers whose deletion lag has passed.",
    )(release_due),
    automatic(
        "verify_due",
        job="scrub",
        interval_s=_INTERVAL_S,
        description="Asks for a scrub run every auto.scrub_every_s; it reads again what is due.",
    )(verify_due),
    automatic(
        "backlog_due",
        job="discover",
        interval_s=_INTERVAL_S,
        description="Asks for a count of the backlog every auto.discover_every_s.",
    )(backlog_due),
    automatic(
        "stuck",
        interval_s=max(_INTERVAL_S, _MINUTES_5),
        description=(
            "Tells of dead claims, ledgers open for too long and topics past their retention that "
            "nobody has loaded, and posts new ones to auto.webhook_url."
        ),
    )(stuck),
    automatic(
        "retire_partitions",
        interval_s=max(_INTERVAL_S, _MINUTES_5),
        description="Takes the partitions of ledgers away that were released long enough ago.",
    )(retire_partitions),
    run_failure_sensor(JOBS),
]
