"""What the commits of a table say: the marks that they gave, and what they tell of themselves.

Owns: the file of a commit never changes, so each is read once whatever is asked of it, the newest
first: delta-rs reads all of them for each mark. What these files do not say is asked of delta-rs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.plain_text import said
from tiering_assets.resources.table_place import TablePlace, files_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LOG: Final = "_delta_log"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_READ_MAX: Final = 3  # commits: delta-rs reads those behind the last checkpoint side by side
_BACK: Final = (20, 500)  # commits that are asked of delta-rs for one that says something


@dataclass(frozen=True, slots=True)
class _Commit:
    marks: Mapping[str, int]
    told: Mapping[str, Any]


def newest_version(place: TablePlace, name: str) -> int | None:
    """Found as delta-rs finds it, by two requests. None where there is no table, or it cannot be
    said.
    """
    try:
        import obstore

        store = files_of(place, name)
        try:
            hint = json.loads(bytes(obstore.get(store, f"{_LOG}/_last_checkpoint").bytes()))
            behind = int(hint["version"])
        except FileNotFoundError:
            behind = 0
        listed = obstore.list(store, _LOG, offset=f"{_LOG}/{behind:020d}")
        names = (one["path"].rpartition("/")[2] for some in listed for one in some)
        found = [int(match[1]) for match in map(_COMMIT.fullmatch, names) if match]
    except Exception:  # noqa: BLE001 - who opens the table is told why
        return None
    return max(found, default=None)


class TableLog:
    """The log of a table as it was opened. What its files do not say is asked of `delta`."""

    def __init__(
        self, place: TablePlace, name: str, version: int, delta: Callable[[], DeltaTable]
    ) -> None:
        self._place, self._name, self._delta = place, name, delta
        self.version = version
        self._store: Any = None
        self._commits: list[_Commit] = []  # the newest first
        self._whole = False  # whether they are all of them
        self._unread = False  # whether the next one cannot be read
        self._newest: tuple[Any, ...] | None = None
        self._marks: dict[str, int] = {}
        self._history: dict[int, list[dict[str, Any]]] = {}

    def marked(self, name: str) -> int:
        """The newest number that a commit gave this mark, 0 if none did.

        CatalogueError of who slept until the log of its version was cleaned up.
        """
        if name not in self._marks:  # each time it would be requests
            self._marks[name] = self._mark(name)
        return self._marks[name]

    def newest_with(self, key: str, value: str | None = None) -> Mapping[str, Any]:
        """What the newest commit says that has this key, with this value; nothing if none has."""
        for told in self._told():
            if key in told and value in (None, told[key]):
                return told
        return {}

    def is_newest(self) -> bool:
        """Whether the table is as it was opened. One request.

        False also where it cannot be said: who opens the table is told why.
        """
        if not self._commits and not self._read_one():
            return False
        try:
            import obstore

            found = obstore.list(self._store, _LOG, offset=f"{_LOG}/{self.version:020d}.")
            files = [_as_stored(one) for one in next(found, ()) if one["path"].endswith(".json")]
        except Exception:  # noqa: BLE001 - a library's errors are those of the table
            return False
        return files == [self._newest]

    def _mark(self, name: str) -> int:
        for commit in self._read():
            if name in commit.marks:
                return commit.marks[name]
        if self._whole:
            return 0
        delta = self._delta()
        try:
            return delta.transaction_version(name) or 0
        except Exception as error:  # noqa: BLE001 - a library's errors become one of ours
            raise CatalogueError(
                f"table {self._name} in {self._place.root}: its log cannot be read: "
                f"{said(error)}; nothing else waits for it, repeat"
            ) from None

    def _told(self) -> Iterator[Mapping[str, Any]]:
        for commit in self._read():
            yield commit.told
        if self._whole:
            return
        for limit in _BACK:
            if limit not in self._history:  # a request for each commit
                self._history[limit] = self._delta().history(limit)
            yield from self._history[limit]
            if len(self._history[limit]) < limit:
                break

    def _read(self) -> Iterator[_Commit]:
        """The newest commits, as far back as is of use."""
        at = 0
        while at < len(self._commits) or self._read_one():
            yield self._commits[at]
            at += 1

    def _read_one(self) -> bool:
        """One more. Not where it cannot be read: delta-rs is asked then, and tells why."""
        if self._whole or self._unread or len(self._commits) == _READ_MAX:
            return False
        version = self.version - len(self._commits)
        try:
            import obstore

            if self._store is None:
                self._store = files_of(self._place, self._name)
            file = obstore.get(self._store, f"{_LOG}/{version:020d}.json")
            commit = _commit(bytes(file.bytes()))
        except Exception:  # noqa: BLE001 - a library's errors are those of the table
            self._unread = True
            return False
        if not self._commits:
            self._newest = _as_stored(file.meta)
        self._commits.append(commit)
        self._whole = version == 0
        return True


def _commit(content: bytes) -> _Commit:
    """From the lines of its file."""
    marks: dict[str, int] = {}
    told: dict[str, Any] = {}
    for line in content.splitlines():
        action = json.loads(line)
        if "txn" in action:
            marks[action["txn"]["appId"]] = action["txn"]["version"]
        if "commitInfo" in action:
            told = action["commitInfo"]
    return _Commit(marks, told)


def _as_stored(one: Any) -> tuple[Any, ...]:
    return one["path"], one["size"], one["e_tag"]
