"""Both sources made known to a session of Spark."""

from __future__ import annotations

from typing import Any, Final

from tiering_assets.lineage.in_spark.ledger_source import PulsarLedgers
from tiering_assets.lineage.in_spark.table_source import CatalogueTable

_FILTERS: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: Any) -> None:
    """Let it read `pulsar_ledgers` and `tierkeeper_table`, and say which filters leave out rows.

    Without that setting, which is off by default, Spark refuses a source that asks for filters:
    then option `filters` is to be `false`.
    """
    spark.conf.set(_FILTERS, "true")
    for source in (PulsarLedgers, CatalogueTable):
        spark.dataSource.register(source)
