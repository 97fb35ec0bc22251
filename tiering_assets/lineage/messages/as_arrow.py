"""Messages that left the bookies, for programs: Arrow batches without Spark and without a broker.

Owns: what is asked is judged at once, and nothing is read before the first batch is asked for; one
block at a time from then on. pandas, Polars and DuckDB take a reader of Arrow as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from tiering_assets.ground.stack import open_stack
from tiering_assets.lineage.messages.options import DEFAULT, ColdOptions, cold_options
from tiering_assets.lineage.messages.plan import plan_messages, reading
from tiering_assets.lineage.messages.read_messages import read_messages
from tiering_assets.lineage.messages.topic_schemas import with_schemas
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import load_settings


def messages(
    topic: str,
    *,
    begin: str = "",
    until: str = "",
    columns: Sequence[str] = (*DEFAULT.split(","),),
    markers: bool = False,
    pieces: bool = False,
    verify: bool = False,
    on_error: str = "fail",
    include_hot: bool = False,
    transactions: str = "all",
    value: bool = False,
    protobuf: tuple[bytes, str] | None = None,
    settings: Settings | None = None,
) -> pa.RecordBatchReader:
    """Messages of a time, in the order of each topic, of partitions one after the other.

    Args:
        topic: `tenant/namespace/topic`, or a pattern such as `public/default/order-*`.
        begin: a time, a minute or a day; UTC if it says no zone. Without it the oldest is first.
        until: the end, which belongs to it. Without it the newest is last.
        columns: of topic_columns.py; docs/cold-messages.md says what each is.
        markers: also what brokers wrote, and no consumer sees.
        pieces: pieces of large messages as they are stored.
        verify: judge the CRC32C of each entry.
        on_error: "fail", or "row" for a row whose column `error` says what is wrong.
        include_hot: also sealed ledgers that lie on bookies alone. Reads do not fence.
        value: also `value`, of the type of the topic's newest archived schema, and `value_error`.
            The schemas are read at once, and the topic is no pattern.
        protobuf: a FileDescriptorSet and the full name of a message in it, for PROTOBUF schemas,
            whose values are bytes without it.
        transactions: "all", or "committed" for messages of none and of those that were committed.
        settings: where everything is; else the file and the environment, as commands take them.

    Raises:
        ValueError: topic, time or column cannot be meant.
        FormatError: the descriptor has no such message.
        CatalogueError, by the first batch: the topic is not in the catalogue.
        FormatError, by any batch: an entry or block that is named cannot be read.
        CatalogueError, by any batch: a transaction that is named is not decided.
    """
    flags = {"markers": markers, "pieces": pieces, "verify": verify, "include_hot": include_hot}
    flags["value"] = value
    asked = cold_options(
        {
            "topic": topic,
            **({"from": begin} if begin else {}),
            **({"until": until} if until else {}),
            "columns": ",".join(columns),
            "on_error": on_error,
            "transactions": transactions,
            **{name: str(value) for name, value in flags.items()},
        }
    )
    if asked.messages.with_values:
        asked = replace(asked, messages=replace(asked.messages, protobuf=protobuf))
        with open_stack(settings or load_settings().settings) as stack:
            asked = with_schemas(stack, asked)
    return pa.RecordBatchReader.from_batches(asked.schema, _batches(asked, settings))


def _batches(asked: ColdOptions, settings: Settings | None) -> Iterator[pa.RecordBatch]:
    with open_stack(settings or load_settings().settings) as stack:
        plan = plan_messages(stack, asked)
        with reading(stack, plan) as read:
            for _number, found in read_messages(
                read, plan.blocks, asked.messages, before=plan.before, after=plan.after
            ):
                yield found
