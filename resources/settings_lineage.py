"""Settings of the events that tell others where data went. Pure values."""

from __future__ import annotations

from typing import Final

from pydantic.dataclasses import dataclass

from tiering_assets.resources import settings_kinds as kinds
from tiering_assets.resources.settings_kinds import CONFIG, DAY, setting

TICK_S: Final = 3.0  # of a tick's time, for all events together


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class OpenLineageSettings:
    url: str = setting(
        "",
        "address that OpenLineage events of posted runs are sent to, without /api/v1/lineage; empty "
        "sends none (docs/lineage.md)",
        kinds.URL_OR_NONE,
    )
    api_key: str = setting("", "bearer token for that address; empty sends none", secret=True)
    namespace: str = setting("tierkeeper", "namespace of the jobs in events", kinds.NAME)
    topics: str = setting(
        "",
        "namespace of topics in events, as other producers of events have it; empty means pulsar:// "
        "and dagster.cluster",
    )
    timeout_s: float = setting(
        2.0,
        "wait for one answer of that address",
        kinds.DURATION.upto(TICK_S, "a tick spends no more on all events"),
    )
    keep_s: float = setting(
        7 * DAY,
        "age at which an event that could not be sent is dropped and counted",
        kinds.AGE,
    )
