"""Offload ledgers as a Spark application: for YARN, Kubernetes and EMR, or wherever spark-submit
goes.

    spark-submit --master local[2,4] deploy/spark/offload_job.py 4711 4712 --execute

The session is spark-submit's; tierkeeper takes the one that is there. Settings and credentials come
from the environment of driver and executors (docs/spark.md). Launched by Dagster Pipes, it reports
every ledger to its asset's run; else it prints one line of JSON a ledger. Ends with the exit code
of the worst failure.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

from tiering_assets.batch.pipeline import LedgerOutcome, offload_batch
from tiering_assets.cli.shared.exit_codes import worst
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import load_settings
from tiering_assets.spark.runner import open_spark_runner


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy and verify the ledgers, publish them with --execute; return the exit code."""
    parser = argparse.ArgumentParser(description="Offload ledgers as a Spark application.")
    parser.add_argument("ledger_ids", nargs="+", type=int, metavar="LEDGER_ID")
    parser.add_argument("--execute", action="store_true", help="publish, after verification")
    chosen = parser.parse_args(arguments)
    settings = with_cores_of_session(load_settings().settings)
    with reporting() as report, opened(settings) as stack:
        outcomes = offload_batch(stack, chosen.ledger_ids, publish=chosen.execute)
        for outcome in outcomes:
            report(document(outcome))
    failed = [outcome.error for outcome in outcomes if outcome.error is not None]
    return worst(failed) if failed else 0


def with_cores_of_session(settings: Settings) -> Settings:
    """The session exists; the setting only says how many tasks run at once, for budgets."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName(settings.spark.app_name).getOrCreate()
    cores = max(1, session.sparkContext.defaultParallelism)
    return replace(settings, spark=replace(settings.spark, master=f"local[{cores},4]"))


@contextmanager
def opened(settings: Settings) -> Iterator[Stack]:
    run_id = uuid4().hex[:12]
    with (
        open_spark_runner(settings, run_id=run_id) as runner,
        open_stack(settings, runner=runner, run_id=run_id) as stack,
    ):
        yield stack


@contextmanager
def reporting() -> Iterator[Any]:
    """What takes a document: Dagster, where Pipes launched us, or standard output."""
    if "DAGSTER_PIPES_CONTEXT" not in os.environ:
        yield lambda said: sys.stdout.write(json.dumps(said) + "\n")
        return
    from dagster_pipes import PipesEnvVarParamsLoader, PipesS3MessageWriter, open_dagster_pipes

    writer = None  # a file or standard output, for whoever launches this as a subprocess
    if "bucket" in PipesEnvVarParamsLoader().load_messages_params():
        import boto3

        writer = PipesS3MessageWriter(client=boto3.client("s3"))
    with open_dagster_pipes(message_writer=writer) as pipes:
        yield pipes.report_custom_message


def document(outcome: LedgerOutcome) -> dict[str, Any]:
    return {
        "ledger_id": outcome.ledger_id,
        "state": outcome.state,
        "parts_sent": outcome.parts_sent,
        "error": None if outcome.error is None else str(outcome.error),
        "wait": None if outcome.wait is None else str(outcome.wait),
    }


if __name__ == "__main__":
    sys.exit(main())
