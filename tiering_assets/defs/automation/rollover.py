"""`ledger_rollover`: ledgers that their topics have closed since the last look, told as
observations.

Owns: a view for people and for the time line of `sealed_ledgers`; what is offloaded is decided from
the topics' nodes by `offload_threshold`, which misses nothing when this sensor does. A ledger is
new when it was closed after the last whole round began, less OVERLAP because brokers' clocks
differ; those told within the overlap are remembered. The first round tells of none: it is the
backlog.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.automation.tick import EVENTS_MAX, Result, Tick
from tiering_assets.defs.shared.names import ClusterNames

if TYPE_CHECKING:
    from tiering_assets.look.topic.user_topics import Topic
    from tiering_assets.resources.metastore.ledger_info import LedgerInfo

OVERLAP_MS = 120_000
_TOLD_MAX = 5000


def ledger_rollover(tick: Tick) -> Result:
    """Tell of newly closed ledgers, oldest topic names first, two hundred a tick."""
    from tiering_assets.automation.rounds import walk

    now_ms = int(tick.now.timestamp() * 1000)
    since = tick.cursor.number("since_ms") or now_ms
    began = tick.cursor.number("began_ms") or now_ms
    told = dict(zip(tick.cursor.numbers("told"), tick.cursor.numbers("told_ms"), strict=False))

    def look(topic: Topic) -> list[tuple[Topic, LedgerInfo]]:
        return [
            (topic, one)
            for one in topic.info.ledgers
            if one.closed_at_ms is not None
            and one.closed_at_ms > since - OVERLAP_MS
            and one.ledger_id not in told
        ]

    looked = walk(
        tick.stack,
        look,
        after=tick.cursor.text("after"),
        seconds=tick.auto.tick_budget_s,
        room=EVENTS_MAX,
    )
    looked.require_any()
    found, left = looked.found[:EVENTS_MAX], looked.found[EVENTS_MAX:]
    told.update({one.ledger_id: one.closed_at_ms or 0 for _topic, one in found})
    first = "since_ms" not in tick.cursor.values
    events = [] if first else [_observation(tick.cluster, topic, one) for topic, one in found]
    whole = looked.resume is None and not left
    tick.looked.names, tick.looked.whole = looked.names, whole
    since = began if whole else since
    kept = {i: ms for i, ms in told.items() if ms > since - OVERLAP_MS}
    newest = sorted(kept, key=lambda i: kept[i])[-_TOLD_MAX:]
    return dg.SensorResult(
        asset_events=events,
        skip_reason=None if events else dg.SkipReason(f"{looked.topics} topics, no ledger closed"),
        cursor=tick.write_cursor(
            after=tick.cursor.text("after") if left else looked.resume,
            since_ms=since,
            began_ms=None if whole else began,
            told=newest,
            told_ms=[kept[i] for i in newest],
        ),
    )


def _observation(cluster: ClusterNames, topic: Topic, listed: LedgerInfo) -> dg.AssetObservation:
    from tiering_assets.look.topic.topic_evidence import topic_of

    name = topic_of(topic.ml_name)
    return dg.AssetObservation(
        cluster.sealed_ledgers,
        description=f"ledger {listed.ledger_id} of {name} was closed",
        metadata={
            "ledger_id": listed.ledger_id,
            "topic": name,
            "payload_bytes": listed.size or 0,
            "entries": listed.entries or 0,
            "closed_at": dg.MetadataValue.timestamp(
                datetime.fromtimestamp((listed.closed_at_ms or 0) / 1000, UTC)
            ),
        },
    )
