"""Writes one setting into a person's settings file; comments and order of the rest stay.

Owns: the file is replaced whole or not at all, keeps its mode, and is read back by the same loader
that every edge uses; where something stronger than the file says otherwise, nothing is written.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings_places import (
    DEFAULT_FILE,
    settings_path,
    variable_of,
    why_unreadable,
)
from tiering_assets.resources.settings_sources import load_settings

_NEW_FILE_MODE = 0o600  # it may hold secrets one day


def write_switch(
    name: str, value: bool, *, environ: Mapping[str, str], file: Path | None = None
) -> Path:
    """Write `section.field` and return the file's path. A file that says so already is left.

    Raises:
        SettingsError: the environment sets it, or the file is no settings file or cannot be
            written.
    """
    variable = variable_of(name)
    if variable in environ:
        raise SettingsError(
            f"{name} is set by {variable}={environ[variable]}, which beats the file: change it there"
        )
    path = settings_path(environ, file) or Path(DEFAULT_FILE)
    load_settings(environ=environ, file=path if path.exists() else None)  # wrong before: say so
    section, _dot, field = name.partition(".")
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        document = tomlkit.parse(text)
        table = document.setdefault(section, tomlkit.table())
        if table.get(field) is value:
            return path
        table[field] = value
        _replace(path, tomlkit.dumps(document))
    except (TOMLKitError, OSError) as error:
        why = why_unreadable(error)
    else:
        return path
    raise SettingsError(f"settings file {path}: {why}")


def _replace(path: Path, text: str) -> None:
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _NEW_FILE_MODE
    target = path.resolve()  # a link stays a link
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
