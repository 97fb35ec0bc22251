"""Tables in the bucket that other tools read, too: Delta Lake, by delta-rs.

Owns: rows and the mark that says how far they go are one commit, so that nothing is in a table
twice or not at all. Commits take turns: one is made only on the table as its writer saw it. A
commit is never judged by its error: its answer may be lost, or another writer may have been faster.
Marks and version are read again and tell which.

delta-rs must not be used in a process that was forked after its import: it is imported when a table
is opened. Who only reads opens no table before its rows are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from functools import cache
from importlib.util import find_spec
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import finalize

from tiering_assets.resources.errors import CatalogueError, PrerequisiteError
from tiering_assets.resources.plain_text import said
from tiering_assets.resources.table_files import FILE_BYTES, TableFile
from tiering_assets.resources.table_log import TableLog, newest_version
from tiering_assets.resources.table_place import TablePlace
from tiering_assets.resources.table_sessions import SESSIONS, Views

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable, WriterProperties

_PACKAGE = "deltalake"
_ROWS_OF_GROUP = 262_144  # twice as many cost lists of 10 million ledgers twice the memory
_AT_ONCE = 20_000
_KEPT = {  # a reader that opened a version can finish
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
    # Who opens a table reads each commit behind the last one. With 10 the first tick of a process
    # asked the store 67 times, with 4 it asks 41 times (benchmarks.scale).
    "delta.checkpointInterval": "4",
}


def missing_package() -> str | None:
    """The package that tables need, if it is not installed. Imports nothing."""
    return None if find_spec(_PACKAGE) else _PACKAGE


def written_as() -> WriterProperties:
    """How files are written."""
    from deltalake import WriterProperties

    return WriterProperties(compression="ZSTD", max_row_group_size=_ROWS_OF_GROUP)


class Table:
    """A table as it was when it was opened; `mark` is the page that its rows go to, 0 if none.

    `turn` counts the commits that added rows: rows of a later one are newer. It `is_written`, or is
    an empty one in the place of one that is not.
    """

    MARK = "day-book"
    TURN = "turn"

    def __init__(
        self,
        place: TablePlace,
        name: str,
        version: int,
        delta: DeltaTable | None = None,
        *,
        is_written: bool = True,
    ) -> None:
        self._place, self.name, self._delta = place, name, delta
        self.is_written = is_written
        self._log = self._log_of(version)
        self._turn = Lock()

    @property
    def mark(self) -> int:
        return self.marked(self.MARK)

    @property
    def turn(self) -> int:
        return self.marked(self.TURN)

    @property
    def is_open(self) -> bool:
        return self._delta is not None

    @property
    def delta(self) -> Any:
        """The library's own table, which is opened now if it was not before."""
        with self._turn:
            if self._delta is None:
                try:
                    self._delta = _open(self._place, self.name, self._log.version)
                except Exception as error:  # noqa: BLE001 - a library's errors become one of ours
                    raise _unopened(self._place, self.name, error) from None
            return self._delta

    @property
    def log(self) -> TableLog:
        """What commits said up to this one's version."""
        if self._log.version != self.version:  # it was written to
            self._log = self._log_of(self.version)
        return self._log

    def _log_of(self, version: int) -> TableLog:
        return TableLog(self._place, self.name, version, lambda: self.delta)

    @property
    def version(self) -> int:
        return self._log.version if self._delta is None else self._delta.version()

    @property
    def columns(self) -> frozenset[str]:
        """One that an older version made has not all of this one."""
        return frozenset(field.name for field in self.delta.schema().fields)

    def marked(self, name: str) -> int:
        """The newest number that a commit gave this mark, 0 if none did."""
        return self.log.marked(name)

    def told(self) -> Mapping[str, Any]:
        """What the commit of the newest page says of itself; nothing before the first rows.

        Other commits may be newer, and carry what they saw, or nothing.
        """
        if not self.turn:
            return {}
        return self.newest_with("page", str(self.mark)) or self.newest_with("in_work")

    def newest_with(self, key: str, value: str | None = None) -> Mapping[str, Any]:
        """What the newest commit says that has this key, with this value; nothing if none has."""
        return self.log.newest_with(key, value)

    def files(self, column: str) -> list[TableFile]:
        """Its files in the order of a column. A file without rows is left out."""
        every = read(self.delta.get_add_actions(flatten=True))
        names = (f"min.{column}", f"max.{column}", "num_records", "size_bytes")
        # Of all columns as objects some import pandas, half a second of CPU.
        columns = (every[name].to_pylist() for name in names)
        found = [
            TableFile(first=first, last=last, rows=rows, bytes=size)
            for first, last, rows, size in zip(*columns, strict=True)
            if rows
        ]
        return sorted(found, key=lambda file: (file.first, file.last))

    @property
    def sizes(self) -> list[int]:
        """Bytes of each of its files."""
        found = read(self.delta.get_add_actions())["size_bytes"].to_pylist()
        return [size or 0 for size in found]

    def append(self, rows: pa.Table, *, told: Mapping[str, str], mark: int | None = None) -> bool:
        """Add rows that go to `mark`, or to that of before; True also if a commit with this mark is
        there already.

        False where another writer was faster: nothing was added. Open the table again then.
        CatalogueError where it cannot be said or done.
        """
        from deltalake import write_deltalake

        before = self.mark
        if mark is not None and mark <= before:
            raise ValueError(f"table {self.name}: mark {mark} is not behind {before}")
        marks = {self.TURN: self.turn + 1} | ({} if mark is None else {self.MARK: mark})

        def add(delta: DeltaTable, properties: CommitProperties) -> None:
            write_deltalake(
                delta,
                rows,
                mode="append",
                target_file_size=FILE_BYTES,
                writer_properties=written_as(),
                commit_properties=properties,
            )

        upto = "of a scan" if mark is None else f"up to page {mark}"
        if self.commit(add, f"rows {upto} could not be added", marks=marks, told=told):
            return True
        return mark is not None and self.again().mark >= mark

    def commit(
        self,
        act: Callable[[DeltaTable, CommitProperties], object],
        otherwise: str,
        *,
        marks: Mapping[str, int],
        told: Mapping[str, str],
    ) -> bool:
        """Do something that commits these marks on the table as it was opened.

        False where it failed and the table is another one by now: another writer was faster, or
        the answer was lost. Marks of the table, opened again, tell. CatalogueError where nothing
        changed: it begins with `otherwise`.
        """
        from deltalake import CommitProperties, Transaction

        before = self.version
        properties = CommitProperties(
            custom_metadata=dict(told),
            app_transactions=[Transaction(name, number) for name, number in marks.items()],
        )
        try:
            act(self.delta, properties)
        except Exception as error:  # noqa: BLE001 - whatever it says, the table tells what is so
            if self.again().version == before:
                raise CatalogueError(
                    f"table {self.name} in {self._place.root}: {otherwise}: {said(error)}; "
                    "nothing else waits for it, repeat"
                ) from None
            return False
        return True

    def again(self) -> Table:
        """As it is now. It was there, so nothing is made."""
        return open_table(self._place, self.name, None)


def open_table(
    place: TablePlace, name: str, schema: pa.Schema | None, *, make: bool = False
) -> Table:
    """The newest version. One that is not there is empty, or is made, if it has a schema.

    CatalogueError if it cannot be read.
    """
    _require_package()
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    _share_memory()
    try:
        try:
            delta = _open(place, name)
        except TableNotFoundError:
            if schema is None:
                raise
            if not make:
                return _empty(name, schema)
            uri, options = f"{place.root}/{name}", dict(place.options)
            DeltaTable.create(
                uri, schema, mode="ignore", configuration=_KEPT, storage_options=options
            )
            delta = _open(place, name)
    except Exception as error:  # noqa: BLE001 - a library's errors become one of ours
        raise _unopened(place, name, error) from None
    return Table(place, name, delta.version(), delta)


def find_table(place: TablePlace, name: str, schema: pa.Schema) -> Table:
    """The same for who only reads: its files are looked for when its rows are asked for."""
    _require_package()
    version = newest_version(place, name)
    return open_table(place, name, schema) if version is None else Table(place, name, version)


def table_at(place: TablePlace, name: str, schema: pa.Schema, version: int | None) -> Table:
    """One as it was then; None is from before it was made."""
    _require_package()
    return _empty(name, schema) if version is None else Table(place, name, version)


def _require_package() -> None:
    if (missing := missing_package()) is not None:
        raise PrerequisiteError(
            f"tables need a package that is not installed: pip install {missing}"
        )


def _open(place: TablePlace, name: str, version: int | None = None) -> DeltaTable:
    from deltalake import DeltaTable

    _share_memory()
    uri, options = f"{place.root}/{name}", dict(place.options)
    return DeltaTable(uri, version=version, storage_options=options)


def _unopened(place: TablePlace, name: str, error: Exception) -> CatalogueError:
    return CatalogueError(
        f"table {name} in {place.root} cannot be opened: {said(error)}; nothing else waits for it"
    )


@cache
def _share_memory() -> None:
    """Let Arrow take its memory from where the engine does, as answers go from one to the other: a
    tenth less of 400 MB.
    """
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def _empty(name: str, schema: pa.Schema) -> Table:
    """One without rows, which lies in a folder of its own as long as it is used."""
    from deltalake import DeltaTable

    place = TablePlace(root=mkdtemp(prefix="tierkeeper-"), options={})
    delta = DeltaTable.create(f"{place.root}/{name}", schema)
    table = Table(place, name, delta.version(), delta, is_written=False)
    finalize(table, rmtree, place.root, ignore_errors=True)
    return table


def ask(sql: str, tables: Mapping[str, Table], *, views: Views | None = None) -> pa.Table:
    """Rows of one SQL question over tables by these names, each as it was when it was opened.

    `views` are questions that have a name in it. What is no question is refused. A table that it
    does not name is not opened.
    """
    try:
        with SESSIONS.over(tables, views or {}, sql) as session:
            # Only a question can be part of another one, which would not keep its order.
            session.execute(f"explain select * from ({sql}\n)").read_all()  # noqa: S608
            return read(session.execute(sql).read_all())
    except CatalogueError:
        raise
    except Exception as error:  # noqa: BLE001 - a library's errors become one of ours
        raise CatalogueError(f"the catalogue cannot answer: {said(error)}") from None


def read(rows: Any) -> pa.Table:
    """What delta-rs answers, as a table. `pa.table` would import pandas, a second of CPU."""
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(rows).read_all()


def without_views(found: pa.Table) -> pa.Table:
    """The same with texts as most functions of Arrow want them."""
    import pyarrow as pa

    kinds = [
        field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
        for field in found.schema
    ]
    return found.cast(pa.schema(kinds))


def each_row(found: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a large answer, of which only some are objects at a time."""
    for batch in found.to_batches(max_chunksize=_AT_ONCE):
        yield from rows_in(batch)


def rows_in(found: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Its rows. `to_pylist` would import pandas for a time that has a zone; all of ours are UTC."""
    columns = (_values(column) for column in found.columns)
    return [dict(zip(found.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    import pyarrow as pa

    if not pa.types.is_timestamp(column.type) or column.type.tz != "UTC":
        found: list[Any] = column.to_pylist()
        return found
    naive: list[Any] = column.cast(pa.timestamp(column.type.unit)).to_pylist()
    return [None if one is None else one.replace(tzinfo=UTC) for one in naive]
