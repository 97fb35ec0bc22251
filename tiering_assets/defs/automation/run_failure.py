"""`run_failure`: a run of ours that failed is posted to the webhook, with its own message.

Owns: only the settings' webhook gets it, and only messages that our errors wrote: they hold no
credentials. Dagster calls it once per failed run; a post that fails fails the tick and is not
repeated, so failures are in the runs page whatever the webhook does.
"""

from __future__ import annotations

import dagster as dg

from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_api import AssetJob
from tiering_assets.defs.shared.resources import TieringStack

SCHEMA = "tierkeeper/run-failure/1"
_TEXT_MAX = 4000


def run_failure_sensor(cluster: ClusterNames, jobs: list[AssetJob]) -> dg.SensorDefinition:
    @dg.run_failure_sensor(
        name=cluster.named("run_failure"),
        monitored_jobs=[*jobs],
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Posts every failed run to auto.webhook_url, where that is set: job, run id and the "
            "message that names ledgers and causes."
        ),
    )
    def run_failure(
        context: dg.RunFailureSensorContext, tiering_stack: TieringStack
    ) -> dg.SkipReason | None:
        from tiering_assets.resources.webhook import post_webhook

        auto = tiering_stack.load().auto
        if not auto.enabled or not auto.webhook_url:
            return dg.SkipReason("auto.enabled is false or auto.webhook_url is empty")
        run = context.dagster_run
        post_webhook(
            auto.webhook_url,
            {
                "schema": SCHEMA,
                "cluster": cluster.name,
                "text": f"tierkeeper: {run.job_name} run {run.run_id} failed",
                "job": run.job_name,
                "run_id": run.run_id,
                "error": _failure_text(context)[:_TEXT_MAX],
            },
        )
        return None

    return run_failure


def _failure_text(context: dg.RunFailureSensorContext) -> str:
    """The steps' own failures, else what Dagster says of the run."""
    steps = [
        event.step_failure_data.error.cause.message
        if event.step_failure_data.error.cause is not None
        else event.step_failure_data.error.message
        for event in context.get_step_failure_events()
        if event.step_failure_data.error is not None
    ]
    return "\n".join(steps) or context.failure_event.message or "no message"
