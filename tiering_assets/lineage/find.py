"""Questions to the catalogue's tables: which block has a message, a time, a byte?

Owns: each answer is rows of one look at the tables. What is not in them is a CatalogueError that
says how far they go and what to do next. Nothing else is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import gt, lt
from typing import Any, Final

from tiering_assets.catalogue.facts.known_ledger import BY_BROKER
from tiering_assets.catalogue.view import OF_LEDGERS, AsOf, Tables, answer, rows_of
from tiering_assets.lineage.asked import (
    MessagePlace,
    Span,
    is_like,
    is_of,
    is_pattern,
    parse_topic,
)
from tiering_assets.lineage.placed_block import (
    COLUMNS,
    PlacedBlock,
    attempt_that_counts,
    placed_block,
)
from tiering_assets.offload_format.keys import parse_key
from tiering_assets.resources.errors import CatalogueError, IntegrityError
from tiering_assets.resources.lots import lots_of
from tiering_assets.resources.metastore.topic_names import TopicName
from tiering_assets.resources.sql import rows_among, sql_text, sql_time
from tiering_assets.resources.tables import rows_in

OF_BLOCKS: Final = ("blocks", *OF_LEDGERS)
"""Tables that questions for blocks need."""
BLOCKS_MAX: Final = 100_000  # that one answer about a time has
_IDS_AT_ONCE: Final = 10_000
_NAMES: Final = ", ".join(f'"{name}"' for name in COLUMNS)
_SELECT: Final = f"select {_NAMES} from blocks where "  # noqa: S608 - our columns


def block_of_message(tables: Tables, place: MessagePlace, as_of: AsOf) -> PlacedBlock:
    """The block that has the entry, of the attempt that counts."""
    ledger = next(iter(rows_of(tables, [place.ledger_id])), None)
    if ledger is None:
        raise CatalogueError(
            f"ledger {place.ledger_id} is not in the catalogue ({as_of}): "
            f"`tierkeeper catalogue post` brings what was written since, `tierkeeper ledger show "
            f"{place.ledger_id}` asks the servers"
        )
    uid = attempt_that_counts(ledger)
    if uid is None:
        raise CatalogueError(_without_blocks(ledger, as_of))
    return _one(
        tables,
        f"ledger_id = {place.ledger_id} and uid = {sql_text(uid)} "
        f"and first_entry_id <= {place.entry_id} and last_entry_id >= {place.entry_id}",
        ledger,
        f"ledger {place.ledger_id} has entries 0 to {(ledger['entries'] or 0) - 1}, and no block "
        f"in the catalogue ({as_of}), has entry {place.entry_id}: `tierkeeper lineage "
        f"coverage {ledger['topic']}` tells gaps",
    )


def _without_blocks(ledger: Mapping[str, Any], as_of: AsOf) -> str:
    ledger_id, state = ledger["ledger_id"], ledger["state"]
    if ledger["offloaded_by"] == BY_BROKER:
        return (
            f"ledger {ledger_id} ({state}) was copied by a broker, and no deep look that read all "
            f"of it is in the catalogue ({as_of}): `tierkeeper scrub run --execute`, then "
            "`tierkeeper catalogue post`"
        )
    return (
        f"ledger {ledger_id} ({state}) has no certified attempt in the catalogue ({as_of}): "
        f"`tierkeeper ledger show {ledger_id}` asks the servers"
    )


def block_of_byte(tables: Tables, key: str, offset: int, as_of: AsOf) -> PlacedBlock:
    """The block that has this byte, of the attempt that the key names. ValueError for others."""
    parsed = parse_key(key)
    if parsed is None or parsed.is_index:
        raise ValueError(f"{key!r} is not the key of a data object: expected <uuid>-ledger-<id>")
    ledger = next(iter(rows_of(tables, [parsed.ledger_id])), None)
    return _one(
        tables,
        f"ledger_id = {parsed.ledger_id} and uid = {sql_text(str(parsed.uid))} "
        f'and "offset" <= {offset} and "offset" + length > {offset}',
        ledger,
        f"no block of {key} in the catalogue ({as_of}), has byte {offset}: "
        f"`tierkeeper object show {key}` reads its index, whoever wrote it",
    )


def blocks_of_span(
    tables: Tables, topic: TopicName, span: Span | None, where: str = "true"
) -> list[PlacedBlock]:
    """Blocks whose publish range meets the span, and those that have none, in the topic's order.

    Without a span all of them. `where` is what else their rows must meet.
    """
    of_topic, is_one = _rows_of_topic(topic)
    rows = _rows_of_span(tables, f"{of_topic} and {where}", span, str(topic))
    return _that_count(tables, [row for row in rows if is_one(row["topic"])])


def blocks_of_topics(
    tables: Tables, pattern: str, span: Span | None, where: str = "true"
) -> list[PlacedBlock]:
    """The same of all topics that are named like `public/default/order-*`, and of partitions."""
    of_topics, _ = rows_of_topics(tables, pattern)
    return _that_count(tables, _rows_of_span(tables, f"{of_topics} and {where}", span, pattern))


def rows_of_topics(
    tables: Tables, topic: str, table: str = "blocks"
) -> tuple[str, Callable[[str], bool]]:
    """What stands behind `select` for rows of a topic, or of those like a pattern.

    And of which managed ledgers that answers are: of a few others rows may come as well.
    """
    if not is_pattern(topic):
        return _rows_of_topic(parse_topic(topic), table)
    everything = answer(tables, "select distinct topic from ledgers where topic is not null")
    every: list[Any] = everything["topic"].to_pylist()
    names: list[str] = [name for name in every if is_like(name, topic)]
    return f"from {rows_among(table, 'topic', names)} where true", lambda _name: True


def _rows_of_topic(topic: TopicName, table: str = "blocks") -> tuple[str, Callable[[str], bool]]:
    where = f"from {table} where {of_topic_named(topic.managed_ledger_name)}"
    return where, lambda name: is_of(name, topic)


def _rows_of_span(tables: Tables, where: str, span: Span | None, what: str) -> list[dict[str, Any]]:
    if span is not None:
        inside = f"publish_max >= {sql_time(span.first)} and publish_min <= {sql_time(span.last)}"
        where += f" and (publish_min is null or publish_max is null or ({inside}))"
    rows = answer(tables, f"select {_NAMES} {where} limit {BLOCKS_MAX + 1}")
    if rows.num_rows > BLOCKS_MAX:
        raise CatalogueError(
            f"more than {BLOCKS_MAX} blocks of {what} may have messages of that time: ask for a "
            "shorter one, or with `tierkeeper catalogue sql`"
        )
    return rows_in(rows)


def _that_count(tables: Tables, rows: Sequence[Mapping[str, Any]]) -> list[PlacedBlock]:
    """Of attempts that count, in order."""
    ledgers = _ledgers(tables, {row["ledger_id"] for row in rows})
    blocks = (placed_block(row, ledgers.get(row["ledger_id"])) for row in rows)
    return sorted((one for one in blocks if one.counts), key=_in_order)


def blocks_of_ledgers(tables: Tables, ledger_ids: Sequence[int]) -> list[PlacedBlock]:
    """Blocks of the attempts that count, in order."""
    rows = [
        row
        for lot in lots_of(ledger_ids, _IDS_AT_ONCE)
        for row in rows_in(answer(tables, f"{_SELECT}ledger_id in ({', '.join(map(str, lot))})"))
    ]
    return _that_count(tables, rows)


def blocks_before(tables: Tables, block: PlacedBlock) -> Iterator[PlacedBlock]:
    """Those of its topic, or partition, before it, the nearest first; of attempts that count."""
    return _from_it_on(tables, block, back=True)


def blocks_after(tables: Tables, block: PlacedBlock) -> Iterator[PlacedBlock]:
    """The same behind it, the nearest first."""
    return _from_it_on(tables, block, back=False)


def _from_it_on(tables: Tables, block: PlacedBlock, *, back: bool) -> Iterator[PlacedBlock]:
    """Two questions for each ledger."""
    of_topic = f"topic = {sql_text(block.topic)} and ledger_id"
    nearest, beyond, is_beyond = ("max", "<", lt) if back else ("min", ">", gt)
    ledger_id: int | None = block.ledger_id
    while ledger_id is not None:
        ledgers = _ledgers(tables, [ledger_id])
        rows = rows_in(answer(tables, f"{_SELECT}{of_topic} = {ledger_id}"))
        found = [placed_block(row, ledgers.get(ledger_id)) for row in rows]
        for one in sorted(found, key=_in_order, reverse=back):
            if one.counts and is_beyond(_in_order(one), _in_order(block)):
                yield one
        [next_] = answer(
            tables,
            f"select {nearest}(ledger_id) as id from blocks "  # noqa: S608 - quoted
            f"where {of_topic} {beyond} {ledger_id}",
        ).to_pylist()
        ledger_id = next_["id"]


def require_topic(tables: Tables, topic: TopicName, as_of: AsOf) -> None:
    """CatalogueError where no ledger of the topic is in the catalogue."""
    where = of_topic_named(topic.managed_ledger_name)
    found = answer(tables, f"select distinct topic from ledger_changes where {where}")  # noqa: S608 - quoted
    if not any(is_of(row["topic"], topic) for row in found.to_pylist()):
        raise CatalogueError(
            f"{topic} is not in the catalogue ({as_of}): `tierkeeper catalogue post` "
            "brings what was written since, `tierkeeper topic list` prints names"
        )


def of_topic_named(ml_name: str) -> str:
    """It, or what may be a partition of it."""
    partitions = sql_text(f"{ml_name}-partition-")
    return f"(topic = {sql_text(ml_name)} or starts_with(topic, {partitions}))"


def _in_order(block: PlacedBlock) -> tuple[str, int, int]:
    return block.topic, block.ledger_id, block.part


def _ledgers(tables: Tables, ledger_ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    return {
        row["ledger_id"]: row
        for lot in lots_of(sorted(ledger_ids), _IDS_AT_ONCE)
        for row in rows_of(tables, lot)
    }


def _one(
    tables: Tables, where: str, ledger: Mapping[str, Any] | None, otherwise: str
) -> PlacedBlock:
    found = rows_in(answer(tables, _SELECT + where))
    if not found:
        raise CatalogueError(otherwise)
    if len(found) > 1:
        parts = ", ".join(str(row["part"]) for row in found)
        raise IntegrityError(
            f"ledger {found[0]['ledger_id']}: blocks {parts} overlap in the catalogue: `tierkeeper "
            f"lineage coverage {found[0]['topic']}` tells more"
        )
    return placed_block(found[0], ledger)
