"""A driver in a process of its own that does what users do, with everything told that can be told.

Asked on standard input as JSON: `tasks` (of a ledger with HMAC digests), `topic` and `marker`.
Settings come from the environment. Spark logs at INFO; what Spark, Dagster and we write stays where
the environment says. tests/stack/test_secrets.py looks through all of it.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dagster as dg

from tiering_assets.catalogue.openlineage.datasets import EventPlace, posting_events
from tiering_assets.catalogue.openlineage.event_json import run_event
from tiering_assets.definitions import defs
from tiering_assets.doctor.workers import examine_workers
from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.resources.openlineage import OpenLineageEndpoint
from tiering_assets.resources.settings_sources import describe, load_settings
from tiering_assets.resources.webhook import post_webhook
from tiering_assets.spark.runner import open_spark_runner
from tiering_assets.spark.session import open_session
from tiering_assets.spark.worker_probes import probe_session
from tiering_assets.tasks.descriptors import decode_task

NO_LEDGER = 999_999_999


def _say(what: str, value: object) -> None:
    sys.stdout.write(f"{what}: {value!r}\n")
    sys.stdout.flush()


def _event() -> Any:
    place = EventPlace(instance="i", bucket="b", topics="pulsar://c", root="/t", records="r/")
    [start, _end] = posting_events(1, 2, datetime.now(UTC), place)
    return run_event(start, namespace="n", cluster="c")


def _main() -> None:
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("tiering_assets").setLevel(logging.DEBUG)
    request = json.load(sys.stdin)
    loaded = load_settings()
    settings = loaded.settings
    _say("settings", (loaded, describe(loaded)))
    try:
        post_webhook(settings.auto.webhook_url, {"event": "test"})
    except PrerequisiteError as error:
        _say("webhook", error)
    _say("lineage", OpenLineageEndpoint(settings.openlineage).send(_event(), seconds=2.0))
    with open_session(settings) as session:
        session.sparkContext.setLogLevel("INFO")
        with open_spark_runner(settings) as runner:
            rows = runner.run([decode_task(text) for text in request["tasks"]])
        _say("rows", rows)
        _say("workers", examine_workers(settings, partial(probe_session, session, settings)))
        with dg.DagsterInstance.get() as instance:
            for config in ({"topics": [request["topic"]]}, {"ledger_ids": [NO_LEDGER]}):
                done = defs.resolve_job_def("offload").execute_in_process(
                    instance=instance,
                    raise_on_error=False,
                    run_config={"ops": {"offload_ledgers": {"config": config}}},
                    tags={"marker": request["marker"]},
                )
                _say("run", (done.success, done.all_events))
    failed = [row.error for row in rows if row.error]
    if failed:
        raise SystemExit(f"tasks failed: {failed}")


if __name__ == "__main__":
    _main()
