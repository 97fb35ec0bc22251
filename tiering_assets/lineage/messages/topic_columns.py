"""Columns of a message, with the two that tell of which topic it is. Pure.

Owns: a topic is written as people write it, with neither scheme nor partition.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa

from tiering_assets.cold import columns
from tiering_assets.cold.columns import COLUMNS
from tiering_assets.resources.arrow_columns import scalar
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name

_PARTITION: Final[Any] = pa.int32()  # null where there are none
OF_TOPIC: Final[pa.Schema] = pa.schema([("topic", pa.string()), ("partition", _PARTITION)])
EVERY: Final[pa.Schema] = pa.schema([*OF_TOPIC, *COLUMNS])


def schema_of(names: Collection[str]) -> pa.Schema:
    """The same as of a message alone. ValueError for one that is of neither."""
    return columns.schema_of(names, EVERY)


@cache
def topic_of(ml_name: str) -> tuple[str, int | None]:
    """The topic of a managed ledger, and which partition it is, None where there are none."""
    name = parse_managed_ledger_name(ml_name)
    return str(name.unpartitioned).partition("://")[2], name.partition


def with_topic(found: pa.RecordBatch, ml_name: str, names: Sequence[str]) -> pa.RecordBatch:
    """Columns by these names, those of the topic among them."""
    topic, partition = topic_of(ml_name)
    told: dict[str, Any] = {
        "topic": scalar(topic),
        "partition": None if partition is None else scalar(partition).cast(_PARTITION),
    }
    found_columns = [
        found.column(name) if name not in told else _repeated(told[name], found.num_rows)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(found_columns, schema=schema_of(names))


def _repeated(value: Any, count: int) -> Any:
    return pa.nulls(count, _PARTITION) if value is None else pa.repeat(value, count)
