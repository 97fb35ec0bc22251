"""Messages that left the bookies, for programs: Arrow batches without Spark and without a broker.

Owns: what is asked is judged at once, and nothing is read before the first batch is asked for; one
block at a time from then on. pandas, Polars and DuckDB take a reader of Arrow as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa

from tiering_assets.catalogue.view import Catalogue, least
from tiering_assets.cold.columns import schema_of
from tiering_assets.ground.stack import open_stack
from tiering_assets.lineage.asked import parse_span, parse_topic
from tiering_assets.lineage.find import blocks_before, blocks_of_span, require_topic
from tiering_assets.lineage.read_messages import MessagesAsked, read_messages
from tiering_assets.resources.metastore.topic_names import TopicName
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import load_settings

USUAL: Final = (
    "ledger_id",
    "entry_id",
    "batch_index",
    "publish_time",
    "key",
    "properties",
    "payload",
)
"""Columns that most people want."""


def messages(
    topic: str,
    *,
    begin: str,
    until: str | None = None,
    columns: Sequence[str] = USUAL,
    markers: bool = False,
    pieces: bool = False,
    verify: bool = False,
    on_error: str = "fail",
    settings: Settings | None = None,
) -> pa.RecordBatchReader:
    """Messages of a time, in the order of the topic, of partitions one after the other.

    Args:
        topic: `tenant/namespace/topic`.
        begin: a time, a minute or a day; UTC if it says no zone.
        until: the end, which belongs to it; else what `begin` names is meant as a whole.
        columns: of cold/columns.py; docs/cold-messages.md says what each is.
        markers: also what brokers wrote, and no consumer sees.
        pieces: pieces of large messages as they are stored.
        verify: judge the CRC32C of each entry.
        on_error: "fail", or "row" for a row whose column `error` says what is wrong.
        settings: where everything is; else the file and the environment, as commands take them.

    Raises:
        ValueError: topic, time or column cannot be meant.
        CatalogueError, by the first batch: the topic is not in the catalogue.
        FormatError, by any batch: an entry or block that is named cannot be read.
    """
    name, span = parse_topic(topic), parse_span(begin, until)
    if on_error not in ("fail", "row"):
        raise ValueError(f"on_error is {on_error!r}: expected fail or row")
    names = [*columns, *(["error"] if on_error == "row" and "error" not in columns else [])]
    wanted = MessagesAsked(
        span=span,
        columns=names,
        markers=markers,
        pieces=pieces,
        verify=verify,
        on_error=on_error,
    )
    found = _batches(name, wanted, settings)
    return pa.RecordBatchReader.from_batches(schema_of(names), found)


def _batches(
    topic: TopicName, wanted: MessagesAsked, settings: Settings | None
) -> Iterator[pa.RecordBatch]:
    with open_stack(settings or load_settings().settings) as stack:
        catalogue = Catalogue.of(stack)
        tables = catalogue.opened()
        blocks = blocks_of_span(tables, topic, wanted.span)
        if not blocks:
            require_topic(tables, topic, least(catalogue, tables))
        before = partial(blocks_before, tables)
        for _number, found in read_messages(stack, blocks, wanted, before=before):
            yield found
