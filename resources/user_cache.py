"""Files of the user's cache: what can be made again at any time, and is for its owner alone.

Owns: where they lie, and that one is there whole or not at all. It is written under a name of its
own, and renamed. Folders that are made for it are the owner's alone, and so is the file.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".tmp-"
"""How the name of a file begins that is still written, or whose writer was killed."""


def user_cache() -> Path:
    """`tierkeeper` in XDG_CACHE_HOME, or in ~/.cache. FileNotFoundError where nobody has a home."""
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(root).expanduser() / "tierkeeper"
    except RuntimeError as error:
        raise FileNotFoundError("no home folder is known, and XDG_CACHE_HOME is not set") from error


def replace_file(path: Path, data: bytes) -> None:
    """Write it in the place of the one that may be there. OSError where that cannot be done."""
    make_private(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)  # 0600, as mkstemp has it
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def make_private(folder: Path) -> None:
    """Make it, and what it lies in, where they are not there yet."""
    missing = []
    for one in (folder, *folder.parents):
        if one.exists():
            break
        missing.append(one)
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
