"""`run_failure`: a run of ours that failed is posted to the webhook, with its own message.

Owns: only the settings' webhook gets it, and only messages that our errors wrote: they hold no
credentials. Dagster calls it once per failed run; a post that fails fails the tick and is not
repeated, so failures are in the runs page whatever the webhook does.
"""

from __future__ import annotations

import dagster as dg

from tiering_assets.automation.standing import OFF
from tiering_assets.defs.automation.tick import described, switch_of
from tiering_assets.defs.shared.failures import as_failures
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_api import AssetJob
from tiering_assets.defs.shared.resources import TieringStack

SCHEMA = "tierkeeper/run-failure/1"
_TEXT_MAX = 4000
_SHORT_MAX = 400  # of it in `text`, which is all that many receivers show


def run_failure_sensor(
    cluster: ClusterNames, jobs: list[AssetJob], *, on: bool
) -> dg.SensorDefinition:
    @dg.run_failure_sensor(
        name=cluster.named("run_failure"),
        monitored_jobs=[*jobs],
        default_status=switch_of(on=on),
        description=described(
            "Posts every failed run to auto.webhook_url, where that is set: job, run id and the "
            "message that names ledgers and causes.",
            on=on,
        ),
    )
    def run_failure(
        context: dg.RunFailureSensorContext, tiering_stack: TieringStack
    ) -> dg.SkipReason | None:
        with as_failures("run_failure"):
            return _post(context, cluster, tiering_stack)

    return run_failure


def _post(
    context: dg.RunFailureSensorContext, cluster: ClusterNames, tiering_stack: TieringStack
) -> dg.SkipReason | None:
    from tiering_assets.resources.webhook import post_webhook

    auto = tiering_stack.load().auto
    if not auto.enabled:
        return dg.SkipReason(OFF)
    if not auto.webhook_url:
        return dg.SkipReason("auto.webhook_url is empty")
    run = context.dagster_run
    said = "\n".join(map(_said, context.get_step_failure_events()))
    said = said or context.failure_event.message or "no message"
    post_webhook(
        auto.webhook_url,
        {
            "schema": SCHEMA,
            "cluster": cluster.name,
            "text": f"tierkeeper: {run.job_name} run {run.run_id} failed: {said[:_SHORT_MAX]}",
            "job": run.job_name,
            "run_id": run.run_id,
            "error": said[:_TEXT_MAX],
        },
    )
    return None


def _said(event: dg.DagsterEvent) -> str:
    """The sentence that a step failed with, else the innermost error as Dagster has it."""
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return data.user_failure_data.description
    if data.error is None:
        return event.message or ""
    return (data.error.cause or data.error).message
