"""A batch of ledgers through copy, verification and publication, in one op.

Owns: what the good ledgers reached is told as soon as the batch is done, before the bad ones fail
the run by name. No ledger waits for Dagster: what it has no key for is counted.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.batch.offload_prefix import narrate_plan, narrate_progress, plan_of
from tiering_assets.defs.explain.figures import observed_backlog
from tiering_assets.defs.shared.batches import (
    OffloadBatch,
    batch_failure,
    chosen_ids,
    most_ledgers,
)
from tiering_assets.defs.shared.checks import disproved_by, finding
from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.failures import as_failures
from tiering_assets.defs.shared.ledger_events import (
    certificate_event,
    certified_evaluation,
    context_event,
    index_event,
    object_event,
)
from tiering_assets.defs.shared.metadata import INDEX_COLUMNS, topic_text
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.resources import TieringStack, narrate
from tiering_assets.defs.telling.batch_summary import (
    NOTHING_DUE,
    BatchSummary,
    Result,
    Row,
    log_batch,
)
from tiering_assets.defs.telling.choose import telling
from tiering_assets.defs.telling.days import on_chosen_days
from tiering_assets.defs.telling.telling import ReachedLedger, Telling

if TYPE_CHECKING:
    from tiering_assets.batch.pipeline import LedgerOutcome
    from tiering_assets.ground.stack import Stack

_NONE_READY = (
    "no closed ledger waits for a copy, or a run has it; `tierkeeper topic backlog` says what is "
    "left and why"
)
_DESCRIPTION = "Copies, verifies and publishes a batch of ledgers. Safe to run again."


def define_offload_ledgers(dressing: Dressing) -> dg.AssetsDefinition:
    cluster = dressing.cluster

    @dg.multi_asset(
        name="offload_ledgers",
        specs=_specs(dressing),
        can_subset=True,
        pool=cluster.bookie_read_pool,
        description=_DESCRIPTION,
    )
    def offload_ledgers(
        context: dg.AssetExecutionContext, config: OffloadBatch, tiering_stack: TieringStack
    ) -> Iterator[dg.MaterializeResult[None]]:
        with as_failures("offload"):
            yield from _offload(context, cluster, config, tiering_stack)

    return offload_ledgers


def _specs(dressing: Dressing) -> list[dg.AssetSpec]:
    cluster = dressing.cluster
    return [
        dressing.asset_spec(
            cluster.offloaded_objects,
            "Data objects in the bucket: a ledger's entries in Pulsar's offload format, read from "
            "the bookies by Spark tasks with every entry's digest checked.",
            group="offload",
            kinds={"spark", "s3"},
            page="formats.md",
            module=__name__,
        ),
        dressing.asset_spec(
            cluster.index_objects,
            "Index objects: which block of the data object holds which entries, and the ledger's "
            "metadata as brokers need it. Written only when the data object is complete.",
            group="offload",
            kinds={"spark", "s3"},
            page="formats.md",
            module=__name__,
            metadata={"dagster/column_schema": INDEX_COLUMNS},
        ),
        dressing.asset_spec(
            cluster.certificates,
            "Proof that every byte was read back and equals what the bookies served. A bookie "
            "copy is deleted only with such a proof.",
            group="integrity",
            kinds={"spark", "greatexpectations"},
            page="records.md",
            module=__name__,
        ),
        dressing.asset_spec(
            cluster.offload_contexts,
            "Published ledgers: the topic's metadata names our objects and its broker has read "
            "them. The deletion lag runs from here; the bookies still hold their copy.",
            group="release",
            kinds={"pulsar"},
            page="states.md",
            module=__name__,
        ),
    ]


def _offload(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    config: OffloadBatch,
    tiering_stack: TieringStack,
) -> Iterator[dg.MaterializeResult[None]]:
    """Offload a batch; without offload_contexts in the selection nothing is published."""
    from tiering_assets.automation.choices import sealed_ledgers
    from tiering_assets.batch.pipeline import offload_batch
    from tiering_assets.ground.task_progress import phases_of

    publish = cluster.offload_contexts in context.selected_asset_keys
    with (
        tiering_stack.connect(context, cluster, with_tasks=True) as stack,
        observed_backlog(context, cluster, stack),
    ):
        started, phases = stack.monotonic(), phases_of(stack)
        wanted = chosen_ids(context, cluster, config, stack)
        most = most_ledgers(cluster, config.max_ledgers)
        prefix = plan_of(stack, config, chosen=wanted)
        if prefix is not None:
            wanted = [*prefix.prefix.ledger_ids[:most]]
            narrate_plan(context, prefix, taken=len(wanted))
        elif not wanted:
            topics = config.ml_names()
            ready = sealed_ledgers(stack, topics)
            wanted = on_chosen_days(context, cluster, stack, ready, topics)[:most]
        outcomes = offload_batch(stack, wanted, publish=publish, when_due=config.when_due)
        with telling(context, cluster, stack) as told:
            _tell(context, cluster, stack, told, outcomes)
        if prefix is not None:
            narrate_progress(context, stack, prefix)
        seconds = stack.monotonic() - started
    yield from ()  # nothing is materialized but ledger by ledger, above
    _finish(context, cluster, outcomes, seconds=seconds, phases=phases.seconds)


def _tell(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    stack: "Stack",
    told: Telling,
    outcomes: list["LedgerOutcome"],
) -> None:
    reached = [
        one
        for one in outcomes
        if one.certificate is not None or disproved_by(cluster, one.error) is not None
    ]
    told.begin([one.ledger_id for one in reached])
    for outcome in reached:
        _tell_outcome(context, cluster, stack, told, outcome)
    faults = {one.ledger_id: _fault(one) for one in outcomes}
    told.failed(
        cluster.offloaded_objects, {i: said for i, said in faults.items() if said is not None}
    )
    told.lines(
        {
            one.ledger_id: f"waits: {one.wait}"
            for one in outcomes
            if one.wait is not None and not one.wait.reason.is_fault and one.error is None
        }
    )


def _fault(outcome: "LedgerOutcome") -> str | None:
    """Why a ledger failed; None for one that is done, or that merely waits."""
    if outcome.error is not None:
        return str(outcome.error)
    wait = outcome.wait
    return str(wait) if wait is not None and wait.reason.is_fault else None


def _tell_outcome(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    stack: "Stack",
    told: Telling,
    outcome: "LedgerOutcome",
) -> None:
    """Tell what one ledger has reached, each asset before the check that judges it."""
    from tiering_assets.records.models import Publication

    ledger_id, stored = outcome.ledger_id, outcome.certificate
    if stored is None:
        check = disproved_by(cluster, outcome.error)
        if check is not None:
            told.check(finding(check, ledger_id, str(outcome.error)))
        return
    selected, prefix, certificate = context.selected_asset_keys, stack.book.prefix, stored.record
    of = ReachedLedger(
        ledger_id=ledger_id, ml_name=certificate.ml_name, bytes=certificate.payload_bytes
    )
    copied, verified = not outcome.copied, not outcome.verified
    if cluster.offloaded_objects in selected and told.asset(
        object_event(cluster, stored, noop=copied), of
    ):
        told.check(certified_evaluation(cluster, certificate))
    if cluster.index_objects in selected:
        told.asset(index_event(cluster, stored, noop=copied), of)
        told.suites(cluster.index_suite, ledger_id, certificate.suites)
    if cluster.certificates in selected:
        told.asset(certificate_event(cluster, stored, prefix=prefix, noop=verified), of)
    if cluster.offload_contexts in selected and outcome.published is not None:
        publication = stack.book.require(Publication, outcome.published.publication_key)
        noop = outcome.published.noop
        told.asset(context_event(cluster, stored, publication, prefix=prefix, noop=noop), of)


def _finish(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    outcomes: list["LedgerOutcome"],
    *,
    seconds: float,
    phases: Mapping[str, float],
) -> None:
    """What the run came to, and as its last event the summary, before it fails."""
    waiting: dict[int, str] = {}
    failures: dict[int, str] = {}
    for outcome in outcomes:
        if (said := _fault(outcome)) is not None:
            failures[outcome.ledger_id] = said
        elif outcome.wait is not None:
            waiting[outcome.ledger_id] = str(outcome.wait)
    rows = [_row(outcome, failures, waiting) for outcome in outcomes]
    done = sum(o.ledger_id not in waiting and o.ledger_id not in failures for o in outcomes)
    noop = sum(outcome.noop for outcome in outcomes)
    narrate(
        context,
        f"{done} ledgers offloaded ({noop} were before), {len(waiting)} wait, "
        f"{len(failures)} failed"
        if outcomes
        else f"{NOTHING_DUE}: {_NONE_READY}",
    )
    log_batch(
        context,
        cluster.offload_contexts,
        BatchSummary(
            action="offload",
            rows=tuple(rows),
            seconds=seconds,
            phases=phases,
            pages=None if cluster.by_day else cluster.certificates,
        ),
    )
    if failures:
        raise batch_failure("offload", failures, done=done, waiting=waiting)


def _row(outcome: "LedgerOutcome", failures: dict[int, str], waiting: dict[int, str]) -> Row:
    """What the summary says of one ledger. A noop is a ledger that this run found where it is."""
    ledger_id, stored = outcome.ledger_id, outcome.certificate
    topic = "" if outcome.ml_name is None else topic_text(outcome.ml_name)
    if ledger_id in failures:
        return Row(
            ledger_id=ledger_id,
            topic=topic,
            result=Result.FAILED,
            bytes=0,
            said=failures[ledger_id],
        )
    if ledger_id in waiting:
        return Row.waiting(ledger_id, waiting[ledger_id], topic=topic)
    nothing_done = outcome.noop or not (outcome.published or outcome.copied or outcome.verified)
    return Row(
        ledger_id=ledger_id,
        topic=topic,
        result=Result.NOOP if nothing_done else Result.DONE,
        bytes=stored.record.payload_bytes if stored is not None and outcome.copied else 0,
        said=outcome.state,
    )
