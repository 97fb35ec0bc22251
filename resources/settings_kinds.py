"""How a setting is declared: default, help, and its kind, which reads, prints and bounds it. Pure.

Owns: each number has a range, which holds on each construction, so also in `dataclasses.replace`.
An age of a trillion seconds is a slip of the hand, and would otherwise be met days later as an
overflow. A bound is far beyond what makes sense, but where more would take a guarantee away. What
is wrong is told as a SettingsError; no secret is in it, nor in a repr.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from tiering_assets.resources import quantity
from tiering_assets.resources.errors import SettingsError

MASK: Final = "***"
MIB: Final = 1024 * 1024
GIB: Final = 1024 * MIB
MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
TEN_YEARS: Final = 3653 * DAY
MANY: Final = 1_000_000_000
# `hide_input_in_errors`: pydantic would quote what it refuses, secrets too.
CONFIG: Final = ConfigDict(hide_input_in_errors=True, extra="forbid")
_SWITCH = dict.fromkeys(("true", "yes", "on", "1"), True)
_SWITCH |= dict.fromkeys(("false", "no", "off", "0"), False)
_TYPED: Final[Mapping[type, CoreSchema]] = {
    str: core_schema.str_schema(strict=True),
    bool: core_schema.bool_schema(strict=True),
    int: core_schema.int_schema(strict=True),
    float: core_schema.float_schema(strict=True, allow_inf_nan=False),
}


@dataclass(frozen=True, slots=True)
class Given:
    """A value as a source has it, and where that is. No repr of it shows the value."""

    value: object = field(repr=False)
    origin: str


@dataclass(frozen=True, slots=True)
class SettingKind:
    """`read` takes text, as flags and variables are; `rule` says what a value breaks, or None."""

    expected: str = "expected text"
    read: Callable[[str], object] = str
    printed: Callable[[Any], str] = str
    rule: Callable[[Any], str | None] = lambda _: None
    range: str = ""
    default: Any = None
    help: str = ""
    secret: bool = False

    def upto(
        self, most: float, why: str = "", *, zero: bool = False, least: float = 0
    ) -> SettingKind:
        """A number up to `most`; zero only with `zero`, and otherwise nothing below `least`."""
        first, last = self.printed(least), self.printed(most)
        because = f": {why}" if why else ""

        def rule(value: float) -> str | None:
            if value < 0:
                return "must not be negative"
            if value == 0 and not zero:
                return "must be above zero"
            if 0 < value < least:
                return f"must be at least {first}{because}"
            return f"must be at most {last}{because}" if value > most else None

        least_shown = first if least else "0" if zero else "above 0"
        return replace(self, rule=rule, range=f"{least_shown} to {last}")

    def shown(self, value: object) -> str:
        """As `config show` prints it."""
        if self.secret:
            return MASK if value else ""
        return self.printed(value)

    def __get_pydantic_core_schema__(self, source: type, _handler: object) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._checked, _TYPED[source])

    def _checked(self, given: object, typed: Callable[[object], object]) -> object:
        value = given.value if isinstance(given, Given) else given
        try:
            found = typed(self.read(value) if isinstance(value, str) else value)
        except (ValueError, KeyError):
            rule: str | None = self.expected
        else:
            rule = self.rule(found)
            if rule is None:
                return found
        said = {"said": f"{self._quoted(value)}: {rule}"}
        raise PydanticCustomError("setting", "{said}", said)

    def _quoted(self, value: object) -> str:
        """What was found; not what may be a secret, such as a URL's password, or may hold one."""
        if self.secret or "@" in str(value):
            return MASK
        return repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _no_url(value: str) -> str | None:
    try:
        parts = urlsplit(value)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if "@" in value:
        return "must hold neither credentials nor '@'"
    return None if sound else "must be a URL like http://host:port"


def _no_zookeeper(value: str) -> str | None:
    sound = value.startswith("zk:") and value != "zk:"
    return None if sound else "only ZooKeeper is supported, as zk:host:port[,host:port][/chroot]"


TEXT: Final = SettingKind()
NAME: Final = SettingKind(rule=lambda value: None if value else "must not be empty")
URL: Final = SettingKind(rule=_no_url)
URL_OR_NONE: Final = SettingKind(rule=lambda value: _no_url(value) if value else None)
ZOOKEEPER: Final = SettingKind(rule=_no_zookeeper)
SWITCH: Final = SettingKind(
    "expected true or false", lambda t: _SWITCH[t.strip().lower()], lambda value: str(value).lower()
)
NUMBER: Final = SettingKind("expected a number such as 0.5", float)
COUNT: Final = SettingKind("expected a whole number without a unit, such as 100", int)
DURATION: Final = SettingKind(
    quantity.DURATION_EXPECTED, quantity.parse_duration, quantity.duration_text
)
SIZE: Final = SettingKind(quantity.SIZE_EXPECTED, quantity.parse_size, quantity.size_text)
RATE: Final = SettingKind(quantity.RATE_EXPECTED, quantity.parse_rate, quantity.rate_text)

EVIDENCE: Final = "what was seen longer ago is no evidence for a delete"
TIMEOUT: Final = DURATION.upto(HOUR, "a timeout; a longer wait is of no use")
AGE: Final = DURATION.upto(TEN_YEARS, "ten years")
AGE_OR_0: Final = DURATION.upto(TEN_YEARS, "ten years", zero=True)
COUNT_OR_0: Final = COUNT.upto(MANY, zero=True)
SHARE_OR_0: Final = NUMBER.upto(1, zero=True)
PAYLOAD: Final = SIZE.upto(1024 * 1024 * GIB)
PAYLOAD_OR_0: Final = SIZE.upto(1024 * 1024 * GIB, zero=True)
RATE_OR_0: Final = RATE.upto(1_000_000 * MIB, zero=True)
REQUESTS_OR_0: Final = COUNT.upto(1_000_000 * MIB, zero=True)


def setting(
    default: Any, help_text: str, kind: SettingKind | None = None, *, secret: bool = False
) -> Any:
    """A field with its help; a secret one is masked everywhere."""
    own = kind or (SWITCH if isinstance(default, bool) else TEXT)
    declared: Any = Field(default=default, description=help_text, repr=not secret)
    declared.metadata.append(replace(own, default=default, help=help_text, secret=secret))
    return declared


def told_by_name(section: str, declared: Any) -> dict[str, SettingKind]:
    """Have a section tell what is wrong as a SettingsError; its settings by `section.field`."""
    construct = declared.__init__

    @functools.wraps(construct)
    def told(self: object, **values: Any) -> None:
        try:
            construct(self, **values)
        except ValidationError as error:
            found = error.errors(include_url=False)
        else:
            return
        # Out here, where pydantic's error, which holds the values, is no context of ours.
        raise SettingsError("; ".join(f"{section}.{one['loc'][0]}: {one['msg']}" for one in found))

    declared.__init__ = told
    return {f"{section}.{n}": one.metadata[0] for n, one in declared.__pydantic_fields__.items()}
