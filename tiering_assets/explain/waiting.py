"""Sealed ledgers that wait for a threshold, or that a policy keeps from being copied. In columns.

Owns: in most topics of a large fleet the newest ledgers wait for a threshold. Where nothing else
can be said of any of them, they are judged all at once, by policies that need no topic asked. Every
other topic is left to be explained ledger by ledger: with an attempt, a failure, a claim or a
certificate in it, terminated, or with a ledger that is due or that BookKeeper has lost.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tiering_assets.explain.backlog_topic import facts_by_policy
from tiering_assets.explain.figures.count_figures import (
    COUNTED,
    full_names,
    namespaces,
    nothing_counted,
)
from tiering_assets.explain.reasons.backlog_reason import BacklogEvidence, Because
from tiering_assets.explain.reasons.backlog_rules import decide_backlog_reason
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.policy.policies import Policies, rules_of
from tiering_assets.policy.selection import (
    MS_PER_SECOND,
    NotSelected,
    Thresholds,
    reached_in_columns,
)
from tiering_assets.resources.arrow_columns import (
    filled,
    flags,
    numpy_of,
    pc,
    places,
    scalar,
    texts,
    whole,
)

_UNTOUCHED: Final = ("uid", "context_uid", "attempted_at", "published_at")
_SAID: Final = ("certified", "quarantined", "damaged", "recorded", "offloaded")
_LONG_MAX: Final = 2**63 - 1
_OFF: Final = Thresholds()
Array = Any
"""Of numpy: a value for each row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """`counted` is like COUNTED, for these `reasons`. `rest` are rows of all other topics."""

    counted: pa.Table
    reasons: tuple[Because, ...]
    rest: pa.Table


@dataclass(frozen=True, slots=True)
class _SaidOf:
    """What is said of a topic's untouched ledgers that do not reach these thresholds."""

    because: Because
    thresholds: Thresholds


def tell_waiting(
    stack: Stack,
    policies: Policies,
    rows: Any,
    *,
    there: Set[int],
    tried: Set[int],
    terminated: Set[str],
) -> Waiting:
    """Of rows of ledgers that are not settled, and of those closed after them, by topic and id.

    BookKeeper has those that are `there`; of those `tried` somebody has a claim, or a failure.
    """
    rules = rules_of(stack.settings.policy)
    if not rules.unloaded_topics:
        return Waiting(counted=nothing_counted(), reasons=(), rest=rows)
    topics = whole(rows["topic"]).dictionary_encode()
    names, of_topic = topics.dictionary.to_pylist(), numpy_of(topics.indices)
    said = _said_of_each(stack, policies, names, terminated)
    unsettled = _flags(rows["unsettled"])
    plain = _untouched(rows, there, tried, zero_length=rules.zero_length)
    plain &= ~_reached(rows, of_topic, said, int(stack.now().timestamp() * 1000))
    alike = np.bincount(of_topic, weights=unsettled & ~plain, minlength=len(names)) == 0
    alike &= np.array([one is not None for one in said], bool)
    told, mine = alike[of_topic], unsettled & alike[of_topic]
    reasons = [None if one is None else one.because.reason.value for one in said]
    among = flags(mine)
    some = rows.filter(among)
    columns = {
        "topic": full_names(topics).filter(among),
        "namespace": namespaces(topics).filter(among),
        "reason": texts(reasons).take(topics.indices).filter(among),
        "state": texts([LedgerState.SEALED.value] * len(some)),
        "certified": flags(np.zeros(len(some), bool)),
        "damaged": flags(np.zeros(len(some), bool)),
        "ledgers": places(np.ones(len(some), int)),
        "bytes": filled(some["bytes"], 0),
        "closed_at": some["closed_at"],
        "due_at": pa.nulls(len(some), COUNTED.field("due_at").type),
    }
    return Waiting(
        counted=pa.Table.from_pydict(columns, schema=COUNTED),
        reasons=tuple({one.because: 0 for n in np.unique(of_topic[mine]) if (one := said[n])}),
        rest=rows.filter(flags(~told)),
    )


def topics_above(stack: Stack, policies: Policies, rows: Any) -> list[str]:
    """Of such rows the topics with a ledger above a threshold, as far as no topic is asked."""
    topics = whole(rows["topic"]).dictionary_encode()
    names, of_topic = topics.dictionary.to_pylist(), numpy_of(topics.indices)
    said = _said_of_each(stack, policies, names, frozenset())
    above = _reached(rows, of_topic, said, int(stack.now().timestamp() * 1000))
    return [names[nth] for nth in np.unique(of_topic[above & _flags(rows["unsettled"])])]


def _said_of_each(
    stack: Stack, policies: Policies, ml_names: Sequence[str], terminated: Set[str]
) -> list[_SaidOf | None]:
    """Topics that go by their namespace are judged by it, once. None of those that ended."""
    judged = dict[str, _SaidOf | None]()
    found = list[_SaidOf | None]()
    for ml_name in ml_names:
        if ml_name in terminated:
            found.append(None)
            continue
        topic = topic_of(ml_name)
        by = policies.goes_by(topic) or topic
        if by not in judged:
            judged[by] = _judge(stack, policies, topic)
        found.append(judged[by])
    return found


def _judge(stack: Stack, policies: Policies, topic: str) -> _SaidOf | None:
    """By one topic for all that have its policy; None where that cannot be read."""
    found = policies.check(topic, ask_topic=False)
    if found.policy is None:
        return None
    thresholds = found.policy.thresholds
    evidence = BacklogEvidence(
        state=LedgerState.SEALED,
        topic=replace(facts_by_policy(stack, found), switched_off=found.switched_off),
        not_selected=NotSelected.NO_THRESHOLD if thresholds.off else NotSelected.BELOW,
    )
    because = decide_backlog_reason(evidence)
    if decide_backlog_reason(replace(evidence, not_selected=None)) == because:
        thresholds = _OFF  # whatever they say
    return _SaidOf(because, thresholds)


def _untouched(rows: Any, there: Set[int], tried: Set[int], *, zero_length: bool) -> Array:
    """Sealed, in BookKeeper, listed without a copy, and nobody has ever tried."""
    ids = numpy_of(rows["ledger_id"])
    found = _flags(rows["unsettled"]) & _flags(pc.is_valid(rows["closed_at"]))
    found &= _says(rows["state"], LedgerState.SEALED.value)
    found &= _says(rows["listed_as"], "bookies")
    found &= _numbers(rows["attempts"]) == 0
    for name in _UNTOUCHED:
        found &= _flags(pc.is_null(rows[name]))
    for name in _SAID:
        found &= ~_flags(rows[name])
    if not zero_length:
        found &= _numbers(rows["bytes"]) > 0
    found &= np.isin(ids, _ids(there))
    return found & ~np.isin(ids, _ids(tried))


def _reached(rows: Any, of_topic: Array, said: Sequence[_SaidOf | None], now_ms: int) -> Array:
    """Which rows are above a threshold of their topics."""
    closed = _flags(pc.is_valid(rows["closed_at"]))
    sizes = np.where(closed, _numbers(rows["bytes"]), 0)
    summed = np.cumsum(sizes)
    last = np.searchsorted(of_topic, of_topic, side="right") - 1  # of the same topic
    limits = [_OFF if one is None else one.thresholds for one in said]
    return reached_in_columns(
        kept=np.array([_or_off(one.bytes, 1) for one in limits])[of_topic],
        kept_ms=np.array([_or_off(one.seconds, MS_PER_SECOND) for one in limits])[of_topic],
        running=summed[last] - summed + sizes,
        age_ms=now_ms - _numbers(rows["closed_at"].cast(pa.int64())) // 1000,
    )


def _or_off(limit: int | None, factor: int) -> int:
    return -1 if limit is None or limit < 0 else min(limit * factor, _LONG_MAX)


def _says(column: Any, text: str) -> Array:
    return _flags(pc.equal(column, scalar(text)))


def _flags(column: Any) -> Array:
    return numpy_of(filled(column, False))


def _numbers(column: Any) -> Array:
    return numpy_of(filled(column, 0))


def _ids(ledger_ids: Set[int]) -> Array:
    return np.fromiter(ledger_ids, np.int64, len(ledger_ids))
