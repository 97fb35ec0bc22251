"""Where settings come from: flags over environment over TOML file over default, with each origin.

Owns: pydantic-settings reads and merges the sources, and every problem is found at once. A name
nobody knows is an error with the nearest known one, for a setting that is silently ignored is worse
than none. Each value travels with its origin, in a box that no repr opens. The value of a secret,
and of a name we do not know, appears nowhere.
"""

from __future__ import annotations

import difflib
import operator
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, create_model
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from tiering_assets.resources.bookkeeper.address_map import AddressMap
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import KNOWN, SECTIONS, Settings, StoreSettings
from tiering_assets.resources.settings_kinds import Given
from tiering_assets.resources.settings_places import (
    CONFIG_VARIABLE,
    DEFAULT_FILE,
    ENV_PREFIX,
    FILE_SUFFIX,
    mounted,
    settings_path,
    variable_of,
    why_unreadable,
)

DEFAULT_ORIGIN = "default"
# Not settings: which file to read, which loop over entries runs (native/loader.py), and where fault
# tests end the process (ground/effects.py).
_OTHER_VARIABLES = {CONFIG_VARIABLE, "TIERKEEPER_NATIVE", "TIERKEEPER_CRASH_AT"}
_VARIABLES = {variable_of(name): name for name in KNOWN}
_MOUNTS = {variable_of(name) + FILE_SUFFIX: name for name, one in KNOWN.items() if one.secret}
_SOURCES: ContextVar[tuple[PydanticBaseSettingsSource, ...]] = ContextVar("settings_sources")


class _Sections(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="_",
        env_nested_max_split=1,
        hide_input_in_errors=True,
    )

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *_usual: Any, **_more: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return _SOURCES.get()


_CLASSES: Any = {one.name: one.default_factory for one in fields(Settings)}
_FIELDS: Any = {name: (kind, Field(default_factory=kind)) for name, kind in _CLASSES.items()}
_SECTIONS: Any = create_model("_SECTIONS", __base__=_Sections, **_FIELDS)


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


def read_settings(
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> tuple[LoadedSettings | None, list[str]]:
    """Read all sources; the settings, or a line for each problem.

    `flags` are by `section.field`; `file` is --config.
    """
    environ = os.environ if environ is None else environ
    path = settings_path(environ, file)
    problems: list[str] = [*_unknown_variables(environ)]
    variables = EnvSettingsSource(_SECTIONS)
    variables.env_vars = {k.lower(): v for k, v in environ.items() if k in _VARIABLES}
    layers = [
        _boxed(_nested(flags or {}), lambda _: "flag"),
        _boxed(variables(), lambda name: f"environment {variable_of(name)}"),
        _boxed(_nested(_mounts(environ, problems)), lambda name: _mount_origin(name, environ)),
        _boxed(_table(path, problems), lambda _: f"file {path}"),
    ]
    before = _SOURCES.set(tuple(InitSettingsSource(_SECTIONS, layer) for layer in layers))
    given = {
        f"{section}.{key}": one
        for layer in reversed(layers)
        for section, table in layer.items()
        if section in SECTIONS
        for key, one in table.items()
    }
    found: Any = None
    try:
        found = _SECTIONS()
    except ValidationError as error:
        problems += [_told(one) for one in error.errors(include_url=False)]
    finally:
        _SOURCES.reset(before)
    problems += _broken_together(given)
    if problems:
        return None, problems
    origins = dict.fromkeys(KNOWN, DEFAULT_ORIGIN) | {n: one.origin for n, one in given.items()}
    return LoadedSettings(Settings(**{n: getattr(found, n) for n in SECTIONS}), origins), []


def load_settings(
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> LoadedSettings:
    """Read all sources and check the result.

    Raises:
        SettingsError: an unknown name, a value of another kind, or one that breaks a rule.
    """
    loaded, problems = read_settings(flags, environ, file)
    if loaded is None:
        more = f" ({len(problems)} problems: see `tierkeeper config check`)" if problems[1:] else ""
        raise SettingsError(problems[0] + more)
    return loaded


def require_store(settings: Settings) -> StoreSettings:
    """The object store's settings, for commands that need one. SettingsError without a bucket."""
    if not settings.store.bucket:
        raise SettingsError(
            "store.bucket is not set: name the bucket the brokers offload to "
            f"({variable_of('store.bucket')}, or bucket under [store] in {DEFAULT_FILE})"
        )
    return settings.store


def describe(loaded: LoadedSettings) -> tuple[SettingRow, ...]:
    """Every setting in the order of settings.py."""
    return tuple(
        SettingRow(
            name=name,
            value=one.shown(operator.attrgetter(name)(loaded.settings)),
            origin=loaded.origins[name],
            default=one.shown(one.default),
            help=one.help,
        )
        for name, one in KNOWN.items()
    )


def _nested(values: Mapping[str, object]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        section, _, key = name.partition(".")
        found.setdefault(section, {})[key] = value
    return found


def _boxed(found: dict[str, Any], origin: Callable[[str], str]) -> dict[str, Any]:
    """What a source has, each value with where it is."""
    return {
        section: {key: Given(one, origin(f"{section}.{key}")) for key, one in table.items()}
        if section in SECTIONS
        else Given(table, origin(section))
        for section, table in found.items()
    }


def _mounts(environ: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    """By setting, credentials in files of their own, but where the variable itself is set."""
    found = {}
    for variable, name in _MOUNTS.items():
        if variable in environ and variable_of(name) not in environ:
            try:
                found[name] = mounted(variable, environ[variable])
            except SettingsError as error:
                problems.append(str(error))
    return found


def _mount_origin(name: str, environ: Mapping[str, str]) -> str:
    variable = variable_of(name) + FILE_SUFFIX
    return f"file {environ[variable]} ({variable})"


def _table(path: Path | None, problems: list[str]) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        path.open("rb").close()  # the library passes over a file that is not there
        found = TomlConfigSettingsSource(_SECTIONS, toml_file=path)()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(f"settings file {path}: {why_unreadable(error)}")
        return {}
    plain = [name for name, table in found.items() if name in SECTIONS and type(table) is not dict]
    problems += [f"{name} (file {path}): must be a table: [{name}]" for name in plain]
    return {name: table for name, table in found.items() if name not in plain}


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    known = (*_VARIABLES, *_MOUNTS, CONFIG_VARIABLE)
    for variable in environ:
        if variable.startswith(ENV_PREFIX) and variable not in {*known, *_OTHER_VARIABLES}:
            yield _unknown(f"variable {variable}", "environment", variable, known)


def _unknown(what: str, origin: str, name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"unknown {what} ({origin})" + (f"; did you mean {near[0]}?" if near else "")


def _told(error: Any) -> str:
    """A line for one error of pydantic; the value that it was about is still in its box."""
    (section, *_), name, given = error["loc"], ".".join(error["loc"]), error["input"]
    if section not in SECTIONS:
        return _unknown(f"section [{section}]", given.origin, section, SECTIONS)
    if name not in KNOWN:
        return _unknown(f"setting {name}", given.origin, name, KNOWN)
    return f"{name} ({given.origin}): {error['msg']}"


def _broken_together(given: Mapping[str, Given]) -> Iterator[str]:
    """Rules about more than one setting, and of a room that settings.py does not know."""
    keys = ("store.access_key", "store.secret_key")
    missing = [name for name in keys if name not in given or given[name].value == ""]
    if len(missing) == 1:
        yield f"{missing[0]} is not set: set both keys, or neither"
    ways = given.get("bookies.address_map")
    if ways is not None and isinstance(ways.value, str):
        try:
            AddressMap.parse(ways.value)
        except SettingsError as error:
            rule = str(error).partition(": ")[2]
            yield f"bookies.address_map ({ways.origin}): {rule}"
