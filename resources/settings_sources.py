"""Where settings come from: flags over environment over TOML file over default, with each origin.

Owns: the only reading of TIERKEEPER_* variables and of the settings file. A name nobody knows is an
error with the nearest known one, for a setting that is silently ignored is worse than none. An
error names setting, origin, value and what was expected; the value of a secret, and of a name we do
not know, appears nowhere.

The file is --config, else TIERKEEPER_CONFIG, else ./tierkeeper.toml where that exists. A credential
may also lie in a file of its own, named by its variable with _FILE behind it, as containers mount
secrets; the variable itself beats it, for that is how local Spark workers inherit what was read.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tiering_assets.resources.bookkeeper.address_map import AddressMap
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import SECTIONS, Settings, StoreSettings
from tiering_assets.resources.settings_bounds import BOUNDS

ENV_PREFIX = "TIERKEEPER_"
CONFIG_VARIABLE = "TIERKEEPER_CONFIG"
# Not settings: which file to read, and where fault tests end the process (ground/effects.py).
_OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "TIERKEEPER_CRASH_AT"})
DEFAULT_FILE = "tierkeeper.toml"
DEFAULT_ORIGIN = "default"
FILE_SUFFIX = "_FILE"
MASK = "***"

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_EXPECTED = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings and, by `section.field`, where each came from. Its repr shows no secret."""

    settings: Settings
    origins: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One line of `config show`: everything as text, secrets masked."""

    name: str
    value: str
    origin: str
    default: str
    help: str


@dataclass(frozen=True, slots=True)
class _Known:
    name: str
    field: Field[Any]

    @property
    def variable(self) -> str:
        return ENV_PREFIX + self.name.replace(".", "_").upper()

    @property
    def secret(self) -> bool:
        return bool(self.field.metadata["secret"])

    @property
    def type(self) -> str:
        return str(self.field.type)


def _known_settings() -> dict[str, _Known]:
    plain = Settings()
    return {
        f"{section}.{field.name}": _Known(f"{section}.{field.name}", field)
        for section in SECTIONS
        for field in fields(getattr(plain, section))
    }


_KNOWN = _known_settings()
_VARIABLES = {known.variable: known for known in _KNOWN.values()}
_FILE_VARIABLES = {known.variable + FILE_SUFFIX: known for known in _KNOWN.values() if known.secret}


def load_settings(
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> LoadedSettings:
    """Read all sources and check the result. `flags` are by `section.field`; `file` is --config.

    Raises:
        SettingsError: an unknown name, a value of another type, or one that breaks a rule.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    origins = dict.fromkeys(_KNOWN, DEFAULT_ORIGIN)
    path = _file_path(environ, file)
    layers = [] if path is None else [_from_file(path)]
    layers += [_from_environment(environ), _from_flags(flags or {})]
    for layer in layers:
        for known, raw, origin in layer:
            values[known.name] = _converted(known, raw, origin)
            origins[known.name] = origin
    settings = Settings()
    for section in SECTIONS:
        changes = {
            name.partition(".")[2]: value
            for name, value in values.items()
            if name.startswith(f"{section}.")
        }
        changed: Any = replace(getattr(settings, section), **changes)
        settings = replace(settings, **{section: changed})
    loaded = LoadedSettings(settings, origins)
    _check(loaded)
    return loaded


def require_store(settings: Settings) -> StoreSettings:
    """The object store's settings, for commands that need one. SettingsError without a bucket."""
    if not settings.store.bucket:
        raise SettingsError(
            "store.bucket is not set: name the bucket the brokers offload to "
            f"({_KNOWN['store.bucket'].variable}, or bucket under [store] in {DEFAULT_FILE})"
        )
    return settings.store


def describe(loaded: LoadedSettings) -> tuple[SettingRow, ...]:
    """Every setting in the order of settings.py."""
    return tuple(
        SettingRow(
            name=known.name,
            value=_shown(known, _value(loaded.settings, known)),
            origin=loaded.origins[known.name],
            default=_shown(known, known.field.default),
            help=known.field.metadata["help"],
        )
        for known in _KNOWN.values()
    )


_Raw = tuple[_Known, object, str]


def _file_path(environ: Mapping[str, str], file: Path | None) -> Path | None:
    if file is not None:
        return file
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE])
    default = Path(DEFAULT_FILE)
    return default if default.is_file() else None


def _from_file(path: Path) -> list[_Raw]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"settings file {path}: {error.strerror}") from error
    except UnicodeDecodeError:  # its text would quote the file's bytes
        raise SettingsError(f"settings file {path}: not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        place = str(error).rpartition("(")[2].rstrip(")")  # the rest may quote the file
        raise SettingsError(f"settings file {path}: not TOML ({place})") from None
    found: list[_Raw] = []
    for section, table in tables.items():
        if section not in SECTIONS:
            raise _unknown(f"section [{section}]", path, section, SECTIONS)
        if not isinstance(table, dict):
            raise SettingsError(f"settings file {path}: {section} must be a table: [{section}]")
        for field, raw in table.items():
            name = f"{section}.{field}"
            if name not in _KNOWN:
                raise _unknown(f"setting {name}", path, name, _KNOWN)
            found.append((_KNOWN[name], raw, f"file {path}"))
    return found


def _from_environment(environ: Mapping[str, str]) -> list[_Raw]:
    found: list[_Raw] = []
    for variable, raw in environ.items():
        if not variable.startswith(ENV_PREFIX) or variable in _OTHER_VARIABLES:
            continue
        if variable in _VARIABLES:
            found.append((_VARIABLES[variable], raw, f"environment {variable}"))
        elif variable in _FILE_VARIABLES:
            known = _FILE_VARIABLES[variable]
            if known.variable not in environ:
                found.append((known, _mounted(variable, raw), f"file {raw} ({variable})"))
        else:
            names = (*_VARIABLES, *_FILE_VARIABLES, CONFIG_VARIABLE)
            raise _unknown(f"variable {variable}", "the environment", variable, names)
    return found


def _mounted(variable: str, path: str) -> str:
    """The credential that lies in a file; line ends at its end are the editor's."""
    try:
        text = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SettingsError(f"{variable}: {path}: {error.strerror}") from error
    except UnicodeDecodeError:  # its text would quote the file's bytes
        raise SettingsError(f"{variable}: {path}: not UTF-8") from None
    if not text:
        raise SettingsError(f"{variable}: {path} is empty: is the secret mounted?")
    return text


def _from_flags(flags: Mapping[str, str]) -> list[_Raw]:
    for name in flags:
        if name not in _KNOWN:
            raise _unknown(f"setting {name}", "a flag", name, _KNOWN)
    return [(_KNOWN[name], raw, "flag") for name, raw in flags.items()]


def _unknown(what: str, where: object, name: str, known: Iterable[str]) -> SettingsError:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return SettingsError(f"unknown {what} in {where}{hint}")


def _converted(known: _Known, raw: object, origin: str) -> object:
    value = _from_text(known.type, raw) if isinstance(raw, str) else _from_toml(known.type, raw)
    if value is None:
        shown = MASK if known.secret else repr(raw)
        raise SettingsError(f"{known.name} ({origin}): {shown} is not {_EXPECTED[known.type]}")
    return value


def _from_text(kind: str, text: str) -> object | None:
    """The value, or None where the text is not of that kind."""
    if kind == "str":
        return text
    plain = text.strip().lower()
    if kind == "bool":
        return True if plain in _TRUE else False if plain in _FALSE else None
    try:
        number = int(plain) if kind == "int" else float(plain)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _from_toml(kind: str, raw: object) -> object | None:
    match kind, raw:
        case "bool", bool():
            return raw
        case _, bool():
            return None
        case "int", int():
            return raw
        case "float", int() | float():
            return float(raw) if math.isfinite(raw) else None
        case _:
            return None


def _value(settings: Settings, known: _Known) -> object:
    section, _, field = known.name.partition(".")
    return getattr(getattr(settings, section), field)


def _shown(known: _Known, value: object) -> str:
    if known.secret:
        return MASK if value else ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(loaded: LoadedSettings) -> None:
    """Rules that hold whatever command runs."""
    settings = loaded.settings
    for known in _KNOWN.values():
        value = _value(settings, known)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        rule = BOUNDS[known.name].broken_by(value)
        if rule is not None:
            raise _broken(loaded, known.name, rule)
    scheme, found, rest = settings.metadata.store.partition(":")
    if scheme != "zk" or not found or not rest:
        raise _broken(
            loaded,
            "metadata.store",
            "only ZooKeeper is supported, as zk:host:port[,host:port][/chroot]",
        )
    if bool(settings.store.access_key) != bool(settings.store.secret_key):
        missing = "secret_key" if settings.store.access_key else "access_key"
        raise SettingsError(f"store.{missing} is not set: set both keys, or neither")
    AddressMap.parse(settings.bookies.address_map)
    _check_url(loaded, "store.endpoint", may_be_empty=True)
    _check_url(loaded, "broker.admin_url", may_be_empty=False)


def _check_url(loaded: LoadedSettings, name: str, *, may_be_empty: bool) -> None:
    url = str(_value(loaded.settings, _KNOWN[name]))
    if not url and may_be_empty:
        return
    origin = loaded.origins[name]
    if "@" in url:  # not shown: it may hold a password
        raise SettingsError(f"{name} ({origin}): must not hold credentials, nor any '@'")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise _broken(loaded, name, "must be a URL like http://host:port")


def _broken(loaded: LoadedSettings, name: str, rule: str) -> SettingsError:
    known = _KNOWN[name]
    value = _shown(known, _value(loaded.settings, known))
    return SettingsError(f"{name} ({loaded.origins[name]}): {value!r}: {rule}")
