"""Which word on tiering a topic is in force: that of tiering.toml and of people's pauses, combined.

Owns: the strongest word wins (disabled over paused over enabled), and neither source lifts the
other's: inside tiering.toml the nearest level speaks, while of pauses each that covers the topic
does. Every word that switches a topic off is named, so that nobody lifts one and wonders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tiering_assets.ground.own_policy import OwnPolicies, TieringMode
from tiering_assets.ground.reasons import Reason, Wait

_REASONS = {TieringMode.DISABLED: Reason.DISABLED, TieringMode.PAUSED: Reason.PAUSED}
_STRONGEST_FIRST = (TieringMode.DISABLED, TieringMode.PAUSED, TieringMode.ENABLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseInForce:
    """A pause that covers the topic. `scope` is topic, namespace or all; `text` says who and why."""

    scope: str
    mode: TieringMode
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeWord:
    """One source's word on a topic. `origin` is as `policy show` prints it."""

    mode: TieringMode
    origin: str
    text: str


def words_on(own: OwnPolicies, topic: str, pauses: Sequence[PauseInForce]) -> tuple[ModeWord, ...]:
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
    off = [word for word in words_on(own, topic, pauses) if word.mode in _REASONS]
    return Wait(_REASONS[off[0].mode], "; ".join(word.text for word in off)) if off else None
