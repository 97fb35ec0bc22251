"""Runs the probe once in every slot of a Spark session.

Owns: as many tasks as the session has slots, placed one a partition, each of which keeps its slot
for some seconds so that none takes two. A worker whose code is refused is a row; a job that Spark
gives up is told in a sentence, for then Spark never came to our code.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from tiering_assets.resources import ending
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_of_workers import plain_settings
from tiering_assets.resources.spark_master import parse_master
from tiering_assets.spark.bootstrap import checked
from tiering_assets.spark.lost_jobs import explain
from tiering_assets.spark.probe import answer_columns, this_software
from tiering_assets.spark.session import open_session, packages_name
from tiering_assets.tasks.worker_rows import (
    ProbeAnswers,
    WorkerOrder,
    WorkerRow,
    decode_row,
    encode_order,
)

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession
    from pyspark.sql.types import StructField, StructType

HOLD_S = 2.0
"""Longer than Spark takes to start all tasks of a job, once the workers' Python runs."""

_ENTRY = "tiering_assets.spark.probe:run_probes"


def probe_workers(settings: Settings, order: WorkerOrder) -> ProbeAnswers:
    """Probe every slot of the session that the settings name. Errors as in `open_session`."""
    with open_session(settings) as session:
        return probe_session(session, settings, order)


def probe_session(session: SparkSession, settings: Settings, order: WorkerOrder) -> ProbeAnswers:
    """Probe every slot of a session that runs."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    slots = parse_master(settings.spark).cores
    document = encode_order(replace(order, hold_s=HOLD_S))
    values = [(slot, document, json.dumps(answer_columns(slot, ""))) for slot in range(slots)]
    run_partition = checked(
        _ENTRY, {"plain": plain_settings(settings)}, packages=packages_name(settings)
    )
    answers = ProbeAnswers(driver=this_software(), slots=slots)
    try:
        placed = session.createDataFrame(values, _asked()).repartitionById(slots, "slot")
        rows = placed.mapInArrow(run_partition, _answered()).collect()
    except (PySparkException, Py4JError, OSError) as error:
        if ending.asked():
            raise KeyboardInterrupt from error
        return replace(answers, failure=str(explain(str(error) or type(error).__name__)))
    return replace(answers, rows=tuple(map(_answer, rows)))


def _answer(row: Row) -> WorkerRow:
    if row["error"]:
        return WorkerRow(slot=row["slot"], error=row["error"])
    return decode_row(row["document"])


def _asked() -> StructType:
    """The slot is the partition and an int; `refusal` is the bootstrap's."""
    from pyspark.sql import types as t

    slot = t.StructField("slot", t.IntegerType(), nullable=False)
    return t.StructType([slot, *_texts("document", "refusal")])


def _answered() -> StructType:
    """The columns of `answer_columns`; whole numbers of Python are longs."""
    from pyspark.sql import types as t

    slot = t.StructField("slot", t.LongType(), nullable=False)
    return t.StructType([slot, *_texts("document", "error", "error_class")])


def _texts(*names: str) -> list[StructField]:
    from pyspark.sql import types as t

    return [t.StructField(name, t.StringType(), nullable=False) for name in names]
