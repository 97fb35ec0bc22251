"""The steps' Stack as a Dagster resource, connected inside a run and never at import.

Clients, boto3 and Spark are imported when a run connects: whoever only loads definitions (web
server, daemon) pays for none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from tiering_assets.defs.shared.names import ClusterNames, check_partition_by
from tiering_assets.defs.shared.preview_api import Context
from tiering_assets.resources.dagster_resources import TierkeeperSettings
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.plain_text import plain
from tiering_assets.resources.settings import Settings

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Narrate, Stack
    from tiering_assets.tasks.runner import TaskRunner


LEDGER_LINES_MAX = 20


def narrate(context: Context, line: str) -> None:
    """Write a line for people into the run's log; the prefix tells ours from Dagster's."""
    context.log.info("tierkeeper: %s", plain(line))


class RunLines:
    """Lines of the steps of one run. A line in a run's log is a row of Dagster's database.

    So only the first lines about single ledgers and blocks go there, and none where partitions are
    days. All others go to standard output, which Dagster keeps as the run's captured logs.
    """

    def __init__(self, context: Context, *, by_day: bool) -> None:
        self._context = context
        self._by_day = by_day
        self._left = LEDGER_LINES_MAX

    def __call__(self, line: str) -> None:
        """Takes a line of Stack.narrate or Stack.tell."""
        of_ledgers = "ledgers" in getattr(line, "event", {})
        if self._by_day or (of_ledgers and self._left == 0):
            sys.stdout.write(f"tierkeeper: {plain(line)}\n")
            sys.stdout.flush()
            return
        self._left -= of_ledgers
        narrate(self._context, line)


class TieringStack(TierkeeperSettings):
    """Cluster, bucket and broker of the settings; connect() opens them for one run."""

    @contextmanager
    def connect(
        self, context: Context, cluster: ClusterNames, *, with_tasks: bool = False
    ) -> Iterator[Stack]:
        """Yield the Stack of this run; its lines of progress go to the run's log.

        Args:
            context: of the step; its run id signs the records.
            cluster: that the run's definitions were built for.
            with_tasks: blocks will be copied or read back, so start the runner of the settings.

        Raises:
            SettingsError: a bad setting, a cluster other than the loaded definitions', or more
                runs at once than budgets are split between.
        """
        from tiering_assets.defs.shared.run_limit import require_room

        with ExitStack() as opened:
            settings = self.load_for_cluster(cluster)
            run_id = context.op_execution_context.run_id
            lines = RunLines(context, by_day=cluster.by_day)
            runner = opened.enter_context(_runner(settings, run_id, lines)) if with_tasks else None
            stack = opened.enter_context(
                self.open(
                    settings,
                    runner=runner,
                    run_id=run_id,
                    narrate=lines,
                    command=context.op_execution_context.job_name,
                )
            )
            require_room(context.instance, stack)
            yield stack

    @contextmanager
    def open(
        self,
        settings: Settings,
        *,
        run_id: str,
        narrate: Narrate,
        command: str,
        runner: TaskRunner | None = None,
    ) -> Iterator[Stack]:
        """Open the stack of these settings; a test puts simulated servers here.

        `command` is the job or sensor, for the day book.
        """
        from tiering_assets.ground.stack import open_stack

        with open_stack(
            settings, runner=runner, run_id=run_id, narrate=narrate, command=command
        ) as stack:
            yield stack

    def load_for_cluster(self, cluster: ClusterNames) -> Settings:
        """The settings now. SettingsError when the definitions were loaded with others."""
        settings = self.load()
        if settings.dagster.cluster != cluster.name:
            raise SettingsError(
                f"dagster.cluster is {settings.dagster.cluster!r}, but the definitions were loaded "
                f"for {cluster.name!r}: reload the code location"
            )
        if check_partition_by(settings.dagster.partition_by) != cluster.by_day:
            raise SettingsError(
                f"dagster.partition_by is {settings.dagster.partition_by!r} now, and was another "
                "when the definitions were loaded: reload the code location, then run "
                "`tierkeeper dagster rebuild`"
            )
        return settings


@contextmanager
def _runner(settings: Settings, run_id: str, narrate: Narrate) -> Iterator[TaskRunner]:
    match settings.dagster.runner:
        case "local":
            from tiering_assets.tasks.runner import LocalRunner

            yield LocalRunner(settings)
        case "spark":
            from tiering_assets.spark.runner import open_spark_runner

            with open_spark_runner(settings, run_id=run_id, narrate=narrate) as runner:
                yield runner
        case other:
            raise SettingsError(f"dagster.runner is {other!r}, expected spark or local")
