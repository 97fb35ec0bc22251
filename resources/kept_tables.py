"""Tables that were opened before in this process, as long as nobody has written to them since.

Owns: what is kept is only read. Each time one small question tells whether it is still the newest
version: opening a table takes ten requests and more, and a sensor's tick opens eight. One that was
deleted, or made anew, is not what it was.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

import pyarrow as pa

from tiering_assets.resources.object_store.s3_environment import is_understood
from tiering_assets.resources.tables import Table, TablePlace, open_table

_KEPT_MAX: Final = 64
_LOG: Final = "_delta_log"


class NewestVersion:
    """Whether a version of a table is the newest: its file in the log is the same one, and no other
    is behind it.
    """

    def __init__(self, place: TablePlace, name: str, version: int) -> None:
        self._place, self._name = place, name
        self._since = f"{_LOG}/{version:020d}."
        self._store: Any = None
        self._then = self._now()

    def is_it(self) -> bool:
        """One request. False also where it cannot be said: who opens the table is told why."""
        return len(self._then) == 1 and self._then == self._now()

    def _now(self) -> list[tuple[Any, ...]]:
        """Its file and those of newer versions. Nothing where it cannot be said."""
        try:
            import obstore

            if self._store is None:
                self._store = _files_of(self._place, self._name)
            found = obstore.list(self._store, _LOG, offset=self._since)
            return [
                (one["path"], one["size"], one["last_modified"], one["e_tag"])
                for one in next(found, ())
                if one["path"].endswith(".json")
            ]
        except Exception:  # noqa: BLE001 - a library's errors are those of the table
            return []


def _files_of(place: TablePlace, name: str) -> Any:
    """What lies in a table's folder. Its options are those of delta-rs, which takes them as one."""
    from obstore.store import LocalStore, S3Store

    uri = f"{place.root}/{name}"
    if "://" not in uri:
        return LocalStore(Path(uri).absolute())
    if not is_understood(os.environ):
        raise ValueError("variables of the environment that its client does not know")
    of_client = {"timeout", "connect_timeout", "aws_allow_http"}
    options = {key.lower(): value for key, value in place.options.items()}
    config: Any = {key: one for key, one in options.items() if key not in of_client}
    client: Any = {key.removeprefix("aws_"): options[key] for key in of_client & options.keys()}
    once: Any = {"max_retries": 0}  # who opens the table tries again
    return S3Store.from_url(uri, config=config, client_options=client, retry_config=once)


@dataclass(frozen=True, slots=True)
class _KeptTable:
    place: TablePlace
    table: Table
    newest: NewestVersion


class OpenedBefore:
    """By place and name, the ones that were asked for last. Any thread may ask."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], _KeptTable] = OrderedDict()
        self._lock = Lock()

    def open(self, place: TablePlace, name: str, schema: pa.Schema) -> Table:
        """As `open_table` does, for who only reads."""
        key = place.root if "://" in place.root else str(Path(place.root).absolute()), name
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept.place.options == place.options and kept.newest.is_it():
            return kept.table
        table = open_table(place, name, schema)
        with self._lock:
            self._kept.pop(key, None)
            if table.is_written:
                self._kept[key] = _KeptTable(
                    place, table, NewestVersion(place, name, table.version)
                )
            while len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        return table

    def forget(self) -> None:
        with self._lock:
            self._kept.clear()


KEPT: Final = OpenedBefore()
"""Of this process."""
