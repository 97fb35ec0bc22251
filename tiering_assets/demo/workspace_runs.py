"""`python -m tiering_assets.demo.workspace_runs`: runs of the workspace's jobs, one at a time.

A run that `dagster job execute` makes is of no code location, so neither the timeline nor its job's
page shows it. These are launched into the code server of workspace.yaml, as the daemon launches
what was clicked, without its queue. One code server serves all of them.

Standard input has a line of JSON for each, `{"job": "offload", "config": {}}`. What the server and
its runs log goes to standard output. Behind each run comes a line of ENDED with its status, and why
it failed.
"""

from __future__ import annotations

import json
import sys
import time

import dagster as dg
from dagster._cli.job import _create_run
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import WorkspaceFileTarget

from tiering_assets.demo.jobs import ENDED, WORKSPACE

_LOOK_S = 0.1


def main() -> None:
    instance = dg.DagsterInstance.get()
    target = WorkspaceFileTarget([WORKSPACE])
    with instance, WorkspaceProcessContext(instance, target) as process:
        workspace = process.create_request_context()
        for line in sys.stdin:
            asked = json.loads(line)
            run = _run(instance, workspace, asked["job"], asked["config"])
            told = {"status": run.status.value, "why": _why(instance, run)}
            sys.stdout.write(f"{ENDED}{json.dumps(told)}\n")
            sys.stdout.flush()


def _run(
    instance: dg.DagsterInstance,
    workspace: WorkspaceRequestContext,
    job: str,
    config: dict[str, object],
) -> dg.DagsterRun:
    [location] = workspace.code_locations
    [repository] = location.get_repositories().values()
    made = _create_run(
        instance, location, repository, repository.get_full_job(job), config, {}, None, None
    )
    instance.launch_run(made.run_id, workspace)
    while not (run := instance.get_run_by_id(made.run_id)) or not run.is_finished:
        time.sleep(_LOOK_S)
    return run


def _why(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """What a failed step says to people; empty where none failed."""
    for row in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        if row.dagster_event is not None:
            told = row.dagster_event.step_failure_data.user_failure_data
            if told is not None and told.description:
                return told.description
    return ""


if __name__ == "__main__":
    main()
