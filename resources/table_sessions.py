"""Sessions of the engine that answers SQL, kept for tables that stay open in this process.

Owns: a session remembers the footers of files that it has read, which are half of a question's
requests, and has of its tables those that its questions name: what nobody asks for is not opened.
One is used by one thread at a time; who comes meanwhile has one of its own, and after a failure it
is not used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Protocol

from tiering_assets.resources.last_used import LastUsed

_KEPT_MAX: Final = 8
_NO_PAGE_INDEX: Final = "set datafusion.execution.parquet.enable_page_index = false"
"""It is one more request for each file, and our rows lie so that files and groups are pruned."""
Key = tuple[tuple[str, int, int], ...]
Views = Mapping[str, Callable[[], str]]


class Asked(Protocol):
    """A table as it is open."""

    @property
    def delta(self) -> Any: ...
    @property
    def version(self) -> int: ...


@dataclass(slots=True)
class _Session:
    """`tables` are those that it was made for: as long as they live no others have their ids. One
    that was written to by this process has another version. `known` are names that it has.
    """

    builder: Any
    tables: Mapping[str, Asked]
    known: set[str] = field(default_factory=set)
    views: dict[str, str] = field(default_factory=dict)
    busy: Lock = field(default_factory=Lock)

    def fits(self, views: Mapping[str, str]) -> bool:
        return all(self.views.get(name, view) == view for name, view in views.items())

    def learn(self, text: str, views: Mapping[str, str]) -> None:
        """Have these views, and the tables whose names are in a text."""
        for name, table in self.tables.items():
            if name in text and name not in self.known:
                self.builder = self.builder.register(name, table.delta)
                self.known.add(name)
        for name in views.keys() - self.views.keys():
            self.builder.execute(f"create view {name} as {views[name]}").read_all()
            self.views[name] = views[name]


class KeptSessions:
    """By the tables that are asked, the ones that were used last."""

    def __init__(self) -> None:
        self._kept = LastUsed[Key, _Session](_KEPT_MAX)

    @contextmanager
    def over(self, tables: Mapping[str, Asked], views: Views, sql: str) -> Iterator[Any]:
        """A session for a question over these tables and views."""
        named = {name: view() for name, view in views.items() if name in sql}
        text = " ".join([sql, *named.values()])
        key = tuple(sorted((name, id(table), table.version) for name, table in tables.items()))
        session = self._kept.get(key)
        if session is None or not session.fits(named) or not session.busy.acquire(blocking=False):
            session = _Session(_new(), {**tables})
            session.busy.acquire()
        try:
            session.learn(text, named)
            yield session.builder
        except BaseException:
            self._kept.drop(key)
            raise
        finally:
            session.busy.release()
        self._kept.keep(key, session)


def _new() -> Any:
    from deltalake import QueryBuilder

    builder = QueryBuilder()
    builder.execute(_NO_PAGE_INDEX).read_all()
    return builder


SESSIONS: Final = KeptSessions()
"""Of this process."""
