"""Lots of bytes carried to Spark's workers and back, some of them under way at once.

Owns: a lot has a job of its own, which hands over as it ends. When nobody waits any more, those
that are under way end, and no other one begins: a lot should take seconds.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tiering_assets.resources import ending, errors
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_of_workers import plain_settings
from tiering_assets.resources.spark_master import parse_master
from tiering_assets.spark.bootstrap import checked
from tiering_assets.spark.lost_jobs import explain
from tiering_assets.spark.lot_worker import answer_columns
from tiering_assets.spark.session import open_session, packages_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_ENTRY = "tiering_assets.spark.lot_worker:run_lots"


@contextmanager
def open_lots(settings: Settings, entry: str, arguments: Mapping[str, Any]) -> Iterator[SparkLots]:
    """A carrier to what `entry` names in workers. Errors as in `open_session`."""
    with open_session(settings) as session:
        lots = SparkLots(session, settings, entry, arguments)
        try:
            yield lots
        finally:
            lots.end()


class SparkLots:
    """`at_once` lots are worked on side by side."""

    def __init__(
        self, session: SparkSession, settings: Settings, entry: str, arguments: Mapping[str, Any]
    ) -> None:
        self._session = session
        self.at_once = parse_master(settings.spark).cores
        self._pool = ThreadPoolExecutor(self.at_once, thread_name_prefix="spark-lot")
        plain = {"plain": plain_settings(settings), "entry": entry, "arguments": dict(arguments)}
        self._run_partition = checked(_ENTRY, plain, packages=packages_name(settings))

    def submit(self, lot: bytes) -> Future[bytes]:
        """Its answer. What went wrong there is an error of its class here."""
        return self._pool.submit(self._job, lot)

    def end(self) -> None:
        """Wait for what is under way, and begin nothing."""
        self._pool.shutdown(cancel_futures=True)

    def _job(self, lot: bytes) -> bytes:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            asked = self._session.createDataFrame([(lot, json.dumps(answer_columns()))], _asked())
            placed = asked.coalesce(1)
            [row] = placed.mapInArrow(self._run_partition, _answered()).collect()
        except (PySparkException, Py4JError, OSError) as error:
            if ending.asked():
                raise KeyboardInterrupt from error
            raise explain(str(error) or type(error).__name__) from None
        if row["error_class"]:
            raise error_of(row["error_class"], row["error"])
        return b64decode(row["lot"])


def error_of(kind: str, said: str) -> Exception:
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, TierkeeperError):
        return found.retold(said)
    return TierkeeperError(f"a Spark worker failed: {kind}: {said}")


def _asked() -> StructType:
    from pyspark.sql import types as t

    return t.StructType(
        [
            t.StructField("lot", t.BinaryType(), nullable=False),
            t.StructField("refusal", t.StringType(), nullable=False),
        ]
    )


def _answered() -> StructType:
    """The columns of `answer_columns`."""
    from pyspark.sql import types as t

    return t.StructType(
        [
            t.StructField("lot", t.StringType(), nullable=False),
            t.StructField("error", t.StringType(), nullable=False),
            t.StructField("error_class", t.StringType(), nullable=False),
        ]
    )
