"""Store hundreds of events of no run in one transaction, by Dagster's private names for its
storage.

Reported one by one they take SQLite five milliseconds each, and a fleet minutes:
docs/decisions/0015 has the figures, and which tests fail when Dagster's tables change. Only
rebuild.py writes so: that is why the storage's own libraries (SQLAlchemy, Alembic) are imported
here and not wherever definitions are loaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import dagster as dg
from dagster import AssetCheckEvaluation
from dagster._core.instance.utils import RUNLESS_RUN_ID
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    SqlEventLogStorageTable,
)


def store_entries(instance: dg.DagsterInstance, entries: Iterable[dg.EventLogEntry]) -> None:
    """Store events of no run, all or none where the storage is SQLite.

    A check's evaluation of no run can be stored once for a partition, ever.
    """
    storage = instance.event_log_storage
    found = list(entries)
    if not found:
        return
    if isinstance(storage, SqliteEventLogStorage):
        _store_in_bulk(storage, found)
        return
    by_asset: dict[dg.AssetKey, list[dg.EventLogEntry]] = defaultdict(list)
    for entry in found:
        if entry.dagster_event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            by_asset[_asset_of(entry)].append(entry)
    for one_asset in by_asset.values():  # a batch updates the summary of one asset only
        storage.store_event_batch(one_asset)
    for entry in found:
        if entry.dagster_event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            storage.store_event(entry)


def _store_in_bulk(storage: SqliteEventLogStorage, entries: Sequence[dg.EventLogEntry]) -> None:
    """The rows that store_event writes, in two statements and two commits for all of them.

    One by one it is six connections and four commits an event. The run's own shard is written
    first: what only that one has is in no query of ours.
    """
    rows = [storage._event_to_row(entry) for entry in entries]
    with storage.run_connection(RUNLESS_RUN_ID) as runless:
        runless.execute(SqlEventLogStorageTable.insert(), rows)
    with storage.index_connection() as index:
        index.exec_driver_sql("BEGIN IMMEDIATE")  # nobody else may take the ids that follow
        last_id = index.exec_driver_sql("SELECT max(id) FROM event_logs").scalar() or 0
        ids = range(last_id + 1, last_id + 1 + len(rows))
        index.execute(
            SqlEventLogStorageTable.insert(),
            [{**row, "id": i} for i, row in zip(ids, rows, strict=True)],
        )
        newest: dict[dg.AssetKey, tuple[dg.EventLogEntry, int]] = {}
        evaluations: list[dict[str, object]] = []
        for entry, row, i in zip(entries, rows, ids, strict=True):
            if entry.dagster_event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
                newest[_asset_of(entry)] = (entry, i)
            else:
                evaluations.append(_check_row(entry, row, i))
        for entry, i in newest.values():
            storage._store_asset_event(index, entry, i)
        if evaluations:
            index.execute(AssetCheckExecutionsTable.insert(), evaluations)


def _check_row(
    entry: dg.EventLogEntry, row: Mapping[str, object], event_id: int
) -> dict[str, object]:
    evaluation = entry.get_dagster_event().event_specific_data
    if not isinstance(evaluation, AssetCheckEvaluation):
        raise TypeError(f"neither a materialization nor an evaluation: {entry.dagster_event_type}")
    target = evaluation.target_materialization_data
    status = (
        AssetCheckExecutionRecordStatus.SUCCEEDED
        if evaluation.passed
        else AssetCheckExecutionRecordStatus.FAILED
    )
    return {
        "asset_key": evaluation.asset_key.to_string(),
        "check_name": evaluation.check_name,
        "partition": evaluation.partition,
        "run_id": entry.run_id,
        "execution_status": status.value,
        "evaluation_event": row["event"],
        "evaluation_event_timestamp": row["timestamp"],
        "evaluation_event_storage_id": event_id,
        "materialization_event_storage_id": None if target is None else target.storage_id,
    }


def _asset_of(entry: dg.EventLogEntry) -> dg.AssetKey:
    key = entry.get_dagster_event().asset_key
    if key is None:
        raise TypeError(f"an event of no asset: {entry.dagster_event_type}")
    return key
