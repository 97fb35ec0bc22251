"""What goes on when a brake is taken off, as metadata and records say it now.

Owns: it is said before the brake goes, for the one who has to answer for it. Nothing is decided by
it: each release and each copy is judged by its own gate afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack
    from tiering_assets.look.brakes.scopes import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Permits:
    """`ledgers` of `topics` are next; topics include those that have none to go on with."""

    topics: int
    ledgers: int


def scopes_text(scopes: Sequence[Scope]) -> str:
    """The first three of them, for a question."""
    return ", ".join(map(str, scopes[:3])) + (" …" if len(scopes) > 3 else "")


def releases_permitted(stack: Stack, scopes: Sequence[Scope]) -> Permits:
    """Ledgers under these holds whose release is due now."""
    from tiering_assets.automation.choices import due_by_topic

    names, only = _covered(stack, scopes)
    due = due_by_topic(stack, names)
    ids = [i for found in due.values() for i in found if only is None or i in only]
    return Permits(topics=len(names), ledgers=len(ids))


def copies_permitted(stack: Stack, scopes: Sequence[Scope]) -> Permits:
    """Ledgers under these pauses that a copy could take up or finish."""
    from tiering_assets.automation.choices import sealed_ledgers

    names, _only = _covered(stack, scopes)
    return Permits(topics=len(names), ledgers=len(sealed_ledgers(stack, names)))


def _covered(stack: Stack, scopes: Sequence[Scope]) -> tuple[list[str], frozenset[int] | None]:
    """Managed ledgers that scopes cover, and the only ledgers that are meant where ids are."""
    from tiering_assets.look.brakes.scopes import topics_covered
    from tiering_assets.look.ledger.survey import ml_names_of

    ids = [int(scope.name) for scope in scopes if scope.kind == "ledger"]
    if ids:
        return sorted(set(ml_names_of(stack, ids).values())), frozenset(ids)
    return sorted({name for scope in scopes for name in topics_covered(stack, scope)}), None
