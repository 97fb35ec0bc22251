"""The diagram in docs/states.md, drawn from `decide_state`: which event takes a ledger from where
to where.

Owns: arrows are computed. What can happen is listed here as changes of evidence; what state that
makes is asked of look/ledger/states.py, for everything that can follow from a ledger just created.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tiering_assets.look.ledger.states import LedgerState, StateEvidence, decide_state

BEGIN, END = "<!-- states: generated -->", "<!-- /states -->"
_CREATED = StateEvidence(
    listed=True,
    open=True,
    context_complete=False,
    context_other=False,
    marked_deleted=False,
    in_bookkeeper=True,
    claimed=False,
    has_index_object=False,
    certified=False,
    quarantined=False,
    published=False,
    lag_elapsed=False,
    held=False,
)


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    possible: Callable[[StateEvidence], bool]
    change: dict[str, bool]


def _in(*states: LedgerState) -> Callable[[StateEvidence], bool]:
    return lambda now: decide_state(now) in states


_NEW_ATTEMPT = {"has_index_object": False, "certified": False, "quarantined": False}
_S = LedgerState
EVENTS = (
    Event("the broker closes it", _in(_S.OPEN), {"open": False}),
    Event(
        "a run claims it",
        lambda now: not now.claimed and _in(_S.SEALED, _S.COPIED, _S.QUARANTINED)(now),
        {"claimed": True, **_NEW_ATTEMPT},
    ),
    Event("objects written", _in(_S.COPYING), {"has_index_object": True}),
    Event(
        "read back equal",
        lambda now: now.claimed and now.has_index_object and not now.quarantined,
        {"certified": True},
    ),
    Event(
        "read back differs",
        lambda now: now.claimed and now.has_index_object and not now.certified,
        {"quarantined": True},
    ),
    Event("the run ends", lambda now: now.claimed, {"claimed": False}),
    Event("clean-up", _in(_S.COPIED), {"has_index_object": False}),
    Event("published", _in(_S.VERIFIED), {"context_complete": True, "published": True}),
    Event("a later check fails", _in(_S.VERIFIED, _S.RELEASE_DUE), {"quarantined": True}),
    Event("the lag passes", _in(_S.PUBLISHED), {"lag_elapsed": True}),
    Event("held", _in(_S.PUBLISHED, _S.RELEASE_DUE), {"held": True}),
    Event("the hold is lifted", _in(_S.HELD), {"held": False}),
    Event("marked", _in(_S.RELEASE_DUE), {"marked_deleted": True}),
    Event("the bookie copy is deleted", _in(_S.RELEASING), {"in_bookkeeper": False}),
    Event("BookKeeper loses it", _in(_S.SEALED), {"in_bookkeeper": False}),
    Event("retention trims it", _in(_S.SEALED, _S.RELEASED), {"listed": False}),
)


def transitions() -> list[tuple[LedgerState, str, LedgerState]]:
    """(from, event, to) of all that can follow, each once, in the order of states and events."""
    edges = set()
    seen, ahead = {_CREATED}, [_CREATED]
    while ahead:
        now = ahead.pop()
        for number, event in enumerate(EVENTS):
            if not now.listed or not event.possible(now):
                continue
            changes: dict[str, Any] = event.change
            then = replace(now, **changes)
            before, after = decide_state(now), decide_state(then)
            if before is not after:
                edges.add((before, number, after))
            if then not in seen:
                seen.add(then)
                ahead.append(then)
    order = [*LedgerState]
    found = sorted(edges, key=lambda edge: (order.index(edge[0]), edge[1], order.index(edge[2])))
    return [(before, EVENTS[number].name, after) for before, number, after in found]


def diagram() -> str:
    """A Mermaid state diagram, as it stands in the page between its marks."""
    arrows = [
        f"    {before.value} --> {after.value}: {name}" for before, name, after in transitions()
    ]
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> open", *arrows, "```"]
    return "\n".join(lines)


def drawn_into(page: str) -> str:
    """The page with its diagram as the code has it. ValueError without the two marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{diagram()}\n{END}{after}"
