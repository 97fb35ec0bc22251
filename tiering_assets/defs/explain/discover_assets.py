"""What there is to do: sealed ledgers, and the backlog of every topic."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.explain.automation_note import automation_note
from tiering_assets.defs.explain.figures import (
    check_result,
    figures_metadata,
    judge,
    objectives_spec,
)
from tiering_assets.defs.explain.rollups import (
    NEWEST_SHOWN,
    backlog_metadata,
    pending_text,
    released_metadata,
)
from tiering_assets.defs.explain.topic_rows import RunLink
from tiering_assets.defs.shared.batches import Discovery, most_ledgers
from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.failures import as_failures
from tiering_assets.defs.shared.ledger_events import sealed_event
from tiering_assets.defs.shared.names import CLUSTER_TAG, ClusterNames
from tiering_assets.defs.shared.preview_api import outputs_of_checks, provenance_tags
from tiering_assets.defs.shared.resources import TieringStack, narrate
from tiering_assets.defs.shared.run_history import TOPICS_TAG, topic_tags
from tiering_assets.defs.telling.batch_summary import RESULT_TAG, tag_result
from tiering_assets.defs.telling.choose import telling
from tiering_assets.defs.telling.telling import ReachedLedger

if TYPE_CHECKING:
    from tiering_assets.explain.backlog import ExplainedLedger
    from tiering_assets.explain.figures.lag_figures import FleetFigures
    from tiering_assets.fleet.by_day import Day
    from tiering_assets.ground.stack import Stack
    from tiering_assets.look.ledger.survey import LedgerView
    from tiering_assets.resources.settings import ObjectiveSettings

_RUNS_SHOWN = 5
_BY_LEDGER = (
    "* **a ledger**: its id is a partition of [certificates](/assets/{cluster}/certificates); "
    "`tierkeeper ledger show ID` has all of it"
)
_BY_DAY = "* **a ledger**: `tierkeeper ledger show ID`; partitions are days, which count ledgers"
_FIND = (
    "* **a topic**: the table `by_topic` has its last runs; [runs](/runs) of it have the tag "
    "`tierkeeper/topic`; `tierkeeper ledger list --topic TOPIC`\n"
    "* **why something failed**: a run's error ends with the next step; `tierkeeper ledger why ID`\n"
    "* **who released a ledger, on which proof**: "
    "[released_ledgers](/assets/{cluster}/released_ledgers); `tierkeeper ledger show ID`"
)
_DESCRIPTION = "Surveys metadata and bucket; admits sealed ledgers; counts the rest."


def define_discovered(dressing: Dressing, *, fresh_s: float) -> dg.AssetsDefinition:
    """`fresh_s`: without a new count for so long, Dagster calls the backlog stale."""
    cluster = dressing.cluster

    @dg.multi_asset(
        name="discovered",
        specs=_specs(dressing, fresh_s),
        check_specs=[objectives_spec(cluster)],
        can_subset=True,
        description=_DESCRIPTION,
    )
    def discovered(
        context: dg.AssetExecutionContext, config: Discovery, tiering_stack: TieringStack
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult | dg.Output[None]]:
        with as_failures("discover"):
            yield from _discover(context, cluster, config, tiering_stack)

    return discovered


def _specs(dressing: Dressing, fresh_s: float) -> list[dg.AssetSpec]:
    cluster = dressing.cluster
    return [
        dressing.asset_spec(
            cluster.sealed_ledgers,
            "Ledgers that their topic has closed and that no broker reads from the bucket yet. "
            "A ledger gets its partition here or when a batch has taken it up. All are counted in "
            "tiering_backlog.",
            group="ingest",
            kinds={"pulsar"},
            page="states.md",
            module=__name__,
        ),
        dressing.asset_spec(
            cluster.tiering_backlog,
            "Ledgers and bytes by state, over all topics and by topic, as both metadata trees "
            "and the bucket say now. Also by the one reason that each ledger has "
            "(docs/states.md). Watch copy_lag_oldest_seconds: it grows when offloading stands "
            "(docs/metrics.md).",
            group="ingest",
            kinds={"pulsar"},
            page="metrics.md",
            module=__name__,
            of_ledgers=False,
            metadata={"find": dg.MetadataValue.md(find_text(cluster))},
            freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(seconds=fresh_s)),
        ),
    ]


def find_text(cluster: ClusterNames) -> str:
    """How everything else is found, for the page that people open first."""
    shown = _BY_DAY if cluster.by_day else _BY_LEDGER.format(cluster=cluster.name)
    return "\n".join([shown, _FIND.format(cluster=cluster.name)])


def _discover(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    config: Discovery,
    tiering_stack: TieringStack,
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult | dg.Output[None]]:
    """Survey everything. Loads no topic and changes nothing in the cluster or the bucket."""
    from tiering_assets.batch.newest_releases import newest_releases
    from tiering_assets.fleet.backlog import take_backlog
    from tiering_assets.fleet.by_day import work_by_day
    from tiering_assets.look.ledger.survey import UNFINISHED

    sealed: dict[int, LedgerView] = {}

    def told(one: "ExplainedLedger") -> None:
        if one.view.state in UNFINISHED:
            sealed[one.view.ledger_id] = one.view

    with tiering_stack.connect(context, cluster) as stack:
        found = take_backlog(stack, config.ml_names(), each=told)
        figures = found.figures
        days: Sequence[Day] = ()
        if found.source is not None and not config.topics:
            days = work_by_day(found.source, stack.now())
        objectives, bucket = stack.settings.objectives, stack.settings.store.bucket
        on = stack.settings.auto.enabled
        prefix, newest = stack.book.prefix, []
        if not config.topics:
            newest = newest_releases(stack, NEWEST_SHOWN)
        if cluster.sealed_ledgers in context.selected_asset_keys:
            _tell_sealed(context, cluster, stack, sealed, most=config.max_ledgers)
    if cluster.tiering_backlog in context.selected_asset_keys:
        # Of a part of the fleet the figures would read as a drop.
        chart = None if config.topics else _chart(context, figures, objectives, days)
        yield dg.MaterializeResult(
            asset_key=cluster.tiering_backlog,
            metadata={
                **backlog_metadata(
                    figures,
                    partial(runs_of_topic, context.instance, cluster),
                    automation=automation_note(context.instance, cluster, wanted=on),
                    chart=chart,
                ),
                **({} if config.topics else figures_metadata(figures)),
            },
        )
    topics = len(figures.topics)
    names = [*figures.topics] if topics == 1 else []
    more = {} if names else {TOPICS_TAG: str(topics)}
    tag_result(context, pending_text(figures.total), names, more)
    if cluster.objectives_met in context.selected_asset_check_keys:
        if config.topics:  # a part of the fleet is not judged by objectives of all of it
            yield from outputs_of_checks(context, [cluster.objectives_met])
        else:
            yield check_result(cluster, judge(figures, objectives))
    if not config.topics:
        shown = released_metadata(figures, newest, bucket=bucket, prefix=prefix)
        context.log_event(
            dg.AssetMaterialization(
                cluster.released_ledgers,
                metadata={**shown},
                tags=provenance_tags(context, cluster.deleted_bookie_ledgers),
            )
        )


def _chart(
    context: dg.AssetExecutionContext,
    figures: "FleetFigures",
    objectives: "ObjectiveSettings",
    days: "Sequence[Day]",
) -> dg.MetadataValue | None:
    """No count fails by its picture."""
    from tiering_assets.defs.explain.chart import backlog_chart

    try:
        return backlog_chart(figures, objectives, days)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        narrate(context, f"no chart of the backlog: {error}")
        return None


def runs_of_topic(instance: dg.DagsterInstance, cluster: ClusterNames, topic: str) -> list[RunLink]:
    """The last runs that were about this topic alone, newest first."""
    wanted = dg.RunsFilter(tags={**topic_tags([topic]), CLUSTER_TAG: cluster.name})
    return [
        RunLink(
            run.run_id,
            f"{run.job_name}: {run.tags.get(RESULT_TAG) or run.status.value.lower()}",
        )
        for run in instance.get_runs(wanted, limit=_RUNS_SHOWN)
    ]


def _tell_sealed(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    stack: "Stack",
    sealed: "Mapping[int, LedgerView]",
    *,
    most: int,
) -> None:
    """Tell of the oldest; of all, where partitions are days."""
    ids = list(sealed) if cluster.by_day else nsmallest(most_ledgers(cluster, most), sealed)
    with telling(context, cluster, stack) as told:
        known = told.begin(ids)
        for ledger_id in ids:
            view = sealed[ledger_id]
            event = sealed_event(cluster, view, noop=ledger_id in known)
            told.asset(
                event,
                ReachedLedger(
                    ledger_id=ledger_id,
                    ml_name=view.ml_name,
                    bytes=view.bytes or 0,
                    closed_at=view.closed_at,
                ),
            )
    narrate(
        context,
        f"{len(sealed)} sealed ledgers of {len({v.topic for v in sealed.values()})} topics, "
        f"{len(ids)} of them told",
    )
