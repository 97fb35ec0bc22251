"""Sessions of the engine that answers SQL, kept for tables that stay open in this process.

Owns: a session remembers the footers of files that it has read, which are half of a question's
requests. One is used by one thread at a time; who comes meanwhile has one of its own, and after a
failure it is not used again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Protocol

from tiering_assets.resources.last_used import LastUsed

_KEPT_MAX: Final = 8
_NO_PAGE_INDEX: Final = "set datafusion.execution.parquet.enable_page_index = false"
"""It is one more request for each file, and our rows lie so that files and groups are pruned."""
Key = tuple[tuple[str, int, int], ...]


class Asked(Protocol):
    """A table as it is open."""

    @property
    def delta(self) -> Any: ...
    @property
    def version(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _Session:
    """`tables` are those that it was made for: as long as they live no others have their ids. One
    that was written to by this process has another version.
    """

    builder: Any
    tables: tuple[Asked, ...]
    views: dict[str, str]
    busy: Lock = field(default_factory=Lock)


class KeptSessions:
    """By the tables that are asked, the ones that were used last."""

    def __init__(self) -> None:
        self._kept = LastUsed[Key, _Session](_KEPT_MAX)

    @contextmanager
    def over(self, tables: Mapping[str, Asked], views: Mapping[str, str]) -> Iterator[Any]:
        """A session with these tables and views, in which questions are asked one by one."""
        key = tuple(
            sorted((name, id(table.delta), table.version) for name, table in tables.items())
        )
        session = self._kept.get(key)
        if session is None or session.views != views or not session.busy.acquire(blocking=False):
            session = _Session(_new(tables, views), (*tables.values(),), dict(views))
            session.busy.acquire()
        try:
            yield session.builder
        except BaseException:
            self._kept.drop(key)
            raise
        finally:
            session.busy.release()
        self._kept.keep(key, session)


def _new(tables: Mapping[str, Asked], views: Mapping[str, str]) -> Any:
    from deltalake import QueryBuilder

    builder = QueryBuilder()
    builder.execute(_NO_PAGE_INDEX).read_all()
    for name, table in tables.items():
        builder = builder.register(name, table.delta)
    for name, view in views.items():
        builder.execute(f"create view {name} as {view}").read_all()
    return builder


SESSIONS: Final = KeptSessions()
"""Of this process."""
