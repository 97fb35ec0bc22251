"""Dagster's partitions, materializations and evaluations again, from the bucket and both trees.

The event log is a view: with DAGSTER_HOME nothing is lost that the records do not prove. Owns: a
rebuilt event is the one that a job tells when it finds its work done (ledger_events.py), with
`rebuilt` in its metadata and the record's own time; and a partition keeps what it has of an asset
or a check, so that a second run adds nothing. The roll-ups are left to the next `discover`.

Refused: an instance with unfinished runs, which are telling the same events.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import dagster as dg

from tiering_assets.batch.recorded import (
    WORKERS,
    Proven,
    Recorded,
    RecordedFleet,
    find_recorded,
    read_proofs,
)
from tiering_assets.batch.release_batch import ReleaseRecords
from tiering_assets.defs.rebuild_days import restore_days
from tiering_assets.defs.shared.checks import finding, naming, release_evaluation
from tiering_assets.defs.shared.ledger_events import (
    certificate_event,
    certified_evaluation,
    context_event,
    index_event,
    object_event,
    release_event,
    release_metadata,
    sealed_event,
)
from tiering_assets.defs.shared.names import ClusterNames, check_partition_by
from tiering_assets.defs.shared.partitions import ledger_id_of, partition_key
from tiering_assets.defs.shared.preview_api import (
    Evaluation,
    evaluation_entry,
    judged_partitions,
    runless_entry,
    runless_target,
    target_of,
    told_partitions,
)
from tiering_assets.defs.shared.preview_store import store_entries
from tiering_assets.defs.shared.run_history import UNFINISHED, is_ours
from tiering_assets.ground.stack import Stack
from tiering_assets.resources.errors import FormatError, RefusedError, SettingsError

REBUILT = {"rebuilt": dg.MetadataValue.bool(True)}
_CHUNK = 250  # ledgers whose certificates are in memory, and events of one transaction
# How verify.py begins what it says of a suite; any other quarantine is a finding of the read-back.
_BY_SUITE = re.compile(r"ledger \d+: expectation suite ")

Told = dict[dg.AssetKey | dg.AssetCheckKey, set[str]]
Timed = tuple[datetime, dg.AssetMaterialization | Evaluation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was restored, or would be. `left_out` ledgers found no partition free.

    `partitions_removed` are keys that no asset has any more: those of ledgers where partitions are
    days, and keys as they once were. `untried` and `retired` ledgers need none. `materializations`
    and `evaluations` count events by the name of the asset or check; a plan counts a failed check
    as read_back_equal.
    """

    ledgers: int
    partitions_added: int
    partitions_removed: int
    left_out: int
    untried: int
    retired: int
    materializations: Mapping[str, int]
    evaluations: Mapping[str, int]
    unreadable: Mapping[int, FormatError] = field(default_factory=dict)


def rebuild(
    stack: Stack,
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    *,
    dry_run: bool = False,
    force: bool = False,
    workers: int = WORKERS,
) -> Rebuilt:
    """Add what the instance lacks of every ledger that records speak of; resumable at any point.

    Args:
        stack: whose metadata trees and records are read, and nothing is changed of them.
        instance: gets partitions, materializations and evaluations.
        cluster: whose definitions Dagster has loaded.
        dry_run: only count what would be added.
        force: although runs are unfinished. Those of a killed daemon never end by themselves.
        workers: records read at a time.

    Raises:
        SettingsError: the settings are another cluster's than the definitions'.
        RefusedError: runs are unfinished.
    """
    _check(stack, instance, cluster, force=force)
    stack.narrate("looking at both metadata trees and the records")
    days = cluster.by_day
    fleet = find_recorded(
        stack, retired_after_s=None if days else stack.settings.auto.retire_after_s
    )
    keys = set(instance.get_dynamic_partitions(cluster.partition_set))
    live = set() if days else {key for key in keys if key == partition_key(ledger_id_of(key))}
    told = _read_told(instance, cluster)
    counts: Counter[dg.AssetKey | dg.AssetCheckKey] = Counter()
    unreadable: dict[int, FormatError] = {}
    chosen: Sequence[Recorded] = fleet.ledgers
    fresh: list[int] = []
    if not dry_run:
        for key in sorted(keys - live):
            instance.delete_dynamic_partition(cluster.partition_set, key)
    if days:
        counts += restore_days(stack, instance, cluster, chosen, told, dry_run=dry_run)
    else:
        chosen = _choose(fleet, live, live_max=stack.settings.dagster.partitions_max)
        fresh = [one.view.ledger_id for one in chosen if _key(one) not in live]
        lacking = [one for one in chosen if _missing(cluster, one, told)]
        stack.narrate(
            f"{len(fleet.ledgers)} ledgers have records; {len(fresh)} lack their partition, "
            f"{len(lacking)} lack events"
        )
        if dry_run:
            counts.update(name for one in lacking for name in _missing(cluster, one, told))
        else:
            instance.add_dynamic_partitions(cluster.partition_set, list(map(partition_key, fresh)))
            counts += _restore_all(
                stack, instance, cluster, fleet, lacking, told, unreadable, workers
            )
    return Rebuilt(
        ledgers=len(chosen),
        partitions_added=len(fresh),
        partitions_removed=len(keys - live),
        left_out=len(fleet.ledgers) - len(chosen),
        untried=fleet.untried,
        retired=fleet.retired,
        materializations={
            name.path[-1]: n for name, n in counts.items() if isinstance(name, dg.AssetKey)
        },
        evaluations={
            name.name: n for name, n in counts.items() if isinstance(name, dg.AssetCheckKey)
        },
        unreadable=unreadable,
    )


def _restore_all(
    stack: Stack,
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    fleet: RecordedFleet,
    lacking: Sequence[Recorded],
    told: Told,
    unreadable: dict[int, FormatError],
    workers: int,
) -> Counter[dg.AssetKey | dg.AssetCheckKey]:
    counts: Counter[dg.AssetKey | dg.AssetCheckKey] = Counter()
    for begin in range(0, len(lacking), _CHUNK):
        chunk = lacking[begin : begin + _CHUNK]
        counts += _restore(stack, instance, cluster, fleet, chunk, told, unreadable, workers)
        stack.narrate(f"{begin + len(chunk)} of {len(lacking)} ledgers, {counts.total()} events")
    return counts


def _check(
    stack: Stack, instance: dg.DagsterInstance, cluster: ClusterNames, *, force: bool
) -> None:
    named = stack.settings.dagster.cluster
    if named != cluster.name:
        raise SettingsError(
            f"dagster.cluster is {named!r}, but the definitions were loaded for {cluster.name!r}: "
            "set it in tierkeeper.toml or TIERKEEPER_DAGSTER_CLUSTER, as the code location has it"
        )
    if check_partition_by(stack.settings.dagster.partition_by) != cluster.by_day:
        raise SettingsError(
            f"dagster.partition_by is {stack.settings.dagster.partition_by!r}, and the definitions "
            "were loaded with another: set it in tierkeeper.toml or "
            "TIERKEEPER_DAGSTER_PARTITION_BY, as the code location has it"
        )
    runs = instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
    unfinished = sum(is_ours(cluster, run) for run in runs)
    if unfinished and not force:
        raise RefusedError(
            f"{unfinished} runs of this cluster are unfinished in this Dagster instance. Wait for "
            "them or terminate them; if none of them is running any more, use --force"
        )


def _choose(fleet: RecordedFleet, live: set[str], *, live_max: int) -> list[Recorded]:
    """Ledgers with a partition, and the newest of those without while there is room."""
    fresh = [one for one in fleet.ledgers if _key(one) not in live]
    room = max(0, live_max - len(live))
    left_out = {one.view.ledger_id for one in fresh[: max(0, len(fresh) - room)]}
    return [one for one in fleet.ledgers if one.view.ledger_id not in left_out]


def _key(ledger: Recorded) -> str:
    return partition_key(ledger.view.ledger_id)


def _of_quarantine(cluster: ClusterNames) -> tuple[dg.AssetCheckKey, ...]:
    """What a quarantine is told of is in its reason, so one of the two is enough to have."""
    return cluster.read_back_equal, cluster.index_suite


def _read_told(instance: dg.DagsterInstance, cluster: ClusterNames) -> Told:
    assets = (
        *(
            cluster.sealed_ledgers,
            cluster.offloaded_objects,
            cluster.index_objects,
            cluster.certificates,
        ),
        *(cluster.offload_contexts, cluster.deleted_bookie_ledgers),
    )
    told: Told = {asset: set(told_partitions(instance, asset)) for asset in assets}
    for check in (cluster.read_back_equal, cluster.index_suite, cluster.released_safely):
        told[check] = set(judged_partitions(instance, check))
    return told


def _missing(
    cluster: ClusterNames, ledger: Recorded, told: Told
) -> list[dg.AssetKey | dg.AssetCheckKey]:
    """What can be told of a ledger by what exists of it, and has not been; reads nothing."""
    names: list[dg.AssetKey | dg.AssetCheckKey] = [cluster.sealed_ledgers]
    key = _key(ledger)
    if ledger.certified:
        names += [
            cluster.offloaded_objects,
            cluster.read_back_equal,
            cluster.index_objects,
            cluster.certificates,
        ]
        if ledger.publication is not None:
            names.append(cluster.offload_contexts)
    elif ledger.quarantined and not any(key in told[check] for check in _of_quarantine(cluster)):
        names.append(cluster.read_back_equal)
    if ledger.released is not None:
        names += [cluster.deleted_bookie_ledgers, cluster.released_safely]
    return [name for name in names if key not in told[name]]


def _restore(
    stack: Stack,
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    fleet: RecordedFleet,
    ledgers: Sequence[Recorded],
    told: Told,
    unreadable: dict[int, FormatError],
    workers: int,
) -> Counter[dg.AssetKey | dg.AssetCheckKey]:
    """Read the records of some ledgers and store what is missing: first assets, then checks."""
    assets: list[tuple[datetime, dg.AssetMaterialization]] = []
    checks: list[tuple[datetime, Evaluation]] = []
    for ledger, proven in read_proofs(stack, fleet, ledgers, workers=workers):
        key = _key(ledger)
        if isinstance(proven, FormatError):
            unreadable[ledger.view.ledger_id] = proven
            continue
        for at, event in _events(stack, cluster, proven):
            if isinstance(event, Evaluation):
                if key not in told[event.check]:
                    checks.append((at, replace(event, metadata={**event.metadata, **REBUILT})))
            elif key not in told[event.asset_key]:
                assets.append((at, event.with_metadata({**event.metadata, **REBUILT})))
    # Dagster takes the last that is stored for the newest, whatever its time.
    assets.sort(key=lambda item: item[0])
    store_entries(instance, [runless_entry(event, at=at) for at, event in assets])
    at_of = {(event.asset_key, event.partition): at for at, event in assets}
    _store_checks(instance, checks, at_of)
    counts: Counter[dg.AssetKey | dg.AssetCheckKey] = Counter()
    counts.update(event.asset_key for _at, event in assets)
    counts.update(event.check for _at, event in checks)
    return counts


def _store_checks(
    instance: dg.DagsterInstance,
    checks: Sequence[tuple[datetime, Evaluation]],
    at_of: Mapping[tuple[dg.AssetKey, str | None], datetime],
) -> None:
    """Each tied to the materialization that it judges, as the jobs' own are."""
    keys = {found.partition for _at, found in checks if found.partition is not None}
    stored = {
        asset: told_partitions(instance, asset, partitions=keys)
        for asset in {found.check.asset_key for _at, found in checks}
    }
    entries = []
    for at, found in sorted(checks, key=lambda item: item[0]):
        asset, partition = found.check.asset_key, found.partition or ""
        storage_id, judged_at = stored[asset].get(partition), at_of.get((asset, partition))
        target = (
            target_of(instance, asset, partition)  # it was there before, or there is none
            if storage_id is None or judged_at is None
            else runless_target(storage_id, at=judged_at)
        )
        entries.append(evaluation_entry(found, at=at, target=target))
    store_entries(instance, entries)


def _events(stack: Stack, cluster: ClusterNames, proven: Proven) -> Iterator[Timed]:
    """All that the records of one ledger prove, each with its time."""
    ledger, stored, prefix = proven.ledger, proven.certificate, stack.book.prefix
    yield ledger.view.closed_at or stack.now(), sealed_event(cluster, ledger.view, noop=True)
    failed = None
    if proven.quarantine is not None:
        record = proven.quarantine.record
        check = cluster.index_suite if _BY_SUITE.match(record.reason) else cluster.read_back_equal
        failed = check
        yield (
            record.found_at,
            finding(
                check,
                record.ledger_id,
                naming(record.ledger_id, ledger.view.topic, record.reason),
            ),
        )
    if stored is not None:
        certificate = stored.record
        at = certificate.verified_at
        yield at, object_event(cluster, stored, noop=True)
        yield at, index_event(cluster, stored, noop=True)
        yield at, certificate_event(cluster, stored, prefix=prefix, noop=True)
        # A check has one verdict on a partition here, and a quarantine came after the certificate.
        if failed != cluster.read_back_equal:
            yield at, certified_evaluation(cluster, certificate)
        if (publication := ledger.publication) is not None:
            yield (
                publication.record.confirmed_at,
                context_event(cluster, stored, publication, prefix=prefix, noop=True),
            )
    if proven.release is not None:
        yield from _release_events(stack, cluster, proven.release)


def _release_events(
    stack: Stack, cluster: ClusterNames, records: ReleaseRecords
) -> Iterator[Timed]:
    release = records.release.record
    metadata = release_metadata(
        cluster,
        records,
        bytes_released=release.bytes_released,
        bucket=stack.settings.store.bucket,
        prefix=stack.book.prefix,
    )
    yield release.released_at, release_event(cluster, records, metadata, noop=True)
    yield (
        release.released_at,
        release_evaluation(cluster, release.ledger_id, records.faults),
    )
