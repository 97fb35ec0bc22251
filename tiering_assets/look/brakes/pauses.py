"""Pauses: a person's word that a topic, a namespace or everything gets no new copies for now.

Owns: what a pause stops, copies and publications alone: what is tiered stays readable, is scrubbed,
healed and released when due. Taking one away, or changing its mode, leaves a record of who did it
and why.
"""

from __future__ import annotations

from uuid import uuid4

from tiering_assets.ground.effects import reach
from tiering_assets.ground.own_policy import PauseInForce, TieringMode, switched_off
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import (
    PAUSE,
    Brake,
    Brakes,
    Met,
    brake_of,
    read_brake,
    read_brakes,
)
from tiering_assets.look.brakes.lifting import Taken, take_away
from tiering_assets.look.brakes.scopes import Scope, still_braked, topics_covered
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records import keys
from tiering_assets.records.pause_models import Pause, PauseLift
from tiering_assets.resources.errors import FormatError


def pauses_on(pauses: Brakes, ml_name: str) -> tuple[PauseInForce, ...]:
    """Those that cover a managed ledger, the widest first."""
    return tuple(_in_force(met) for met in pauses.on(ml_name))


def _in_force(met: Met) -> PauseInForce:
    mode = TieringMode.PAUSED if met.brake is None else TieringMode(met.brake.mode)
    text = f"by the pause of {met.scope}: {met.said}"
    return PauseInForce(scope=met.scope.kind, mode=mode, text=text)


def why_off(stack: Stack, ml_name: str, pauses: Brakes | None = None) -> Wait | None:
    """Why a topic gets no new copies: by tiering.toml or by a pause, read now unless given."""
    found = read_brakes(stack, PAUSE) if pauses is None else pauses
    return switched_off(stack.own_policies, topic_of(ml_name), pauses_on(found, ml_name))


def still_off(stack: Stack, scope: Scope) -> dict[str, str]:
    """Topic by topic why those that a scope covers are switched off, here or elsewhere, read
    now.
    """
    pauses = read_brakes(stack, PAUSE)
    return still_braked(topics_covered(stack, scope), lambda name: why_off(stack, name, pauses))


def pause(stack: Stack, scope: Scope, mode: TieringMode, *, reason: str, author: str) -> bool:
    """Pause or disable; False when it was so already, and stays so for the first reason.

    Raises:
        ValueError: the mode is `enabled`, which resume() means, or the scope is one ledger.
        FormatError: a pause is there and cannot be read; it pauses all the same.
        ObjectConflictError: somebody else changed it at the same time.
    """
    if mode is TieringMode.ENABLED:
        raise ValueError("a pause is paused or disabled")
    if scope.kind == "ledger":
        raise ValueError("a pause is of a topic, of a namespace or of everything")
    wanted = Pause(
        scope=scope.kind,
        name=scope.name,
        mode="disabled" if mode is TieringMode.DISABLED else "paused",
        reason=reason,
        author=author,
        paused_at=stack.now(),
        writer=stack.writer,
    )
    key = PAUSE.key(scope)
    try:
        found, fresh = stack.book.create_or_read(key, wanted)
    except FormatError as error:
        raise FormatError(f"{error}. It pauses all the same; resume {scope} first") from error
    if found.record.mode == wanted.mode:
        return fresh
    _record_lift(stack, key, found.sha256, brake_text(brake_of(key, found.record)), reason, author)
    stack.book.replace(found, wanted)
    return True


def resume(stack: Stack, scope: Scope, *, reason: str, author: str) -> bool:
    """Take a pause away, after writing down who did so and why; False when there was none."""
    key = PAUSE.key(scope)

    def note(digest: str) -> None:
        _record_lift(stack, key, digest, _was(stack, key), reason, author)

    if take_away(stack, key, note) is not Taken.AWAY:
        return False
    reach("pause.lifted")
    return True


def _was(stack: Stack, key: str) -> str:
    try:
        stored = read_brake(stack.book, key)
    except FormatError as error:
        return f"unreadable: {error}"
    return "" if stored is None else brake_text(brake_of(key, stored.record))


def brake_text(brake: Brake) -> str:
    """One line: since when, by whom and why."""
    return f"{brake.mode} since {brake.since.isoformat()} by {brake.author}: {brake.reason}"


def _record_lift(stack: Stack, key: str, digest: str, was: str, reason: str, author: str) -> None:
    stack.book.create(
        keys.pause_lift(uuid4()),
        PauseLift(
            pause_key=key,
            pause_sha256=digest,
            was=was,
            reason=reason,
            author=author,
            lifted_at=stack.now(),
            writer=stack.writer,
        ),
    )
    reach("pause.lift_recorded")
