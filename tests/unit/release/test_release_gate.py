from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.records.models import LedgerFacts
from tiering_assets.release.gate import (
    MayRelease,
    NotYet,
    ObjectNow,
    ReleaseEvidence,
    decide_release,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LAG = timedelta(hours=4)
TICK = timedelta(microseconds=1)
UID = UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a")
OTHER = UUID("317fad33-457f-4d7d-8c56-29d2d4e6f21e")
FACTS = LedgerFacts(
    ledger_id=42, last_entry_id=9, length=1000, digest_type="CRC32C", ctime_ms=7, czxid=8
)
GOOD = ObjectNow(present=True, equals_certificate=True)
READY = ReleaseEvidence(
    ledger_id=42,
    context_uid=UID,
    context_complete=True,
    published_uid=UID,
    published_at=NOW - 2 * LAG,
    publication_stored_at=NOW - 2 * LAG,
    store_now=NOW,
    certified_uid=UID,
    certificate_faults=(),
    chain_intact=True,
    quarantine=None,
    suite_passed=True,
    suite_findings=(),
    user_findings=(),
    certified_facts=FACTS,
    facts_now=FACTS,
    data=GOOD,
    index=GOOD,
    index_agrees=True,
    hold=None,
    under_replicated=False,
    skips_unreadable_ledgers=False,
    place_differs=(),
    cannot_read=(),
    never_touched=None,
    shadows=(),
    left_alone=None,
)

UNPUBLISHED = "not published: the topic names no complete offload context"
UNCONFIRMED = "publication of this attempt is not confirmed"
UNCERTIFIED = "this attempt has no certificate"
GONE = ObjectNow(present=False, equals_certificate=False)
DIFFERENT = ObjectNow(present=True, equals_certificate=False)
EXPIRING = ObjectNow(present=True, equals_certificate=True, expires=True)
ARCHIVED = ObjectNow(present=True, equals_certificate=True, archived=True)
OTHER_FACTS: tuple[dict[str, Any], ...] = (
    {"ledger_id": 43},
    {"last_entry_id": 10},
    {"length": 999},
    {"digest_type": "CRC32"},
    {"ctime_ms": 1},
    {"czxid": 1},  # deleted and made again under the same id
)
SINGLE_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"certificate_faults": ("dated in the future",)}, "dated in the future"),
    ({"context_uid": None}, UNPUBLISHED),
    ({"context_complete": False}, UNPUBLISHED),
    ({"published_uid": None}, UNCONFIRMED),
    ({"published_uid": OTHER}, UNCONFIRMED),  # an older attempt was
    ({"published_at": None}, UNCONFIRMED),
    ({"publication_stored_at": None}, UNCONFIRMED),
    (
        {"published_at": NOW - LAG},  # exactly the lag
        "deletion lag has not elapsed: due after 2026-01-02 00:00:00 UTC",
    ),
    (
        {"publication_stored_at": NOW - LAG},
        "deletion lag has not elapsed: due after 2026-01-02 00:00:00 UTC",
    ),
    (
        {"publication_stored_at": NOW - LAG / 2},  # our clock runs ahead of the store's
        "deletion lag has not elapsed: due after 2026-01-02 02:00:00 UTC",
    ),
    (
        {"store_now": NOW - 3 * LAG},  # the store's clock stepped back
        "deletion lag has not elapsed: due after 2026-01-01 20:00:00 UTC by both clocks, and this "
        "machine's is 43200 s ahead of the store's; set the one that is wrong",
    ),
    ({"certified_uid": None}, UNCERTIFIED),
    ({"certified_uid": OTHER}, UNCERTIFIED),
    ({"chain_intact": False}, "the chain of records behind the certificate is broken"),
    ({"quarantine": "entry 7 rots"}, "a check of this attempt failed: entry 7 rots"),
    ({"suite_passed": False}, "the expectation suites do not pass now"),
    (
        {"suite_passed": False, "suite_findings": ("suite topic_coverage/2: context_bucket: …",)},
        "suite topic_coverage/2: context_bucket: …",
    ),
    (
        {"suite_findings": ("suite certificates/2: data_size: …",)},
        "suite certificates/2: data_size: …",
    ),
    ({"user_findings": ("held by suite user/age: …",)}, "held by suite user/age: …"),
    ({"facts_now": None}, "the ledger's BookKeeper metadata cannot be read"),
    (
        {"certified_facts": None},
        f"the ledger differs from the certified one: {FACTS} instead of None",
    ),
    *(
        (
            {"facts_now": replace(FACTS, **other)},
            f"the ledger differs from the certified one: {replace(FACTS, **other)} "
            f"instead of {FACTS}",
        )
        for other in OTHER_FACTS
    ),
    *(
        ({which: found}, f"the {which} object {said}")
        for which in ("data", "index")
        for found, said in (
            (None, "could not be looked at"),
            (GONE, "is gone"),
            (DIFFERENT, "is not the certified version"),
            (EXPIRING, "has an expiration date"),
            (ARCHIVED, "is in an archive class that no broker can read"),
        )
    ),
    (
        {"index_agrees": False},
        "the index object does not decode or does not agree with the certificate",
    ),
    ({"hold": "audit (ops)"}, "under a release hold: audit (ops)"),
    ({"hold": ""}, "under a release hold: "),  # a hold without a reason holds
    ({"under_replicated": None}, "under-replication is unknown"),
    (
        {"under_replicated": True},
        "the ledger is under-replicated; BookKeeper is still working on it",
    ),
    ({"skips_unreadable_ledgers": None}, "a broker's autoSkipNonRecoverableData is unknown"),
    ({"place_differs": None}, "where brokers would read the topic's objects is unknown"),
    (
        {"place_differs": ("bucket is 'b', ours is 'a'", "region is 'x', ours is 'y'")},
        "place differs: bucket is 'b', ours is 'a', region is 'x', ours is 'y'",
    ),
    ({"cannot_read": None}, "whether every broker can read our objects is unknown"),
    (
        {"cannot_read": ("b2:8080",)},
        "brokers that may serve the topic next cannot read our objects, their offload driver is "
        "not ours: b2:8080",
    ),
    (
        {"skips_unreadable_ledgers": True},
        "a broker skips unreadable ledgers (autoSkipNonRecoverableData=true): a passing read "
        "failure would lose messages",
    ),
    ({"never_touched": "system topic"}, "system topic"),
    (
        {"shadows": ("a/b/persistent/s",)},
        "its shadow topics read the bookie copy and nothing else: a/b/persistent/s",
    ),
    ({"left_alone": "over budget: the cluster's"}, "over budget: the cluster's"),
]


def decide(evidence, *, now=NOW):
    return decide_release(evidence, lag=LAG, now=now)


def test_a_certified_confirmed_attempt_past_its_lag_is_released():
    assert decide(READY) == MayRelease(UID)


@pytest.mark.parametrize(("change", "reason"), SINGLE_CHANGES)
def test_one_missing_condition_makes_the_ledger_wait_for_that_alone(change, reason):
    assert decide(replace(READY, **change)) == NotYet((reason,))


def test_every_field_of_the_evidence_can_stop_a_release():
    stopped_by = {name for change, _reason in SINGLE_CHANGES for name in change}
    assert stopped_by == {field.name for field in fields(ReleaseEvidence)} - {"ledger_id"}


def test_the_moment_after_the_lag_releases():
    just_past: dict[str, Any] = {
        "published_at": NOW - LAG - TICK,
        "publication_stored_at": NOW - LAG - TICK,
    }
    assert decide(replace(READY, **just_past)) == MayRelease(UID)
    for name in just_past:
        assert decide(replace(READY, **{**just_past, name: NOW - LAG})) != MayRelease(UID)


@pytest.mark.parametrize("step", [timedelta(days=1), timedelta(days=3650)])
def test_no_clock_that_steps_releases_early(step):
    fresh = replace(READY, published_at=NOW - LAG / 2, publication_stored_at=NOW - LAG / 2)
    assert isinstance(decide(fresh, now=NOW + step), NotYet)  # ours steps forward
    assert isinstance(decide(replace(fresh, store_now=NOW + step)), NotYet)  # the store's does
    assert isinstance(decide(READY, now=NOW - step), NotYet)  # ours steps back
    assert isinstance(decide(replace(READY, store_now=NOW - step)), NotYet)  # the store's does


def test_a_record_dated_ahead_by_a_wrong_clock_waits():
    ahead = replace(READY, published_at=NOW + timedelta(days=1))
    assert isinstance(decide(ahead), NotYet)


def test_all_reasons_are_told_at_once():
    many = replace(READY, hold="audit", chain_intact=False, index=None, under_replicated=None)
    assert decide(many) == NotYet(
        (
            "the chain of records behind the certificate is broken",
            "the index object could not be looked at",
            "under a release hold: audit",
            "under-replication is unknown",
        )
    )
    assert str(decide(many)).count("; ") == 3


def test_an_unpublished_ledger_is_asked_for_nothing_else():
    nothing = replace(READY, context_uid=None, data=None, index=None, certified_uid=None)
    assert decide(nothing) == NotYet((UNPUBLISHED,))


@given(changes=st.lists(st.sampled_from([change for change, _reason in SINGLE_CHANGES])))
def test_release_only_if_every_condition_holds(changes):
    evidence = READY
    for change in changes:
        evidence = replace(evidence, **change)
    decision = decide(evidence)
    assert (decision == MayRelease(UID)) is (evidence == READY)
    if isinstance(decision, NotYet):
        assert decision.reasons
        assert len(set(decision.reasons)) == len(decision.reasons)


@given(
    now_s=st.integers(-(10**6), 10**6),
    store_s=st.integers(-(10**6), 10**6),
    recorded_s=st.integers(-(10**6), 10**6),
    stored_s=st.integers(-(10**6), 10**6),
)
def test_release_only_past_the_lag_on_both_clocks(now_s, store_s, recorded_s, stored_s):
    evidence = replace(
        READY,
        published_at=NOW + timedelta(seconds=recorded_s),
        publication_stored_at=NOW + timedelta(seconds=stored_s),
        store_now=NOW + timedelta(seconds=store_s),
    )
    past = now_s - recorded_s > LAG.total_seconds() and store_s - stored_s > LAG.total_seconds()
    assert (decide(evidence, now=NOW + timedelta(seconds=now_s)) == MayRelease(UID)) is past


def test_no_user_suite_lets_a_ledger_go_that_the_gate_refuses():
    """A passed one leaves no trace in the evidence, and a failed one only adds its reason."""
    for change, reason in SINGLE_CHANGES:
        if "user_findings" in change or reason == UNPUBLISHED:
            continue
        held = replace(READY, **change, user_findings=("held by suite user/age: …",))
        assert set(decide(held).reasons) == {reason, "held by suite user/age: …"}


@pytest.mark.parametrize(("way", "said"), [(1, "ahead of"), (-1, "behind")])
def test_a_clock_that_stands_wrong_is_named_with_its_way(way, said):
    waits = decide(READY, now=READY.store_now + way * timedelta(days=400))
    if way > 0:
        assert waits == MayRelease(UID)
        fresh = replace(READY, published_at=NOW, publication_stored_at=NOW)
        waits = decide(fresh, now=NOW + timedelta(days=400))
    assert f"this machine's is {400 * 86400} s {said} the store's" in str(waits)
