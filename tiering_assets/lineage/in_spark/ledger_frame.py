"""Messages as a DataFrame where the process that plans for Spark knows nothing of the store.

With Spark Connect that is the server. Here the client asks the catalogue, and workers are told what
to read as rows. They need tierkeeper and its settings, as with the source.

Owns: how the code comes to workers is for the caller to say (spark/carried.py), else it is there.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from tiering_assets.ground.stack import open_stack
from tiering_assets.lineage.in_spark.ledger_parts import (
    as_spark_takes,
    partitions_of,
    read_partition,
)
from tiering_assets.lineage.messages.options import cold_options
from tiering_assets.lineage.messages.plan import plan_messages
from tiering_assets.lineage.messages.read_messages import MessagesAsked
from tiering_assets.lineage.messages.topic_schemas import with_schemas
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import load_settings

_PART: Final = "part"
Batches = Iterator[pa.RecordBatch]
READ: Final = f"{__name__}:read_rows"
"""What workers run, by its name."""
Carry = Callable[[str, bytes], Callable[[Batches], Batches]]
"""From that name and what it is told beside batches: what to give to mapInArrow."""


def installed(_entry: str, told: bytes) -> Callable[[Batches], Batches]:
    """It is there, and nothing is sent."""
    return partial(read_rows, told=told)


def messages_frame(
    spark: Any, settings: Settings | None = None, *, carry: Carry = installed, **options: str
) -> Any:
    """The options are those of the source; `from` and others are given as `**{"from": ...}`.

    ValueError for one that cannot be meant; CatalogueError for a topic that is not in it.
    """
    asked = cold_options(options)
    with open_stack(settings or load_settings().settings) as stack:
        asked = with_schemas(stack, asked)
        found = partitions_of(stack, plan_messages(stack, asked))
    parts = [(pickle.dumps(one),) for one in found]
    schema = from_arrow_schema(as_spark_takes(asked.schema.empty_table()).schema)
    named = spark.createDataFrame(parts, f"{_PART} binary").repartition(max(1, len(parts)))
    return named.mapInArrow(carry(READ, pickle.dumps(asked.messages)), schema)


def read_rows(batches: Batches, told: bytes) -> Batches:
    """In a worker: the messages of the parts in these rows."""
    wanted: MessagesAsked = pickle.loads(told)  # noqa: S301 - written above
    for batch in batches:
        parts: list[Any] = batch.column(_PART).to_pylist()
        for one in parts:
            yield from read_partition(pickle.loads(one), wanted)  # noqa: S301 - written above
