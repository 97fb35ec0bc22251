"""Our own policies, `tiering.toml`: thresholds and whether to tier, by topic, namespace or for all.

    [default]
    offloadTimeInMinutes = 60
    [namespaces."public/default"]
    managedLedgerOffloadThresholdInBytes = 1073741824
    [topics."persistent://public/default/orders"]
    tiering = "paused"

Owns: a name that nobody knows is refused with the nearest known one, one field given under two
names is refused, and so is what only Pulsar or our settings can say. Names are Pulsar's, as in its
policies, in broker.conf and in PIP-17; MB are 1,048,576 bytes as in Pulsar. `disabled` and `paused`
both mean no new copies; what is tiered stays readable. Of the file's word and those of people's
pauses the strongest is in force (disabled over paused over enabled), and neither lifts the other's:
inside the file the nearest level speaks, while of pauses each that covers the topic does.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.resources.errors import FormatError, SettingsError
from tiering_assets.resources.metastore.topic_names import parse_topic_name, with_scheme

MIB = 1024 * 1024
LONG_MAX = 2**63 - 1  # Pulsar's fields are Java longs
OFF = -1


class TieringMode(StrEnum):
    """DISABLED: by policy, for good. PAUSED: for now."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPolicy:
    """What one table sets; None is not set, -1 is off."""

    mode: TieringMode | None = None
    threshold_bytes: int | None = None
    threshold_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPolicies:
    """The whole file. `topics` by full name, `namespaces` by tenant/namespace."""

    default: OwnPolicy = field(default_factory=OwnPolicy)
    namespaces: Mapping[str, OwnPolicy] = field(default_factory=dict)
    topics: Mapping[str, OwnPolicy] = field(default_factory=dict)

    def of_topic(self, topic: str) -> tuple[tuple[str, OwnPolicy], ...]:
        """(scope, table) that apply, the strongest first: partition, topic, namespace, default."""
        name = parse_topic_name(topic)
        own = [self.topics.get(full) for full in dict.fromkeys((topic, str(name.unpartitioned)))]
        found = [("topic", policy) for policy in own if policy is not None]
        namespace = self.namespaces.get(name.full_namespace)
        if namespace is not None:
            found.append(("namespace", namespace))
        return (*found, ("default", self.default))


# name in the file -> (field, factor to its unit)
_NUMBERS: Mapping[str, tuple[str, int]] = {
    "managedLedgerOffloadThresholdInBytes": ("threshold_bytes", 1),
    "managedLedgerOffloadAutoTriggerSizeThresholdBytes": ("threshold_bytes", 1),
    "offloadSizeInMB": ("threshold_bytes", MIB),
    "managedLedgerOffloadThresholdInSeconds": ("threshold_seconds", 1),
    "offloadTimeInMinutes": ("threshold_seconds", 60),
}
_MODE = "tiering"
_PULSARS = "set it in Pulsar, for a broker reads, trims and expires by its own policies alone"
_OURS = "our lag is the setting release.deletion_lag_s; the broker's own is set in Pulsar"
# Names of Pulsar's that this file cannot change.
_ELSEWHERE: Mapping[str, str] = {
    "managedLedgerOffloadDeletionLagMs": _OURS,
    "managedLedgerOffloadDeletionLagInMillis": _OURS,
    "retentionTimeInMinutes": _PULSARS,
    "retentionSizeInMB": _PULSARS,
    "messageTTLInSeconds": _PULSARS,
    "managedLedgerOffloadDriver": _PULSARS,
    "managedLedgerOffloadBucket": _PULSARS,
    "managedLedgerOffloadRegion": _PULSARS,
    "managedLedgerOffloadServiceEndpoint": _PULSARS,
    "managedLedgerOffloadedReadPriority": _PULSARS,
}
_SCOPES = ("default", "namespaces", "topics")


def parse_own_policies(text: str, where: str) -> OwnPolicies:
    """Read the file's text; `where` names it in errors.

    Raises:
        SettingsError: not TOML, an unknown name, or a value that cannot be.
    """
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise SettingsError(f"{where}: not TOML: {error}") from None
    for scope in tables:
        if scope not in _SCOPES:
            raise _unknown(f"table [{scope}]", where, scope, _SCOPES)
    return OwnPolicies(
        default=_policy(tables.get("default", {}), f"{where}: [default]"),
        namespaces=_by_name(tables, "namespaces", where, _namespace),
        topics=_by_name(tables, "topics", where, _topic),
    )


def _by_name(
    tables: Mapping[str, object], scope: str, where: str, canonical: Callable[[str, str], str]
) -> dict[str, OwnPolicy]:
    found: dict[str, OwnPolicy] = {}
    for name, table in _table(tables.get(scope, {}), f"{where}: [{scope}]").items():
        said = f'{where}: [{scope}."{name}"]'
        full = canonical(name, said)
        if full in found:
            raise SettingsError(f"{said}: {full} is there twice; keep one")
        found[full] = _policy(table, said)
    return found


def _namespace(name: str, said: str) -> str:
    parts = name.split("/")
    if len(parts) != 2 or not all(parts):
        raise SettingsError(f"{said}: expected tenant/namespace")
    return name


def _topic(name: str, said: str) -> str:
    try:
        return str(parse_topic_name(with_scheme(name)))
    except FormatError as error:
        raise SettingsError(f"{said}: {error}") from None


def _policy(table: object, said: str) -> OwnPolicy:
    mode: TieringMode | None = None
    numbers: dict[str, tuple[str, int]] = {}
    for name, value in _table(table, said).items():
        if name == _MODE:
            mode = _mode(value, said)
            continue
        if name in _ELSEWHERE:
            raise SettingsError(f"{said}: {name} cannot be set here: {_ELSEWHERE[name]}")
        if name not in _NUMBERS:
            raise _unknown(f"name {name}", said, name, (_MODE, *_NUMBERS, *_ELSEWHERE))
        target, factor = _NUMBERS[name]
        if target in numbers:
            raise SettingsError(
                f"{said}: {numbers[target][0]} and {name} are two names of one threshold; keep one"
            )
        numbers[target] = (name, _number(name, value, factor, said))
    values = {target: value for target, (_name, value) in numbers.items()}
    return OwnPolicy(
        mode=mode,
        threshold_bytes=values.get("threshold_bytes"),
        threshold_seconds=values.get("threshold_seconds"),
    )


def _mode(value: object, said: str) -> TieringMode:
    modes = [mode.value for mode in TieringMode]
    if value not in modes:
        raise SettingsError(f"{said}: {_MODE} is {value!r:.100}, expected {', '.join(modes)}")
    return TieringMode(str(value))


def _number(name: str, value: object, factor: int, said: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise SettingsError(f"{said}: {name} is {value!r:.100}, expected a whole number")
    if value == OFF:
        return OFF
    if value < 0:
        raise SettingsError(f"{said}: {name} is {value}, expected 0 or more, or -1 for off")
    if value * factor > LONG_MAX:
        raise SettingsError(f"{said}: {name} is {value}, more than Pulsar's 64 bits hold")
    return value * factor


def _table(found: object, said: str) -> Mapping[str, object]:
    if not isinstance(found, dict):
        raise SettingsError(f"{said}: expected a table, found {found!r:.100}")
    return found


def _unknown(what: str, where: str, name: str, known: Iterable[str]) -> SettingsError:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known)}"
    return SettingsError(f"{where}: unknown {what}{hint}")


_REASONS = {TieringMode.DISABLED: Reason.DISABLED, TieringMode.PAUSED: Reason.PAUSED}
_STRONGEST_FIRST = (TieringMode.DISABLED, TieringMode.PAUSED, TieringMode.ENABLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseInForce:
    """A pause that covers the topic. `scope` is topic, namespace or all; `text` says who and
    why.
    """

    scope: str
    mode: TieringMode
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeWord:
    """One source's word on a topic. `origin` is as `policy show` prints it."""

    mode: TieringMode
    origin: str
    text: str


def mode_words(
    own: OwnPolicies, topic: str, pauses: Sequence[PauseInForce]
) -> tuple[ModeWord, ...]:
    """All that is said of a topic, the strongest first. `topic` is a full name."""
    return tuple(
        sorted(_words(own, topic, pauses), key=lambda word: _STRONGEST_FIRST.index(word.mode))
    )


def _words(own: OwnPolicies, topic: str, pauses: Sequence[PauseInForce]) -> Iterator[ModeWord]:
    for pause in pauses:
        yield ModeWord(mode=pause.mode, origin=f"pause of {pause.scope}", text=pause.text)
    for scope, policy in own.of_topic(topic):
        if policy.mode is not None:
            origin = f"tiering.toml {scope}"
            text = f"by the {scope} level of tiering.toml"
            yield ModeWord(mode=policy.mode, origin=origin, text=text)
            return


def switched_off(own: OwnPolicies, topic: str, pauses: Sequence[PauseInForce]) -> Wait | None:
    """Why a topic gets no new copies. What is tiered stays readable, is healed and released."""
    off = [word for word in mode_words(own, topic, pauses) if word.mode in _REASONS]
    return Wait(_REASONS[off[0].mode], "; ".join(word.text for word in off)) if off else None
