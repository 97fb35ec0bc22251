"""Bookie copies deleted behind the release gate, and how much disk that gave back.

The gate is release/release.py and decides by itself; nothing of Dagster's state is evidence to it.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.explain.figures import observed_backlog
from tiering_assets.defs.explain.rollups import NEWEST_SHOWN, released_metadata
from tiering_assets.defs.shared.batches import (
    ReleaseBatch,
    batch_failure,
    chosen_ids,
    most_ledgers,
    reasons_table,
)
from tiering_assets.defs.shared.checks import release_evaluation
from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.failures import as_failures
from tiering_assets.defs.shared.ledger_events import context_event, release_event, release_metadata
from tiering_assets.defs.shared.metadata import Metadata, bucket_path, bytes_text, topic_text
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.resources import TieringStack, narrate
from tiering_assets.defs.telling.batch_summary import (
    NOTHING_DUE,
    BatchSummary,
    Result,
    Row,
    log_batch,
    summary_metadata,
    tag_result,
)
from tiering_assets.defs.telling.choose import telling
from tiering_assets.defs.telling.days import on_chosen_days
from tiering_assets.defs.telling.dry_run import tell_dry_run
from tiering_assets.defs.telling.telling import ReachedLedger, Telling

if TYPE_CHECKING:
    from tiering_assets.batch.release_batch import PublishedAlong, ReleaseOutcome
    from tiering_assets.batch.release_plan import Written
    from tiering_assets.ground.stack import Stack

_NONE_DUE = (
    "no published ledger is past its deletion lag; `tierkeeper ledger list --state published` "
    "lists those that wait"
)
PLAN_SHOWN = 50  # ledgers of a plan that people read in Dagster; a larger one is in its record
_DESCRIPTION = "Deletes due bookie copies behind the release gate. Safe to run again."


def define_release_ledgers(dressing: Dressing) -> dg.AssetsDefinition:
    cluster = dressing.cluster

    @dg.multi_asset(
        name="release_ledgers",
        specs=_specs(dressing),
        can_subset=True,
        pool=cluster.release_pool,
        description=_DESCRIPTION,
    )
    def release_ledgers(
        context: dg.AssetExecutionContext, config: ReleaseBatch, tiering_stack: TieringStack
    ) -> Iterator[dg.MaterializeResult[None]]:
        with as_failures("release"):
            yield from _release(context, cluster, config, tiering_stack)

    return release_ledgers


def _specs(dressing: Dressing) -> list[dg.AssetSpec]:
    cluster = dressing.cluster
    return [
        dressing.asset_spec(
            cluster.deleted_bookie_ledgers,
            "Ledgers whose bookie copy is deleted, after the deletion lag and a fresh proof of "
            "everything. A ledger that waits stays missing here; the run's log has its reasons.",
            group="release",
            kinds={"pulsar"},
            page="states.md",
            module=__name__,
        ),
        dressing.asset_spec(
            cluster.released_ledgers,
            "How many ledgers and bytes only the bucket holds, over all topics and by topic. "
            "Also what the last release run did or would do, and the newest releases with their "
            "records. A released ledger's partition is retired after a while; this is where it "
            "is found.",
            group="release",
            kinds={"s3"},
            page="records.md",
            module=__name__,
            of_ledgers=False,
        ),
    ]


def _release(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    config: ReleaseBatch,
    tiering_stack: TieringStack,
) -> Iterator[dg.MaterializeResult[None]]:
    """Release the given or all due ledgers; with dry_run, or without the asset, only plan."""
    from tiering_assets.automation.choices import due_ledgers
    from tiering_assets.batch.newest_releases import newest_releases
    from tiering_assets.batch.release_batch import ReleaseResults
    from tiering_assets.batch.release_plan import execute_plan, planned_outcomes
    from tiering_assets.release.reread import reread_possible

    dry_run = config.dry_run or cluster.deleted_bookie_ledgers not in context.selected_asset_keys
    tasks = not dry_run and reread_possible(tiering_stack.load())
    with (
        tiering_stack.connect(context, cluster, with_tasks=tasks) as stack,
        observed_backlog(context, cluster, stack) as backlog,
    ):
        started = stack.monotonic()
        wanted = chosen_ids(context, cluster, config, stack)
        if not wanted:
            topics, most = config.ml_names(), most_ledgers(cluster, config.max_ledgers)
            due = due_ledgers(stack, topics)
            wanted = on_chosen_days(context, cluster, stack, due, topics)[:most]
        written, unknown = _plan(stack, wanted, config.acknowledge or None)
        done = (
            ReleaseResults(planned_outcomes(written), along={})
            if dry_run
            else execute_plan(stack, written, publish_waiting=config.publish_waiting)
        )
        outcomes = unknown + done.outcomes
        said = {outcome.ledger_id: outcome_text(outcome) for outcome in outcomes}
        failures = {o.ledger_id: str(o.result) for o in outcomes if isinstance(o.result, Exception)}
        with telling(context, cluster, stack) as told:
            _tell_suites(cluster, told, written)
            released = tell_releases(cluster, stack, told, outcomes)
            _tell_published(cluster, stack, told, done.along)
            if not dry_run:
                told.failed(cluster.deleted_bookie_ledgers, failures)
            told.lines(said)
        plan_metadata = _plan_metadata(stack, written, executed=not dry_run)
        shown: Metadata = {}
        figures = None
        if cluster.released_ledgers in context.selected_asset_keys:
            figures = backlog.figures
        if figures is not None:
            shown = released_metadata(
                figures,
                newest_releases(stack, NEWEST_SHOWN),
                bucket=stack.settings.store.bucket,
                prefix=stack.book.prefix,
            )
        seconds = stack.monotonic() - started
    rows = [release_row(outcome) for outcome in outcomes]
    summary = BatchSummary(
        action="release plan" if dry_run else "release",
        rows=tuple(rows),
        seconds=seconds,
        pages=None if cluster.by_day else cluster.deleted_bookie_ledgers,
    )
    metadata = {
        **shown,
        **summary_metadata(summary),
        "plan" if dry_run else "last_run": reasons_table(said, "outcome"),
        **plan_metadata,
    }
    if dry_run:
        tell_dry_run(context, cluster, summary, metadata, outcomes)
    elif cluster.released_ledgers in context.selected_asset_keys:
        tag_result(context, summary.result, summary.topics)
        yield dg.MaterializeResult(asset_key=cluster.released_ledgers, metadata=metadata)
    else:
        log_batch(context, cluster.deleted_bookie_ledgers, summary)
    if not rows:
        narrate(context, f"{NOTHING_DUE}: {_NONE_DUE}")
    if failures:
        gone = {outcome.ledger_id for outcome in released}
        waiting = {i: text for i, text in said.items() if i not in failures and i not in gone}
        raise batch_failure("release", failures, done=len(gone), waiting=waiting)


def _plan(
    stack: "Stack", ledger_ids: Sequence[int], acknowledged: str | None
) -> "tuple[Written, list[ReleaseOutcome]]":
    """The plan, and an error for each ledger that nobody knows."""
    from tiering_assets.batch.release_batch import ReleaseOutcome
    from tiering_assets.batch.release_plan import make_plan
    from tiering_assets.look.ledger.survey import ml_names_of
    from tiering_assets.resources.errors import LedgerNotFoundError

    owners = ml_names_of(stack, ledger_ids)
    topics: dict[str, list[int]] = {}
    for ledger_id, ml_name in owners.items():
        topics.setdefault(ml_name, []).append(ledger_id)
    unknown = [
        ReleaseOutcome(
            ledger_id=i,
            ml_name=None,
            result=LedgerNotFoundError(
                f"ledger {i}: neither BookKeeper nor a record names its topic"
            ),
        )
        for i in ledger_ids
        if i not in owners
    ]
    return make_plan(stack, topics, acknowledged=acknowledged), unknown


def _tell_suites(cluster: ClusterNames, told: Telling, written: "Written") -> None:
    """What the expectation suites said of each ledger while the plan was made."""
    told.begin(list(written.suites))
    for ledger_id, suites in written.suites.items():
        told.suites(cluster.expectation_suites, ledger_id, suites)


def _plan_metadata(
    stack: "Stack", written: "Written", *, executed: bool
) -> dict[str, dg.MetadataValue]:
    """The plan as people read it, and where the one that was carried out lies."""
    from tiering_assets.records import keys
    from tiering_assets.records.codec import encode_record

    plan = written.plan
    size = bytes_text(sum(one.bytes for one in plan.release))
    found: dict[str, dg.MetadataValue] = {
        "planned": dg.MetadataValue.text(f"{len(plan.release)} ledgers, {size}")
    }
    if len(plan.release) <= PLAN_SHOWN:
        found["release_plan"] = dg.MetadataValue.json(encode_record(plan))
    if executed and plan.release:
        key = stack.book.prefix + keys.release_plan(written.digest)
        found["release_plan_record"] = bucket_path(stack.settings.store.bucket, key)
    return found


def tell_releases(
    cluster: ClusterNames, stack: "Stack", told: Telling, outcomes: "list[ReleaseOutcome]"
) -> "list[ReleaseOutcome]":
    """Tell Dagster of the ledgers that are released, and return them."""
    released = [outcome for outcome in outcomes if outcome.records is not None]
    told.begin([outcome.ledger_id for outcome in released])
    for outcome in released:
        _tell_released(cluster, stack, told, outcome)
    return released


def _tell_published(
    cluster: ClusterNames, stack: "Stack", told: Telling, along: "dict[int, PublishedAlong]"
) -> None:
    """Tell of the waiting ledgers that were published with the reload of a release."""
    from tiering_assets.records.models import Publication

    told.begin(list(along))
    for ledger_id, one in sorted(along.items()):
        publication = stack.book.require(Publication, one.published.publication_key)
        certificate, prefix = one.certificate.record, stack.book.prefix
        told.asset(
            context_event(
                cluster, one.certificate, publication, prefix=prefix, noop=one.published.noop
            ),
            ReachedLedger(
                ledger_id=ledger_id,
                ml_name=certificate.ml_name,
                bytes=certificate.payload_bytes,
            ),
        )


def release_row(outcome: "ReleaseOutcome") -> Row:
    """What the summary says of one ledger. A plan has done nothing, so what would go waits."""
    from tiering_assets.release.work import Released

    result, size = Result.WAITING, 0
    if isinstance(outcome.result, Released):
        result = Result.NOOP if outcome.result.noop else Result.DONE
        size = 0 if outcome.result.noop else outcome.result.bytes_released
    elif isinstance(outcome.result, Exception):
        result = Result.FAILED
    return Row(
        ledger_id=outcome.ledger_id,
        topic="" if outcome.ml_name is None else topic_text(outcome.ml_name),
        result=result,
        bytes=size,
        said=outcome_text(outcome),
    )


def outcome_text(outcome: "ReleaseOutcome") -> str:
    from tiering_assets.ground.reasons import NotNow
    from tiering_assets.release.gate import MayRelease
    from tiering_assets.release.work import Released

    match outcome.result:
        case Released(bytes_released=size, noop=True):
            return f"was released before, {size} bytes"
        case Released(bytes_released=size):
            return f"released, {size} bytes"
        case NotNow() as not_yet:
            return f"waits: {not_yet}"
        case MayRelease(uid=uid):
            return f"would be released, attempt {uid}"
        case error:
            return f"failed: {error}"


def _tell_released(
    cluster: ClusterNames, stack: "Stack", told: Telling, outcome: "ReleaseOutcome"
) -> None:
    from tiering_assets.release.work import Released

    records, result = outcome.records, outcome.result
    if records is None or not isinstance(result, Released):
        return
    metadata = release_metadata(
        cluster,
        records,
        bytes_released=result.bytes_released,
        bucket=stack.settings.store.bucket,
        prefix=stack.book.prefix,
    )
    of = ReachedLedger(
        ledger_id=outcome.ledger_id,
        ml_name=records.release.record.ml_name,
        bytes=result.bytes_released,
    )
    event = release_event(cluster, records, metadata, noop=result.noop)
    if told.asset(event, of):
        told.check(release_evaluation(cluster, outcome.ledger_id, records.faults))
