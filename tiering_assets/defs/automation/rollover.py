"""`ledger_rollover`: ledgers that their topics have closed since the last look, told as one
observation a tick.

Owns: a view for people and for the time line of `sealed_ledgers`; what is offloaded is decided from
the topics' nodes by `offload_threshold`, which misses nothing when this sensor does. A ledger is
new when it was closed after the last whole round began, less OVERLAP because brokers' clocks
differ; those told within the overlap are remembered. The first round tells of none: it is the
backlog.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.automation.nominated import nominating
from tiering_assets.defs.automation.tick import EVENTS_MAX, Result, Tick
from tiering_assets.defs.shared.metadata import bytes_text
from tiering_assets.defs.shared.names import ClusterNames

if TYPE_CHECKING:
    from tiering_assets.catalogue.nominate import ClosedLedger
    from tiering_assets.catalogue.view import Tables
    from tiering_assets.look.topic.user_topics import Topic
    from tiering_assets.resources.metastore.ledger_info import LedgerInfo

OVERLAP_MS = 120_000
_TOLD_MAX = 5000
_SHOWN_MAX = 50  # ledgers of an observation
_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("ledger", "string"),
        dg.TableColumn("topic", "string"),
        dg.TableColumn("entries", "int"),
        dg.TableColumn("size", "string", "of the ledger's payload"),
        dg.TableColumn("closed_at", "string"),
    ]
)


def ledger_rollover(tick: Tick) -> Result:
    """Tell of newly closed ledgers, two hundred a tick: as rows come, else by topic names."""
    tables = nominating(tick)
    return _by_topics(tick) if tables is None else _by_rows(tick, tables)


def _by_rows(tick: Tick, tables: Tables) -> Result:
    """Rows behind those that were told. They come late: what was closed long ago is not told."""
    from tiering_assets.catalogue.nominate import STALE, closed_since

    now_ms = int(tick.now.timestamp() * 1000)
    first = "turn" not in tick.cursor.values
    began_ms = int(tick.cursor.number("began_ms", now_ms))
    told = tick.cursor.numbers("told")
    newest = tables["ledger_changes"].turn
    since_ms = max(began_ms - OVERLAP_MS, now_ms - int(STALE.total_seconds() * 1000))
    found = closed_since(
        tables,
        since=datetime.fromtimestamp(since_ms / 1000, UTC),
        behind=newest if first else int(tick.cursor.number("turn")),
        told=told,
        most=EVENTS_MAX,
    )
    return dg.SensorResult(
        asset_events=[_observation(tick.cluster, found)] if found else [],
        skip_reason=None if found else dg.SkipReason(f"no ledger closed up to turn {newest}"),
        cursor=tick.write_cursor(
            began_ms=began_ms,
            turn=int(tick.cursor.number("turn")) if len(found) == EVENTS_MAX else newest,
            told=[*told, *(one.ledger_id for one in found)][-_TOLD_MAX:],
        ),
    )


def _by_topics(tick: Tick) -> Result:
    from tiering_assets.automation.rounds import walk

    now_ms = int(tick.now.timestamp() * 1000)
    since = tick.cursor.number("since_ms") or now_ms
    began = tick.cursor.number("began_ms") or now_ms
    told = dict(zip(tick.cursor.numbers("told"), tick.cursor.numbers("told_ms"), strict=False))

    def look(topic: Topic) -> list[ClosedLedger]:
        return [
            _closed(topic, one, one.closed_at)
            for one in topic.info.ledgers
            if one.closed_at is not None
            and (one.closed_at_ms or 0) > since - OVERLAP_MS
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
    told.update({one.ledger_id: int(one.closed_at.timestamp() * 1000) for one in found})
    first = "since_ms" not in tick.cursor.values
    events = [_observation(tick.cluster, found)] if found and not first else []
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


def _closed(topic: Topic, listed: LedgerInfo, closed_at: datetime) -> ClosedLedger:
    from tiering_assets.catalogue.nominate import ClosedLedger

    return ClosedLedger(
        ledger_id=listed.ledger_id,
        topic=topic.ml_name,
        entries=listed.entries,
        bytes=listed.size,
        closed_at=closed_at,
    )


def _observation(cluster: ClusterNames, found: Sequence[ClosedLedger]) -> dg.AssetObservation:
    """One of all ledgers of a tick, so that a ledger costs no event; the table has some."""
    from tiering_assets.look.topic.topic_evidence import topic_of

    rows = [
        dg.TableRecord(
            {
                "ledger": str(one.ledger_id),
                "topic": topic_of(one.topic),
                "entries": one.entries or 0,
                "size": bytes_text(one.bytes or 0),
                "closed_at": one.closed_at.isoformat(timespec="seconds"),
            }
        )
        for one in found[:_SHOWN_MAX]
    ]
    topics = len({one.topic for one in found})
    return dg.AssetObservation(
        cluster.sealed_ledgers,
        description=f"{len(found)} ledgers of {topics} topics were closed",
        metadata={
            "closed_ledgers": len(found),
            "payload_bytes": sum(one.bytes or 0 for one in found),
            "ledgers": dg.MetadataValue.table(rows, _COLUMNS),
        },
    )
