"""What keeps a table fast to ask: spans written again, rows cut, small files joined, old ones
deleted.

Contract: nothing that a reader of an opened version needs goes before the table's own retention.
Each is one commit, or none, and may be repeated; whether it was made is told as by Table.commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.table_files import FILE_BYTES
from tiering_assets.resources.tables import Table, written_as

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable


_TRIES: Final = 20


def with_columns(table: Table, schema: pa.Schema) -> Table:
    """The table with every column of this version, at its end; in rows of before they are null.

    One commit, without any data, of a table that an older version made; no request for others.
    """
    for _ in range(_TRIES):
        missing = [field for field in schema if field.name not in table.columns]
        if not missing:
            return table
        _add_columns(table, missing)
        table = table.again()
    raise CatalogueError(
        f"table {table.name}: other writers were faster {_TRIES} times when columns were to be "
        "added; nothing else waits for it, repeat"
    )


def _add_columns(table: Table, missing: Sequence[pa.Field[Any]]) -> None:
    import pyarrow as pa
    from deltalake import Schema

    fields = Schema.from_arrow(pa.schema(missing)).fields

    def add(delta: DeltaTable, properties: CommitProperties) -> None:
        delta.alter.add_columns(fields, commit_properties=properties)

    table.commit(add, "columns could not be added", marks={}, told={})


def replace_where(
    table: Table, where: str, rows: pa.Table, *, marks: Mapping[str, int], told: Mapping[str, str]
) -> bool:
    """Put rows, in their order, in the place of all that fulfil a condition."""
    from deltalake import write_deltalake

    def write(delta: DeltaTable, properties: CommitProperties) -> None:
        write_deltalake(
            delta,
            rows.combine_chunks(),  # several batches are dealt out to writers, and lose their order
            mode="overwrite",
            predicate=where,
            target_file_size=FILE_BYTES,
            writer_properties=written_as(),
            commit_properties=properties,
        )

    turn = {table.TURN: table.turn + 1}
    return table.commit(write, "rows could not be settled", marks=turn | dict(marks), told=told)


def cut_where(
    table: Table, where: str, *, marks: Mapping[str, int], told: Mapping[str, str]
) -> bool:
    """Take away all rows that fulfil a condition. The turn stays: a writer of rows goes on."""

    def cut(delta: DeltaTable, properties: CommitProperties) -> None:
        delta.delete(where, writer_properties=written_as(), commit_properties=properties)

    return table.commit(cut, "rows could not be cut", marks=marks, told=told)


def join_small(table: Table, *, told: Mapping[str, str]) -> bool:
    """Make few files of many small ones, in their order."""

    def join(delta: DeltaTable, properties: CommitProperties) -> None:
        delta.optimize.compact(
            target_size=FILE_BYTES,
            max_concurrent_tasks=1,
            writer_properties=written_as(),
            commit_properties=properties,
        )

    return table.commit(join, "small files could not be joined", marks={}, told=told)


def delete_old(table: Table, *, told: Mapping[str, str]) -> int:
    """Delete files that no version of the last days has; how many went.

    Also what writers left that were killed. Their own clocks told when a file was replaced.
    """
    gone: list[str] = []

    def delete(delta: DeltaTable, properties: CommitProperties) -> None:
        if delta.vacuum(full=True):
            gone.extend(delta.vacuum(full=True, dry_run=False, commit_properties=properties))

    table.commit(delete, "old files could not be deleted", marks={}, told=told)
    return len(gone)


def add_in_order(
    table: Table, rows: pa.Table, *, marks: Mapping[str, int], told: Mapping[str, str]
) -> bool:
    """Add rows that are in the table's order, behind those that are there."""
    from deltalake import write_deltalake

    def add(delta: DeltaTable, properties: CommitProperties) -> None:
        write_deltalake(
            delta,
            rows.combine_chunks(),
            mode="append",
            target_file_size=FILE_BYTES,
            writer_properties=written_as(),
            commit_properties=properties,
        )

    turn = {table.TURN: table.turn + 1}
    return table.commit(add, "rows could not be added", marks=turn | dict(marks), told=told)
