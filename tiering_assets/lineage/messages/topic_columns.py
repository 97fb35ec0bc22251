"""Columns of a message, with those that tell of which topic it is and what its value is. Pure.

Owns: a topic is written as people write it, with neither scheme nor partition. A value has the type
of its topic's newest schema, so its column is there only where it is asked for.
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

_BYTES: Final[Any] = pa.binary()
_PARTITION: Final[Any] = pa.int32()  # null where there are none
OF_TOPIC: Final[pa.Schema] = pa.schema([("topic", pa.string()), ("partition", _PARTITION)])
EVERY: Final[pa.Schema] = pa.schema([*OF_TOPIC, *COLUMNS])
OF_VALUE: Final = ("value", "value_error")


def schema_of(names: Collection[str], value: Any = _BYTES) -> pa.Schema:
    """The same as of a message alone; `value` is the type of that. ValueError for unknown ones."""
    return columns.schema_of(names, _with_value(value))


def _with_value(value: Any) -> pa.Schema:
    return pa.schema([*EVERY, (OF_VALUE[0], value), (OF_VALUE[1], pa.string())])


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
    value = found.schema.field(OF_VALUE[0]).type if OF_VALUE[0] in found.schema.names else _BYTES
    return pa.RecordBatch.from_arrays(found_columns, schema=schema_of(names, value))


def _repeated(value: Any, count: int) -> Any:
    return pa.nulls(count, _PARTITION) if value is None else pa.repeat(value, count)
