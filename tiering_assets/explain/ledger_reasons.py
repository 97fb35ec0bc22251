"""Why one ledger is no further, and what would move it, by the rules that its next step obeys.

Reads only, and with `loads_nothing` has no broker load a topic. Owns: a question that could not be
asked becomes a reason. Shadows, which are found by reading every topic, are looked for only where
nothing else stands in the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tiering_assets.ground.damage_advice import next_step
from tiering_assets.ground.reasons import NotNow, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import LedgerSight, decide_sight
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import LedgerView
from tiering_assets.look.topic.publications import Publications
from tiering_assets.look.topic.publish_gate import decide_publish
from tiering_assets.look.topic.topic_evidence import (
    UnknownShadows,
    asking_would_load,
    find_shadows,
    publish_evidence,
)
from tiering_assets.offload_format.keys import data_key
from tiering_assets.release.gate import CHECK_FAILED
from tiering_assets.release.preview import plan_release
from tiering_assets.resources.errors import BrokerError, FormatError, MetadataError

ReasonsAndStep = tuple[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class SeenLedger:
    """One ledger as it was just looked at; `publications` are those that tell of it."""

    stack: Stack
    sight: LedgerSight
    view: LedgerView
    publications: Publications


def explain(
    stack: Stack,
    sight: LedgerSight,
    view: LedgerView | None,
    publications: Publications,
    *,
    loads_nothing: bool = False,
) -> ReasonsAndStep:
    """(reasons, next step) of a ledger."""
    if view is None:
        decision = decide_sight(sight)
        return (str(decision),) if isinstance(decision, Wait) else (), "nothing to do"
    told = _EXPLAIN.get(view.state, _copy)
    try:
        if loads_nothing and told in _ASK_BROKERS and asking_would_load(stack, view.ml_name):
            return _not_asked(view)
        return told(SeenLedger(stack, sight, view, publications))
    except (BrokerError, MetadataError, FormatError) as error:
        return (f"could not be judged: {error}",), "make that answer, then look again"


def _not_asked(view: LedgerView) -> ReasonsAndStep:
    what = "publication" if view.state is LedgerState.VERIFIED else "release"
    return (
        f"what its {what} would be refused for was not asked: no broker owns the bundle of "
        f"{view.topic}, and asking would have one load topics",
    ), f"tierkeeper ledger show {view.ledger_id} --ask-topics asks all the same"


def _copy(seen: SeenLedger) -> ReasonsAndStep:
    decision = decide_sight(seen.sight)
    if isinstance(decision, Wait):
        return (str(decision),), "wait"
    return decision.notes, f"tierkeeper ledger offload {seen.view.ledger_id} --execute"


def _publish(seen: SeenLedger) -> ReasonsAndStep:
    decision = decide_sight(seen.sight)
    if isinstance(decision, Wait) or seen.sight.topic is None:
        return (str(decision),), "wait"
    refused = decide_publish(publish_evidence(seen.stack, seen.view.ml_name, seen.sight.topic))
    if isinstance(refused, NotNow):
        return tuple(refusal.text for refusal in refused.reasons), refused.reasons[0].lift
    return ("certified, and nothing forbids to publish it",), (
        f"tierkeeper ledger offload {seen.view.ledger_id} --execute"
    )


def _release(seen: SeenLedger) -> ReasonsAndStep:
    why_not, view = why_not_released(seen), seen.view
    if why_not is not None and view.offloaded_by == "broker" and view.uid is not None:
        key = data_key(view.uid, view.ledger_id)
        return why_not.reasons, f"tierkeeper object verify {key} looks for damage in its copy"
    if why_not is not None and any(one.startswith(CHECK_FAILED) for one in why_not.reasons):
        return why_not.reasons, next_step(view.ml_name)
    if why_not is not None:
        return why_not.reasons, "wait, or lift the reasons"
    return ("every condition of the release gate is met",), (
        f"tierkeeper ledger release {seen.view.ledger_id} --execute"
    )


def why_not_released(seen: SeenLedger) -> NotNow[str] | None:
    """What the release gate says of it; None when it would let it go."""
    for shadows in (UnknownShadows, find_shadows):
        [item] = plan_release(
            seen.stack,
            seen.view.ml_name,
            [seen.view.ledger_id],
            shadows=shadows(seen.stack),
            publications=seen.publications,
        )
        if isinstance(item.decision, NotNow):
            return item.decision
    return None


def _released(seen: SeenLedger) -> ReasonsAndStep:
    return ("its bookie copy is gone; readers use the object",), (
        f"nothing to do; tierkeeper ledger verify {seen.view.ledger_id} reads the object again"
    )


def _unsafe(seen: SeenLedger) -> ReasonsAndStep:
    return (
        f"{seen.view.topic} lists it without a complete offload context, and BookKeeper does "
        "not have the ledger: its messages cannot be read from anywhere",
    ), "restore the ledger's metadata node, or its bookies, from a backup; do not touch the topic"


_EXPLAIN: dict[LedgerState, Callable[[SeenLedger], ReasonsAndStep]] = {
    LedgerState.VERIFIED: _publish,
    LedgerState.PUBLISHED: _release,
    LedgerState.RELEASE_DUE: _release,
    LedgerState.RELEASING: _release,
    LedgerState.HELD: _release,
    LedgerState.RELEASED: _released,
    LedgerState.UNSAFE: _unsafe,
}
_ASK_BROKERS = (_publish, _release)
