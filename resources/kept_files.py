"""Small files that can be made again, by digest, in a folder that processes share.

Owns: the folder stays within its bytes, and no error of a disk is one of who asks. A file that is
not there, cannot be read or cannot be written is an answer that is not known. Anything of it may be
deleted at any moment.

Files lie on 256 shelves by the first byte of their digest, and each shelf has its share of the
bytes. So who writes looks through one shelf, and what was used longest ago on it goes first. That
takes a millisecond with 10,000 files in all, and 33 with a million.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tiering_assets.resources.user_cache import UNFINISHED, replace_file, user_cache

FILE_BYTES_MAX: Final = 64 * 1024
SHELVES: Final = 256
BYTES_LEAST: Final = SHELVES * FILE_BYTES_MAX
"""With less there would be no room for some file."""
_FOLDER: Final = "index-cache"
_PAGE: Final = 4096  # what a disk gives a file is a multiple of it
_FREE_MIN: Final = 4 * 1024 * 1024
_UNFINISHED_S: Final = 3600.0  # nobody writes for so long
_NAME: Final = re.compile(r"[0-9a-f]{62}\.kept")

_LOG = logging.getLogger(__name__)
_told: set[Path] = set()  # folders of which this process has said that they do not serve


@dataclass(frozen=True, slots=True)
class Held:
    """What a folder has; `bytes` are those that its disk gave."""

    files: int
    bytes: int


def kept_files(root: str, bytes_max: int) -> KeptFiles | None:
    """Those in that folder, or else in the user's cache. None for less than BYTES_LEAST, or where
    nobody has a home.
    """
    if bytes_max < BYTES_LEAST:
        return None
    try:
        return KeptFiles(Path(root) if root else user_cache() / _FOLDER, bytes_max)
    except FileNotFoundError:
        return None


class _OnShelf(NamedTuple):
    used_at: float
    bytes: int
    path: str
    finished: bool


class KeptFiles:
    """`root` need not be there. Names are SHA-256 in hex. Any thread or process may ask."""

    def __init__(self, root: Path, bytes_max: int) -> None:
        self.root, self.bytes_max = root, bytes_max

    def read(self, name: str) -> bytes | None:
        """What was kept under that name; more than FILE_BYTES_MAX + 1 bytes are cut.

        What another user put there is not read.
        """
        path = self._path(name)
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_uid != os.geteuid():
                    return None
                data = file.read(FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell(error)
            return None
        with suppress(OSError):  # a disk that is only read, or it is gone by now
            os.utime(path)
        return data

    def has(self, name: str) -> bool:
        return os.path.exists(self._path(name))

    def can_keep(self, name: str = "") -> bool:
        """Whether a file of that name would be written, as far as can be told without it."""
        shelf = self._path(name).parent if name else self.root
        there = next(one for one in (shelf, *shelf.parents) if os.path.exists(one))
        try:
            free = os.statvfs(there)
        except OSError:
            return False
        room = free.f_bavail * free.f_frsize >= _FREE_MIN
        return room and there.is_dir() and os.access(there, os.W_OK | os.X_OK)

    def keep(self, name: str, data: bytes) -> bool:
        """In the place of what is there under that name; then the shelf is brought to its share.

        False where it was not written.
        """
        path = self._path(name)
        try:
            replace_file(path, data)
            self._make_room(path.parent)
        except FileNotFoundError:  # somebody deletes the folder just now
            return False
        except OSError as error:
            self._tell(error)
            return False
        return True

    def drop(self, name: str) -> None:
        """Where it cannot go, who reads it next finds out as well."""
        with suppress(OSError):
            self._path(name).unlink()

    def held(self) -> Held:
        """All that is there, by a look at each file: nine seconds for a million of them."""
        found = [
            one.bytes
            for number in range(SHELVES)
            for one in _on_shelf(self.root / f"{number:02x}")
            if one.finished
        ]
        return Held(files=len(found), bytes=sum(found))

    def _path(self, name: str) -> Path:
        return self.root / name[:2] / f"{name[2:]}.kept"

    def _make_room(self, shelf: Path) -> None:
        found, share = sorted(_on_shelf(shelf)), self.bytes_max // SHELVES
        total = sum(one.bytes for one in found if one.finished)
        begun_before = time.time() - _UNFINISHED_S
        for one in found:
            if one.finished and total > share:
                total -= one.bytes
            elif one.finished or one.used_at > begun_before:
                continue
            with suppress(FileNotFoundError):  # another process makes room as well
                Path(one.path).unlink()

    def _tell(self, error: OSError) -> None:
        if self.root not in _told:
            _told.add(self.root)
            _LOG.info("cache %s: %s; going on without it", self.root, error.strerror or error)


def _on_shelf(shelf: Path) -> Iterator[_OnShelf]:
    """Our own files there, and those that are written."""
    try:
        with os.scandir(shelf) as entries:
            for entry in entries:
                finished = _NAME.fullmatch(entry.name) is not None
                if not finished and not entry.name.startswith(UNFINISHED):
                    continue
                with suppress(FileNotFoundError):
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(facts.st_mode):
                        used = -(-facts.st_size // _PAGE) * _PAGE
                        yield _OnShelf(facts.st_mtime, used, entry.path, finished)
    except (FileNotFoundError, NotADirectoryError):
        return
