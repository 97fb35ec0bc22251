"""Tables in the bucket that other tools read, too: Delta Lake, by delta-rs.

Owns: rows and the mark that says how far they go are one commit, so that nothing is in a table
twice or not at all. Commits take turns: one is made only on the table as its writer saw it. A
commit is never judged by its error: its answer may be lost, or another writer may have been faster.
Mark and turn are read again and tell which.

delta-rs must not be used in a process that was forked after its import: it is imported when a table
is opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

from tiering_assets.resources.errors import CatalogueError, PrerequisiteError
from tiering_assets.resources.object_store.s3_client import credentials_of

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from tiering_assets.resources.settings import StoreSettings

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SAID_MAX = 400
_PACKAGE = "deltalake"
_FILE_BYTES = 64 * 1024 * 1024
_KEPT = {  # a reader that opened a version can finish
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
    "delta.checkpointInterval": "50",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """Where tables lie: a folder or `s3://bucket/prefix`, and what its client is told."""

    root: str
    options: Mapping[str, str] = field(repr=False)  # credentials among them


def place_at(root: str, settings: StoreSettings) -> TablePlace:
    """A folder, or an address at the store, with the credentials that are valid now."""
    if not root.startswith("s3://"):
        return TablePlace(root=root, options={})
    access_key, secret_key, token = credentials_of(settings)
    options = {
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": secret_key,
        "AWS_REGION": settings.region,
        "AWS_CONDITIONAL_PUT": "etag",  # so that of two commits of one number one fails
        "TIMEOUT": f"{max(1, round(settings.read_timeout_s))}s",
        "CONNECT_TIMEOUT": f"{max(1, round(settings.connect_timeout_s))}s",
    }
    if token is not None:
        options["AWS_SESSION_TOKEN"] = token
    if settings.endpoint:
        options |= {"AWS_ENDPOINT_URL": settings.endpoint, "AWS_ALLOW_HTTP": "true"}
    return TablePlace(root=root.rstrip("/"), options=options)


class Table:
    """A table as it was when it was opened; `mark` is the page that its rows go to, 0 if none.

    `turn` counts the commits that added rows: rows of a later one are newer.
    """

    MARK = "day-book"
    TURN = "turn"

    def __init__(self, place: TablePlace, name: str, delta: DeltaTable) -> None:
        self._place, self.name, self._delta = place, name, delta
        self._read: dict[str, Any] = {}  # what is asked of the log more than once

    @property
    def mark(self) -> int:
        return self._of_log(self.MARK)

    @property
    def turn(self) -> int:
        return self._of_log(self.TURN)

    @property
    def version(self) -> int:
        return self._delta.version()

    def told(self) -> Mapping[str, Any]:
        """What the newest commit says of itself; nothing before the first rows."""
        if not self.turn:
            return {}
        if "told" not in self._read:
            self._read["told"] = next(iter(self._delta.history(1)), {})
        newest: Mapping[str, Any] = self._read["told"]
        return newest

    def _of_log(self, name: str) -> int:
        if name not in self._read:  # each time a request
            self._read[name] = self._delta.transaction_version(name) or 0
        found: int = self._read[name]
        return found

    def append(self, rows: pa.Table, *, told: Mapping[str, str], mark: int | None = None) -> bool:
        """Add rows that go to `mark`, or to that of before; True also if a commit with this mark is
        there already.

        False where another writer was faster: nothing was added. Open the table again then.
        CatalogueError where it cannot be said or done.
        """
        from deltalake import CommitProperties, Transaction, write_deltalake

        before, turn = self.mark, self.turn
        if mark is not None and mark <= before:
            raise ValueError(f"table {self.name}: mark {mark} is not behind {before}")
        marks = [] if mark is None else [Transaction(self.MARK, mark)]
        self._read.clear()
        try:
            write_deltalake(
                self._delta,
                rows,
                mode="append",
                target_file_size=_FILE_BYTES,
                commit_properties=CommitProperties(
                    custom_metadata=dict(told),
                    app_transactions=[Transaction(self.TURN, turn + 1), *marks],
                ),
            )
        except Exception as error:  # noqa: BLE001 - whatever it says, mark and turn tell what is so
            now = open_table(self._place, self.name, rows.schema)
            if now.turn == turn:
                upto = "of a scan" if mark is None else f"up to page {mark}"
                raise CatalogueError(
                    f"table {self.name} in {self._place.root}: rows {upto} could not be "
                    f"added: {_said(error)}; nothing else waits for it, repeat"
                ) from None
            return mark is not None and now.mark >= mark
        return True


def open_table(place: TablePlace, name: str, schema: pa.Schema, *, make: bool = False) -> Table:
    """The newest version. One that is not there is empty, or is made.

    CatalogueError if it cannot be read.
    """
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError
    except ModuleNotFoundError:
        raise PrerequisiteError(
            f"tables need a package that is not installed: pip install {_PACKAGE}"
        ) from None
    uri, options = f"{place.root}/{name}", dict(place.options)
    try:
        try:
            return Table(place, name, DeltaTable(uri, storage_options=options))
        except TableNotFoundError:
            if not make:
                return _empty(place, name, schema)
            DeltaTable.create(
                uri, schema, mode="ignore", configuration=_KEPT, storage_options=options
            )
            return Table(place, name, DeltaTable(uri, storage_options=options))
    except Exception as error:  # noqa: BLE001 - a library's errors become one of ours
        raise CatalogueError(
            f"table {name} in {place.root} cannot be opened: {_said(error)}; nothing else waits "
            "for it"
        ) from None


def _empty(place: TablePlace, name: str, schema: pa.Schema) -> Table:
    """One without rows, which lies in a folder of its own as long as it is used."""
    from deltalake import DeltaTable

    folder = mkdtemp(prefix="tierkeeper-")
    table = Table(place, name, DeltaTable.create(folder, schema))
    finalize(table, rmtree, folder, ignore_errors=True)
    return table


def ask(sql: str, tables: Mapping[str, Table]) -> pa.Table:
    """Rows of one SQL question over tables by these names, each as it was when it was opened."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    builder = QueryBuilder()
    try:
        for name, table in tables.items():
            builder = builder.register(name, table._delta)
        return pa.table(builder.execute(sql).read_all())
    except Exception as error:  # noqa: BLE001 - a library's errors become one of ours
        raise CatalogueError(f"the catalogue cannot answer: {_said(error)}") from None


def _said(error: Exception) -> str:
    """What a library says in coloured lines, in one plain one."""
    return " ".join(_COLOUR.sub("", str(error)).split())[:_SAID_MAX]
