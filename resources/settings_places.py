"""Where settings lie: names of variables, the settings file, and credentials in files of their own.

Owns: the settings file is --config, else TIERKEEPER_CONFIG, else ./tierkeeper.toml where that
exists. A credential may lie in a file of its own, named by its variable with _FILE behind it. The
variable itself beats it, for that is how local Spark workers inherit what was read. Workers read
their credentials here and no other setting, so that their image needs no library for it. No
message quotes a file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tiering_assets.resources.errors import SettingsError

ENV_PREFIX: Final = "TIERKEEPER_"
CONFIG_VARIABLE: Final = "TIERKEEPER_CONFIG"
DEFAULT_FILE: Final = "tierkeeper.toml"
FILE_SUFFIX: Final = "_FILE"
_PLACE = re.compile(r"\((at (?:line \d+, column \d+|end of document))\)$")


def variable_of(name: str) -> str:
    """`store.bucket` -> `TIERKEEPER_STORE_BUCKET`."""
    return ENV_PREFIX + name.replace(".", "_").upper()


def settings_path(environ: Mapping[str, str], file: Path | None) -> Path | None:
    """The settings file that is read; None where there is none."""
    named = file or environ.get(CONFIG_VARIABLE)
    path = Path(named or DEFAULT_FILE)
    return path if named or path.is_file() else None


def why_unreadable(error: Exception) -> str:
    """What is wrong with a file, without a word of what is in it."""
    match error:
        case OSError():
            return str(error.strerror)
        case UnicodeDecodeError():
            return "not UTF-8"
        case _:
            place = _PLACE.search(str(error))
            return f"not TOML ({place[1]})" if place else "not TOML"


def mounted(variable: str, path: str) -> str:
    """The credential that lies in a file; line ends at its end are the editor's.

    Raises:
        SettingsError: it cannot be read, or is empty.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = why_unreadable(error)
    else:
        if text:
            return text
        why = "is empty: is the secret mounted?"
    # Out here, where the error of the file, which may hold its bytes, is no context of ours.
    raise SettingsError(f"{variable}: {path}: {why}")


def own_credentials(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """By `section.field`, those of the named credentials that this process finds where it runs.

    Raises:
        SettingsError: a file that is named cannot be read.
    """
    path = settings_path(environ, None)
    tables = {} if path is None else _tables(path)
    found: dict[str, Any] = {}
    for name in names:
        section, _, field = name.partition(".")
        variable, table = variable_of(name), tables.get(section)
        if variable in environ:
            found[name] = environ[variable]
        elif variable + FILE_SUFFIX in environ:
            found[name] = mounted(variable + FILE_SUFFIX, environ[variable + FILE_SUFFIX])
        elif isinstance(table, dict) and field in table:
            found[name] = table[field]
    return found


def _tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = why_unreadable(error)
    raise SettingsError(f"settings file {path}: {why}")
