"""One reason for each ledger: what gives each, which comes first, and that none is left without.

docs/states.md prints the list and the order; the tables here are held to both.
"""

import random
import re
from collections import Counter
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.figures.lag_figures import Counted
from tiering_assets.explain.reasons.backlog_reason import (
    BacklogEvidence,
    BacklogReason,
    Failure,
    TopicBlockers,
    of_wait,
)
from tiering_assets.explain.reasons.backlog_rules import RULES, decide_backlog_reason
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.policy.selection import NotSelected

STATES_PAGE = Path(__file__).parents[3] / "docs" / "states.md"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FLEET = 100_000
R, S = BacklogReason, LedgerState

# The list as it was asked for, in its order.
ASKED_FOR = (
    "open; damaged; unsealed in BookKeeper; below threshold; excluded; disabled; paused; not admitted; "
    "over budget; copying; failed; quarantined; broker cannot read; broker may release first; "
    "waiting to disturb; metadata node too large; published (broker); unconfirmed; in lag; held; "
    "capped; unsafe; expired; done"
)


def ledger(state, **known):
    """Evidence of one ledger; what is no field of it is one of its topic."""
    own = {f.name for f in fields(BacklogEvidence)}
    topic = TopicBlockers(**{name: value for name, value in known.items() if name not in own})
    return BacklogEvidence(
        state=state, topic=topic, **{name: value for name, value in known.items() if name in own}
    )


PUBLISHED = {"certified": True, "recorded": True}
OFF = {reason: Wait(reason, "by the topic") for reason in (Reason.DISABLED, Reason.PAUSED)}
FAILURE = Failure(error="bookie 3 away", attempts=2)

GIVEN = [
    (R.OPEN, "its topic writes", ledger(S.OPEN)),
    (R.EXCLUDED, "terminated topic", ledger(S.OPEN, not_selected=NotSelected.TERMINATED)),
    (R.UNSEALED, "IN_RECOVERY", ledger(S.SEALED, wait=Wait(Reason.UNSEALED, "IN_RECOVERY"))),
    (
        R.BELOW_THRESHOLD,
        "9 bytes <= 10",
        ledger(S.SEALED, not_selected=NotSelected.BELOW, selection="9 bytes <= 10"),
    ),
    (R.EXCLUDED, "no threshold", ledger(S.SEALED, not_selected=NotSelected.NO_THRESHOLD)),
    (R.EXCLUDED, "zero length", ledger(S.COPIED, not_selected=NotSelected.ZERO_LENGTH)),
    (R.EXCLUDED, "not loaded", ledger(S.SEALED, not_selected=NotSelected.NOT_LOADED)),
    (R.EXCLUDED, "no entries", ledger(S.SEALED, wait=Wait(Reason.EMPTY, "the broker drops it"))),
    (R.EXCLUDED, "offload_time: 5", ledger(S.VERIFIED, refused="offload_time: 5 s")),
    (R.EXCLUDED, "publish.coexist", ledger(S.VERIFIED, coexists="publish.coexist = false")),
    (R.DISABLED, "by the topic", ledger(S.SEALED, switched_off=OFF[Reason.DISABLED])),
    (R.PAUSED, "by the topic", ledger(S.VERIFIED, switched_off=OFF[Reason.PAUSED])),
    (R.NOT_ADMITTED, "no run has taken it up", ledger(S.SEALED)),
    (R.NOT_ADMITTED, "no run has taken it up", ledger(S.COPIED)),
    (R.NOT_ADMITTED, "cannot be read", ledger(S.SEALED, policy_unread="cannot be read")),
    (R.NOT_ADMITTED, "due for release", ledger(S.RELEASE_DUE, **PUBLISHED)),
    (R.OVER_BUDGET, "12 reloads", ledger(S.VERIFIED, over_budget="12 reloads")),
    (R.COPYING, "live claim", ledger(S.COPYING)),
    (R.FAILED, "bookie 3 away; 2 attempts; next try", ledger(S.SEALED, failure=FAILURE)),
    (R.FAILED, "bookie 3 away; 2 attempts; next try", ledger(S.VERIFIED, failure=FAILURE)),
    (R.QUARANTINED, "check", ledger(S.QUARANTINED)),
    (R.QUARANTINED, "next run", ledger(S.VERIFIED, quarantined=True)),
    (R.DAMAGED, "brokers read is broken", ledger(S.PUBLISHED, damaged="scrub run", **PUBLISHED)),
    (R.DAMAGED, "only copy is broken", ledger(S.RELEASED, damaged="scrub run")),
    (R.CANNOT_READ, "bucket is 'a'", ledger(S.VERIFIED, cannot_read="bucket is 'a'")),
    (R.CANNOT_READ, "bucket is 'a'", ledger(S.SEALED, cannot_read="bucket is 'a'")),
    (R.MAY_RELEASE_FIRST, "5 s", ledger(S.VERIFIED, may_release_first="5 s")),
    (R.WAITING_TO_DISTURB, "next publication", ledger(S.VERIFIED)),
    (R.NODE_TOO_LARGE, "600000 bytes", ledger(S.VERIFIED, node_too_large="600000 bytes")),
    (R.PUBLISHED_BY_BROKER, "object scan", ledger(S.PUBLISHED, by_broker=True)),
    (R.UNCONFIRMED, "no record says", ledger(S.PUBLISHED, certified=True)),
    (R.UNCONFIRMED, "marked", ledger(S.RELEASING)),
    (R.IN_LAG, "2026-03-01 12:00:00Z", ledger(S.PUBLISHED, due_at=NOW, **PUBLISHED)),
    (R.HELD, "audit (Kim)", ledger(S.HELD, hold="audit (Kim)")),
    (R.CAPPED, "per_hour_max", ledger(S.RELEASE_DUE, capped="per_hour_max", **PUBLISHED)),
    (R.UNSAFE, "no certificate", ledger(S.PUBLISHED, recorded=True)),
    (R.UNSAFE, "no such ledger", ledger(S.UNSAFE)),
    (R.UNSAFE, "index is gone", ledger(S.RELEASE_DUE, missing="index is gone", **PUBLISHED)),
    (R.UNSAFE, "3 of 4", ledger(S.SEALED, wait=Wait(Reason.DATA_MISSING, "3 of 4"))),
    (R.EXPIRED, "", ledger(S.EXPIRED)),
    (R.DONE, "released", ledger(S.RELEASED)),
]


def test_the_list_is_closed_and_is_the_one_asked_for():
    assert "; ".join(reason.value for reason in BacklogReason) == ASKED_FOR


@pytest.mark.parametrize(("reason", "said", "evidence"), GIVEN)
def test_each_reason_is_given_by_its_evidence(reason, said, evidence):
    because = decide_backlog_reason(evidence)
    assert because.reason is reason
    assert said in because.detail
    assert str(because).startswith(reason.value)


def test_every_reason_is_in_the_table():
    assert {reason for reason, _said, _evidence in GIVEN} == set(BacklogReason)


def test_every_rule_gives_the_reason_of_some_ledger_in_the_table():
    """A rule that another always goes before would be a line of the docs that is not so."""
    first = {
        next(i for i, rule in enumerate(RULES) if rule.look(evidence) is not None)
        for _reason, _said, evidence in GIVEN
    }
    assert first == set(range(len(RULES)))


BOTH = [
    ("disabled", S.SEALED, {"switched_off": OFF[Reason.DISABLED], "failure": FAILURE}),
    ("disabled", S.VERIFIED, {"switched_off": OFF[Reason.DISABLED], "cannot_read": "x"}),
    ("paused", S.SEALED, {"switched_off": OFF[Reason.PAUSED], "refused": "x"}),
    ("excluded", S.SEALED, {"refused": "x", "failure": FAILURE}),
    ("failed", S.SEALED, {"failure": FAILURE, "not_selected": NotSelected.BELOW}),
    ("failed", S.COPIED, {"failure": FAILURE, "policy_unread": "x"}),
    ("not admitted", S.VERIFIED, {"policy_unread": "x", "cannot_read": "x"}),
    ("below threshold", S.SEALED, {"not_selected": NotSelected.BELOW, "cannot_read": "x"}),
    ("excluded", S.SEALED, {"not_selected": NotSelected.ZERO_LENGTH, "may_release_first": "x"}),
    (
        "broker cannot read",
        S.SEALED,
        {"wait": Wait(Reason.UNSEALED, "x"), "cannot_read": "x"},
    ),
    ("broker cannot read", S.VERIFIED, {"cannot_read": "x", "may_release_first": "x"}),
    ("broker may release first", S.VERIFIED, {"may_release_first": "x", "coexists": "x"}),
    ("excluded", S.VERIFIED, {"coexists": "x", "node_too_large": "x"}),
    ("metadata node too large", S.VERIFIED, {"node_too_large": "x", "over_budget": "x"}),
    ("over budget", S.VERIFIED, {"over_budget": "x", "failure": FAILURE}),
    ("damaged", S.PUBLISHED, {"damaged": "x", "certified": False}),
    ("damaged", S.HELD, {"damaged": "x", "hold": "x"}),
    ("damaged", S.RELEASED, {"damaged": "x"}),
    ("damaged", S.RELEASING, {"damaged": "x"}),
    ("damaged", S.RELEASE_DUE, {"damaged": "x", "missing": "x", "capped": "x"}),
    ("damaged", S.EXPIRED, {"damaged": "x"}),
    ("damaged", S.UNSAFE, {"damaged": "x"}),
    ("damaged", S.COPYING, {"damaged": "x"}),
    ("open", S.OPEN, {"damaged": "x"}),
    ("unsafe", S.PUBLISHED, {"certified": False, "recorded": False}),
    ("held", S.HELD, {"hold": "x", "quarantined": True}),
    ("unsafe", S.RELEASE_DUE, {"missing": "x", "capped": "x", **PUBLISHED}),
    ("copying", S.COPYING, {"switched_off": OFF[Reason.PAUSED], "failure": FAILURE}),
    ("quarantined", S.QUARANTINED, {"quarantined": True, "switched_off": OFF[Reason.PAUSED]}),
    ("in lag", S.PUBLISHED, {"switched_off": OFF[Reason.DISABLED], **PUBLISHED}),
]


@pytest.mark.parametrize(("first", "state", "known"), BOTH)
def test_of_two_that_apply_the_first_is_the_reason(first, state, known):
    assert decide_backlog_reason(ledger(state, **known)).reason == first


@pytest.mark.parametrize("reason", Reason)
def test_every_wait_of_a_run_is_one_of_the_list_and_keeps_its_words(reason):
    because = of_wait(Wait(reason, "3 of 4 entries"))
    assert because.reason in BacklogReason
    assert "3 of 4 entries" in because.detail
    assert reason.value in str(because)


def test_a_failure_says_error_attempts_and_next_try():
    assert str(Failure(error="boom", attempts=1)) == (
        "boom; 1 attempt; next try with the next run that takes it up"
    )
    assert str(Failure(error="boom", attempts=3, next_try=NOW)) == (
        "boom; 3 attempts; next try not before 2026-03-01 12:00:00Z"
    )


# ----- fleets


def draw(rng):
    """Any evidence at all: facts that contradict each other are evidence, too."""

    def maybe(value):
        return value if rng.random() < 0.2 else None

    return BacklogEvidence(
        state=rng.choice(tuple(LedgerState)),
        topic=TopicBlockers(
            switched_off=maybe(rng.choice(tuple(OFF.values()))),
            **{f.name: maybe("x") for f in fields(TopicBlockers) if f.name != "switched_off"},
        ),
        quarantined=rng.random() < 0.2,
        damaged=maybe("x"),
        certified=rng.random() < 0.8,
        recorded=rng.random() < 0.8,
        by_broker=rng.random() < 0.2,
        hold=maybe("x"),
        due_at=maybe(NOW),
        not_selected=maybe(rng.choice(tuple(NotSelected))),
        selection=rng.choice(("", "9 bytes <= 10")),
        failure=maybe(FAILURE),
        wait=maybe(Wait(rng.choice(tuple(Reason)), "x")),
        missing=maybe("x"),
        capped=maybe("x"),
    )


def of_reason(reason, *, size, closed_at):
    return Counted(
        topic="t",
        namespace="ns",
        reason=reason,
        state=LedgerState.SEALED,
        bytes=size,
        closed_at=closed_at,
        due_at=None,
        certified=False,
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_in_a_fleet_of_any_ledgers_each_has_one_reason_and_the_counts_add_up(seed):
    rng = random.Random(seed)
    explained: list[Counted] = []
    size: Counter[BacklogReason] = Counter()
    counted: Counter[BacklogReason] = Counter()
    for _ in range(FLEET):
        because = decide_backlog_reason(draw(rng))
        assert because.reason in BacklogReason
        one = of_reason(
            because.reason,
            size=rng.randrange(2**40),
            closed_at=rng.choice((None, NOW - timedelta(seconds=rng.randrange(10**6)))),
        )
        explained.append(one)
        size[one.reason] += one.bytes
        counted[one.reason] += 1
    rows = count_figures(explained, disturbances_last_hour=0, now=NOW).total.reasons
    assert sum(row.ledgers for row in rows) == FLEET
    assert sum(row.bytes for row in rows) == sum(one.bytes for one in explained)
    assert {row.reason: (row.ledgers, row.bytes) for row in rows} == {
        reason: (counted[reason], size[reason]) for reason in counted
    }
    assert set(counted) == set(BacklogReason)  # or the fleet was no fleet
    oldest = {
        row.reason: max(
            (NOW - one.closed_at).total_seconds()
            for one in explained
            if one.reason is row.reason and one.closed_at is not None
        )
        for row in rows
    }
    assert {row.reason: row.oldest_s for row in rows} == oldest


def test_the_same_evidence_with_one_fact_less_never_loses_its_reason():
    """What is taken away was the reason, or the reason stays."""
    rng = random.Random(3)
    for _ in range(5000):
        evidence = draw(rng)
        because = decide_backlog_reason(evidence)
        for name in ("failure", "wait", "missing", "capped", "hold"):
            less = decide_backlog_reason(replace(evidence, **{name: None}))
            given = getattr(evidence, name)
            if less.reason is not because.reason:
                assert given is not None
                assert because.detail in {"x", str(FAILURE), str(given)}


def test_ledgers_that_are_not_closed_have_no_age():
    opened = of_reason(R.OPEN, size=0, closed_at=None)
    [row] = count_figures([opened], disturbances_last_hour=0, now=NOW).total.reasons
    assert (row.ledgers, row.oldest_s) == (1, None)


# ----- docs


def test_the_docs_list_every_reason_and_the_order_of_the_rules():
    text = STATES_PAGE.read_text(encoding="utf-8")
    table = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", text, re.M)
    assert table == [
        (str(number), rule.reason.value, rule.when) for number, rule in enumerate(RULES, 1)
    ]
    assert {reason for _number, reason, _when in table} == {r.value for r in BacklogReason}
