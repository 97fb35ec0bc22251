"""What Dagster's list of runs says of the ledgers that runs of one job were given.

Owns: counting tries and naming batches. It is a view: when DAGSTER_HOME is lost, ledgers are tried
again at once, and the run keys that would forbid it are lost with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from tiering_assets.defs.shared.metadata import topic_text
from tiering_assets.defs.shared.names import CLUSTER_TAG, ClusterNames
from tiering_assets.policy.admission_rules import Batch, History

if TYPE_CHECKING:
    from tiering_assets.records.bucket_models import RunBatch
    from tiering_assets.records.stored import Stored

JOB_TAG = "tierkeeper/job"
RELEASE_TAG = "tierkeeper/release"  # the cluster: dagster.yaml lets one release of each run
BATCH_TAG = ".dagster/tierkeeper_batch"  # a digest: Dagster's pages do not show what begins so
OLD_BATCH_TAG = "tierkeeper/batch"  # runs of before have it under this name
SENSOR_TAG = "tierkeeper/sensor"
TOPIC_TAG = "tierkeeper/topic"  # of a run of one topic: its name without the scheme
TOPICS_TAG = "tierkeeper/topics"  # of a run of several: how many
_RUNS_MAX = 1000
Batches = Callable[[str, str], Iterable[int]]  # by the key and digest of their records
FINISHED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]
UNFINISHED = [status for status in dg.DagsterRunStatus if status not in FINISHED]


def read_history(
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    job: str,
    *,
    now: datetime,
    horizon: timedelta,
    batches: Batches,
) -> History:
    """Unfinished runs of a job, and those that began within the horizon: the newest thousand
    each. `batches` says which ledgers a large run was given.
    """
    running: set[int] = set()
    found = our_records(instance, cluster, job, statuses=UNFINISHED)
    unfinished = [record.dagster_run for record in found]
    for run in unfinished:
        running.update(ledger_ids_of(run.run_config, batches))
    tries: Counter[int] = Counter()
    ended_at: dict[int, datetime] = {}
    for record in our_records(instance, cluster, job, created_after=now - horizon):
        if record.dagster_run.status in UNFINISHED:
            continue
        ended = record.create_timestamp
        if record.end_time is not None:
            ended = datetime.fromtimestamp(record.end_time, UTC)
        for ledger_id in ledger_ids_of(record.dagster_run.run_config, batches):
            tries[ledger_id] += 1
            ended_at[ledger_id] = max(ended, ended_at.get(ledger_id, ended))
    return History(
        running=frozenset(running),
        unfinished_runs=len(unfinished),
        queued_runs=sum(run.status is dg.DagsterRunStatus.QUEUED for run in unfinished),
        tries=tries,
        ended_at=ended_at,
    )


def our_records(
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    job: str,
    *,
    statuses: Sequence[dg.DagsterRunStatus] = (),
    created_after: datetime | None = None,
    limit: int = _RUNS_MAX,
) -> list[dg.RunRecord]:
    """Runs of a job of this cluster, newest first; ledger ids and jobs' names repeat in others.

    Runs of before there was a tag count as the first cluster's.
    """

    def ask(tags: Mapping[str, str]) -> Sequence[dg.RunRecord]:
        wanted = dg.RunsFilter(
            job_name=job, statuses=statuses, created_after=created_after, tags=tags
        )
        return instance.get_run_records(wanted, limit=limit)

    found = [*ask({CLUSTER_TAG: cluster.name})]
    if cluster.is_first:
        found += [one for one in ask({}) if CLUSTER_TAG not in one.dagster_run.tags]
    return sorted(found, key=lambda one: one.create_timestamp, reverse=True)[:limit]


def topic_tags(topics: Collection[str]) -> dict[str, str]:
    """Of a run about these topics, given by their names as people know them."""
    names = {name.removeprefix("persistent://") for name in topics}
    if len(names) == 1:
        return {TOPIC_TAG: names.pop()}
    return {TOPICS_TAG: str(len(names))} if names else {}


def batch_of(run: dg.DagsterRun) -> str | None:
    """The name of the batch that a run was asked for; None of any other run."""
    return run.tags.get(BATCH_TAG) or run.tags.get(OLD_BATCH_TAG)


def count_of_batch(instance: dg.DagsterInstance, name: str) -> int:
    """How many runs there are of a batch of this name."""
    return sum(
        instance.get_runs_count(dg.RunsFilter(tags={tag: name}))
        for tag in (BATCH_TAG, OLD_BATCH_TAG)
    )


def is_ours(cluster: ClusterNames, run: dg.DagsterRun) -> bool:
    """Whether a run is one of our jobs for this cluster. Other people's pipelines have no such
    tag.
    """
    named = run.tags.get(CLUSTER_TAG)
    return named == cluster.name or (named is None and cluster.is_first and JOB_TAG in run.tags)


def ledger_ids_of(run_config: Mapping[str, Any], batches: Batches) -> Iterable[int]:
    """Ids that a run was given; none of a config that is no batch's."""
    ops = run_config.get("ops")
    if not isinstance(ops, Mapping):
        return
    for op in ops.values():
        config = op.get("config") if isinstance(op, Mapping) else None
        if not isinstance(config, Mapping):
            continue
        ids = config.get("ledger_ids")
        if isinstance(ids, list):
            yield from (i for i in ids if isinstance(i, int))
        if config.get("batch_key"):
            yield from batches(str(config["batch_key"]), str(config.get("batch_sha256")))


def request_of(
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    batch: Batch,
    *,
    job: str,
    op: str,
    sensor: str,
    config: Mapping[str, Any],
    written: Stored[RunBatch] | None = None,
) -> dg.RunRequest:
    """A run for one batch, ids in its config and no partition tag. Its key counts earlier tries.

    A run key can be used once for ever, so a second run of the same ledgers needs another. The ids
    of a large batch are `written` down, and its config names the record.
    """
    ids: dict[str, Any] = (
        {"ledger_ids": list(batch.ledger_ids)}
        if written is None
        else {"batch_key": written.key, "batch_sha256": written.sha256}
    )
    name = f"{cluster.named(sensor)}-{batch.name}"
    earlier = count_of_batch(instance, name)
    return dg.RunRequest(
        run_key=f"{name}-{earlier}",
        job_name=job,
        run_config={"ops": {op: {"config": {**ids, **config}}}},
        tags={
            BATCH_TAG: name,
            SENSOR_TAG: sensor,
            "tierkeeper/ledgers": str(len(batch.ledgers)),
            "tierkeeper/bytes": str(batch.bytes),
            **topic_tags({topic_text(one.ml_name) for one in batch.ledgers}),
        },
    )
