"""Which of a ledger's reasons is the one: the closed list of rules, in their order.

Owns: the first rule that applies gives the reason, and the last applies to everything, so no ledger
has none and none has two. docs/states.md prints the rules; a test holds it to them. Facts about
where a ledger is come before what a person said, that before what a policy says, and what costs a
request a ledger comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Final

from tiering_assets.explain.reasons.backlog_reason import (
    BacklogEvidence,
    BacklogReason,
    Because,
    of_wait,
)
from tiering_assets.ground.moments import moment
from tiering_assets.ground.reasons import Reason
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.policy.selection import NotSelected

Look = Callable[[BacklogEvidence], str | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """`look` returns the detail where the rule applies, else None. `when` is the docs' sentence."""

    reason: BacklogReason
    when: str
    look: Look


def decide_backlog_reason(evidence: BacklogEvidence) -> Because:
    """The first of RULES that applies. Total: never raises, whatever contradicts itself."""
    for rule in RULES:
        detail = rule.look(evidence)
        if detail is not None:
            return Because(rule.reason, detail)
    return Because(BacklogReason.NOT_ADMITTED, _NOBODY)


_NOBODY = "policy wants it; no run has taken it up"
_PUBLISHED = {LedgerState.PUBLISHED, LedgerState.RELEASE_DUE}
_UNPROVEN = {LedgerState.SEALED, LedgerState.COPIED}
_VERIFIED = {LedgerState.VERIFIED}
_UNPUBLISHED = _UNPROVEN | _VERIFIED
_DUE = {LedgerState.RELEASE_DUE}


def _in(state: LedgerState, detail: str) -> Look:
    return lambda evidence: detail if evidence.state is state else None


def _terminated(e: BacklogEvidence) -> str | None:
    if e.state is LedgerState.OPEN and e.not_selected is NotSelected.TERMINATED:
        return f"{NotSelected.TERMINATED}; policy.terminated_last_ledger = false"
    return None


def _damaged(e: BacklogEvidence) -> str | None:
    if e.damaged is None:
        return None
    only = (
        "its only copy is" if e.state is LedgerState.RELEASED else "the copy that brokers read is"
    )
    return f"{only} broken, a check found; {e.damaged}"


def _held(e: BacklogEvidence) -> str | None:
    return e.hold or "by a release hold" if e.state is LedgerState.HELD else None


def _quarantined(e: BacklogEvidence) -> str | None:
    if e.state is LedgerState.QUARANTINED:
        return "a check of its newest copy failed; the next run makes a new one"
    if e.quarantined and e.state in _UNPUBLISHED:
        return "a check of its copy failed; the next run makes a new one"
    return None


def _by_broker(e: BacklogEvidence) -> str | None:
    if e.state in _PUBLISHED and e.by_broker:
        return (
            "by a broker's own offloader, without a certificate; `tierkeeper object scan BUCKET` "
            "looks for damage"
        )
    return None


def _no_certificate(e: BacklogEvidence) -> str | None:
    if e.state in _PUBLISHED and not e.certified:
        return "no certificate of our copy that its topic names"
    return None


def _no_publication(e: BacklogEvidence) -> str | None:
    if e.state in _PUBLISHED and not e.recorded:
        return "no record says that a broker took the publication up; the next run confirms it"
    return None


def _in_lag(e: BacklogEvidence) -> str | None:
    if e.state is not LedgerState.PUBLISHED:
        return None
    return "" if e.due_at is None else f"due after {moment(e.due_at)}"


def _goes_out(e: BacklogEvidence) -> str:
    said = "certified; goes out with its topic's next publication"
    if e.goes_out_at is None:
        return f"{said}, which is due"
    return f"{said}, by {moment(e.goes_out_at)}, or once no broker has the topic loaded"


def _due(e: BacklogEvidence) -> str | None:
    if e.state is LedgerState.RELEASE_DUE:
        return "due for release; no run has taken it up"
    return None


def _when(states: Set[LedgerState], look: Look) -> Look:
    return lambda e: look(e) if e.state in states else None


def _off(reason: Reason) -> Look:
    def look(e: BacklogEvidence) -> str | None:
        off = e.topic.switched_off
        return off.detail if off is not None and off.reason is reason else None

    return _when(_UNPUBLISHED, look)


def _not_selected(e: BacklogEvidence) -> str | None:
    if e.not_selected is None or e.not_selected is NotSelected.BELOW:
        return None
    return e.selection or str(e.not_selected)


def _below(e: BacklogEvidence) -> str | None:
    return e.selection if e.not_selected is NotSelected.BELOW else None


def _failed(e: BacklogEvidence) -> str | None:
    return None if e.failure is None else str(e.failure)


def _waits(reason: BacklogReason) -> Look:
    def look(e: BacklogEvidence) -> str | None:
        if e.wait is None:
            return None
        because = of_wait(e.wait)
        return because.detail if because.reason is reason else None

    return _when(_UNPROVEN, look)


R = BacklogReason
RULES: Final = (
    Rule(R.EXCLUDED, "last ledger of a terminated topic, by `policy`", _terminated),
    Rule(R.OPEN, "its topic writes to it", _in(LedgerState.OPEN, "its topic writes to it")),
    Rule(R.DAMAGED, "a check found the copy broken that its topic names", _damaged),
    Rule(R.EXPIRED, "its topic no longer lists it", _in(LedgerState.EXPIRED, "")),
    Rule(R.DONE, "released: brokers read the object", _in(LedgerState.RELEASED, "released")),
    Rule(
        R.UNSAFE,
        "listed, not offloaded, and not in BookKeeper",
        _in(LedgerState.UNSAFE, "BookKeeper has no such ledger and no copy is published"),
    ),
    Rule(
        R.COPYING,
        "a run holds a live claim, or a broker copies it",
        _in(LedgerState.COPYING, "a run holds a live claim, or a broker's own offload runs"),
    ),
    Rule(R.HELD, "published, under a release hold", _held),
    Rule(
        R.UNCONFIRMED,
        "marked as released, and the bookie copy is still there",
        _in(LedgerState.RELEASING, "marked, the bookie copy is there; the next run finishes it"),
    ),
    Rule(
        R.QUARANTINED, "a check of its newest copy failed, before any was published", _quarantined
    ),
    Rule(R.PUBLISHED_BY_BROKER, "a broker's own offloader wrote the copy", _by_broker),
    Rule(R.UNSAFE, "published, and its copy has no certificate", _no_certificate),
    Rule(R.UNCONFIRMED, "published, and no publication record says so", _no_publication),
    Rule(R.IN_LAG, "published, and the deletion lag has not passed", _in_lag),
    Rule(R.UNSAFE, "due, and the release gate misses evidence", _when(_DUE, lambda e: e.missing)),
    Rule(R.CAPPED, "due, and a cap on releases is reached", _when(_DUE, lambda e: e.capped)),
    Rule(R.NOT_ADMITTED, "due, and no run has taken it up", _due),
    Rule(R.DISABLED, "tiering is disabled, by a pause or by tiering.toml", _off(Reason.DISABLED)),
    Rule(R.PAUSED, "tiering is paused, by a pause or by tiering.toml", _off(Reason.PAUSED)),
    Rule(
        R.EXCLUDED,
        "its topic's policy is refused, by the rule named",
        _when(_UNPUBLISHED, lambda e: e.topic.refused),
    ),
    Rule(
        R.FAILED,
        "runs ended without a certificate; error, attempts, next try",
        _when(_UNPROVEN, _failed),
    ),
    Rule(
        R.NOT_ADMITTED,
        "its topic's policy cannot be read",
        _when(_UNPUBLISHED, lambda e: e.topic.policy_unread),
    ),
    Rule(
        R.EXCLUDED,
        "left out by the rule named: no threshold, topic unloaded, zero length",
        _when(_UNPROVEN, _not_selected),
    ),
    Rule(R.BELOW_THRESHOLD, "neither threshold is reached", _when(_UNPROVEN, _below)),
    Rule(
        R.CANNOT_READ,
        "its broker would read another place than our bucket",
        _when(_UNPUBLISHED, lambda e: e.topic.cannot_read),
    ),
    Rule(
        R.MAY_RELEASE_FIRST,
        "the broker's own deletion lag is too short",
        _when(_UNPUBLISHED, lambda e: e.topic.may_release_first),
    ),
    Rule(
        R.EXCLUDED,
        "its broker offloads on its own, and `publish.coexist` is false",
        _when(_UNPUBLISHED, lambda e: e.topic.coexists),
    ),
    # What costs a request per ledger comes last: it is asked only where nothing else applies.
    Rule(R.EXCLUDED, "a run would leave it: empty, or another's", _waits(R.EXCLUDED)),
    Rule(R.UNSEALED, "BookKeeper does not call it closed", _waits(R.UNSEALED)),
    Rule(R.UNSAFE, "BookKeeper has fewer entries than its topic, or none", _waits(R.UNSAFE)),
    Rule(
        R.NODE_TOO_LARGE,
        "verified, and its topic's node would be too large",
        _when(_VERIFIED, lambda e: e.topic.node_too_large),
    ),
    Rule(
        R.OVER_BUDGET,
        "verified, and a budget of reloads is used up",
        _when(_VERIFIED, lambda e: e.topic.over_budget),
    ),
    Rule(
        R.FAILED,
        "verified, and runs could not publish it; error, attempts, next try",
        _when(_VERIFIED, _failed),
    ),
    Rule(
        R.WAITING_TO_DISTURB,
        "verified: it goes out with its topic's next publication",
        _when(_VERIFIED, _goes_out),
    ),
    Rule(R.NOT_ADMITTED, "policy wants it, and no run has taken it up", lambda _e: _NOBODY),
)
