"""What keeps automation from tiering, for the page that people open first.

Owns: a count of the backlog says it in its first line; between two counts an observation does,
because nothing counts while automation is off.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import dagster as dg

from tiering_assets.automation.standing import OFF, daemon_problems, what_stands
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_sensors import sensor_states

SENSORS: Final = (
    "ledger_rollover",
    "offload_threshold",
    "release_due",
    "verify_due",
    "backlog_due",
    "coverage_due",
    "catalogue",
    "stuck",
    "retire_partitions",
    "run_failure",
)
_SENSOR_DAEMON: Final = "SENSOR"


def read_beat(instance: dg.DagsterInstance) -> datetime | None:
    """When the daemon that evaluates sensors last said that it lives; None for never."""
    beat = instance.get_daemon_heartbeats().get(_SENSOR_DAEMON)
    return None if beat is None else datetime.fromtimestamp(beat.timestamp, UTC)


def automation_note(
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    *,
    wanted: bool,
    now: datetime | None = None,
) -> str:
    """Why nothing, or not all, is asked for; empty where every sensor may ask.

    An instance in memory has neither daemon nor switches, so there only the settings count.
    """
    if not wanted:
        return OFF
    if instance.is_ephemeral:
        return ""
    ours = {cluster.named(name) for name in SENSORS}
    stopped = {one.name for one in sensor_states(instance) if one.name in ours and not one.running}
    daemon = daemon_problems(read_beat(instance), now or datetime.now(UTC))
    return what_stands(daemon, sorted(stopped))


def tell_automation(instance: dg.DagsterInstance, cluster: ClusterNames, said: str) -> None:
    """Say it at the backlog, as an observation of no run."""
    instance.report_runless_asset_event(
        dg.AssetObservation(
            cluster.tiering_backlog,
            description=said,
            metadata={"automation": dg.MetadataValue.md(first_line(said))},
        )
    )


def first_line(said: str) -> str:
    """As a page shows it: the sentence in bold."""
    return f"**{said[:1].upper()}{said[1:]}.**"
