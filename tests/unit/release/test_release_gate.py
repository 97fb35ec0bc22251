from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.ledger_damage import (
    Damage,
    changed,
    in_copy,
    in_publication,
    in_record,
    in_store,
)
from tests.support.ledger_facts import LEDGER, SOUND, UID, Case
from tiering_assets.ground.reasons import NotNow
from tiering_assets.quality.ledger_facts import CopyFacts, TopicFacts
from tiering_assets.release.gate import MayRelease, ReleaseEvidence, SuitesSaid, decide_release

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LAG = timedelta(hours=4)
TICK = timedelta(microseconds=1)
OTHER = UUID("317fad33-457f-4d7d-8c56-29d2d4e6f21e")
SAID = SuitesSaid(passed=True, findings=(), user_findings=())

Change = Callable[[ReleaseEvidence], ReleaseEvidence]


def damaged(damage: Damage) -> Change:
    """What lies in the bucket, the topic's list or BookKeeper, otherwise."""

    def change(evidence: ReleaseEvidence) -> ReleaseEvidence:
        case = damage(Case(evidence.topic, evidence.copy))
        return replace(evidence, topic=case.topic, copy=case.copy)

    return change


def topic(**values: Any) -> Change:
    return lambda evidence: replace(evidence, topic=replace(evidence.topic, **values))


def copy(**values: Any) -> Change:
    return damaged(in_copy(lambda _copy: values))


def suites(**values: Any) -> Change:
    return lambda evidence: replace(evidence, suites=replace(evidence.suites, **values))


def context(**values: Any) -> Change:
    return damaged(in_copy(lambda copy: {"context": changed(copy.context, **values)}))


def published(*, at: datetime | None = None, stored: datetime | None = None) -> Change:
    """When by the record itself, and when by the store."""

    def change(evidence: ReleaseEvidence) -> ReleaseEvidence:
        found = evidence.copy.publication
        assert found is not None
        record = replace(found.record, confirmed_at=at or found.record.confirmed_at)
        new = replace(found, record=record, stored_at=stored or found.stored_at)
        return copy(publication=new)(evidence)

    return change


def applied(changes: Iterable[Change], evidence: ReleaseEvidence) -> ReleaseEvidence:
    for change in changes:
        evidence = change(evidence)
    return evidence


READY = applied(
    [topic(store_now=NOW), published(at=NOW - 2 * LAG, stored=NOW - 2 * LAG)],
    ReleaseEvidence(topic=SOUND.topic, copy=SOUND.copy, suites=SAID),
)

UNPUBLISHED = "not published: the topic names no complete offload context"
UNCONFIRMED = "publication of this attempt is not confirmed"
UNCERTIFIED = "this attempt has no certificate"
BROKEN = "the chain of records behind the certificate is broken"
OTHER_FACTS: tuple[dict[str, Any], ...] = (
    {"ledger_id": 43},
    {"last_entry_id": 10},
    {"length": 999},
    {"digest_type": "CRC32"},
    {"ctime_ms": 1},
    {"czxid": 1},  # deleted and made again under the same id
)
# A fact, how it is otherwise, and the one reason that this is.
SINGLE_CHANGES: list[tuple[str, Change, str]] = [
    ("certificate_faults", copy(certificate_faults=("dated in the future",)), "dated in the future"),
    ("context", copy(context=None), UNPUBLISHED),
    ("context", context(complete=False), UNPUBLISHED),
    ("context", context(properties={"bucket": "b"}), "place differs: its context names bucket 'b', ours is 'tiered'"),
    ("certificate", damaged(in_record("certificate", bucket="b")), "place differs: its copy is in bucket 'b', ours is 'tiered'"),
    ("publication", published(at=NOW - LAG), "deletion lag has not elapsed: due after 2026-01-02 00:00:00Z"),  # exactly the lag
    ("publication", published(stored=NOW - LAG), "deletion lag has not elapsed: due after 2026-01-02 00:00:00Z"),
    ("publication", published(stored=NOW - LAG / 2), "deletion lag has not elapsed: due after 2026-01-02 02:00:00Z"),  # our clock runs ahead of the store's
    (
        "store_now",
        topic(store_now=NOW - 3 * LAG),  # the store's clock stepped back
        "deletion lag has not elapsed: due after 2026-01-01 20:00:00Z by both clocks, and this "
        "machine's is 43200 s ahead of the store's; set the one that is wrong",
    ),
    ("certificate", damaged(in_record("certificate", uid=OTHER)), UNCERTIFIED),
    ("attempt", copy(attempt=None), BROKEN),
    ("outcome", copy(outcome=None), BROKEN),
    ("outcome", damaged(in_record("outcome", outcome="abandon")), BROKEN),
    ("outcome", damaged(in_record("outcome", previous="0" * 64)), BROKEN),
    ("attempt", damaged(in_store("attempt", sha256="0" * 64)), BROKEN),
    ("publication", damaged(in_publication(previous="0" * 64)), BROKEN),
    ("publication", damaged(in_publication(certificate_sha256="0" * 64)), BROKEN),
    ("publication", damaged(in_publication(uid=OTHER)), BROKEN),
    ("quarantine", copy(quarantine="entry 7 rots"), "a check of this attempt failed: entry 7 rots"),
    ("passed", suites(passed=False), "the expectation suites do not pass now"),
    ("findings", suites(passed=False, findings=("suite topic_coverage/2: context_bucket: …",)), "suite topic_coverage/2: context_bucket: …"),
    ("findings", suites(findings=("suite certificates/2: data_size: …",)), "suite certificates/2: data_size: …"),
    ("user_findings", suites(user_findings=("held by suite user/age: …",)), "held by suite user/age: …"),
    ("node", copy(node=None), "the ledger's BookKeeper metadata cannot be read"),
    *(
        (
            "node",
            damaged(in_record("node", **other)),
            f"the ledger differs from the certified one: {replace(LEDGER, **other)} instead of {LEDGER}",
        )
        for other in OTHER_FACTS
    ),
    *(
        (field, found, f"the {which} object {said}")
        for which in ("data", "index")
        for field, found, said in (
            (which, copy(**{which: None}), "is gone"),
            (which, damaged(in_record(which, size=1)), "is not the certified version"),
            (which, damaged(in_record(which, etag='"x"')), "is not the certified version"),
            (which, damaged(in_record(which, version_id="v9")), "is not the certified version"),
            (which, damaged(in_record(which, expiration="rule")), "has an expiration date"),
            (f"{which}_reads", copy(**{f"{which}_reads": False}), "is in an archive class that no broker can read"),
        )
    ),
    ("index_agrees", copy(index_agrees=False), "the index object does not decode, or it differs from the certificate"),
    ("hold", copy(hold="audit (ops)"), "under a release hold: audit (ops)"),
    ("hold", copy(hold=""), "under a release hold: "),  # a hold without a reason holds
    ("under_replicated", copy(under_replicated=None), "under-replication is unknown"),
    ("under_replicated", copy(under_replicated=True), "the ledger is under-replicated; BookKeeper is still working on it"),
    ("skips_unreadable_ledgers", topic(skips_unreadable_ledgers=None), "a broker's autoSkipNonRecoverableData is unknown"),
    (
        "skips_unreadable_ledgers",
        topic(skips_unreadable_ledgers=True),
        "a broker skips unreadable ledgers (autoSkipNonRecoverableData=true): a passing read "
        "failure would lose messages",
    ),
    ("place_differs", topic(place_differs=None), "where brokers would read the topic's objects is unknown"),
    (
        "place_differs",
        topic(place_differs=("bucket is 'b', ours is 'a'", "region is 'x', ours is 'y'")),
        "place differs: bucket is 'b', ours is 'a', region is 'x', ours is 'y'",
    ),
    (
        "bucket",
        topic(bucket="b"),
        "place differs: its context names bucket 'tiered', ours is 'b', its copy is in bucket 'tiered', ours is 'b'",
    ),
    ("cannot_read", topic(cannot_read=None), "whether every broker can read our objects is unknown"),
    (
        "cannot_read",
        topic(cannot_read=("b2:8080",)),
        "brokers that may serve the topic next cannot read our objects, their offload driver is "
        "not ours: b2:8080",
    ),
    ("never_touched", topic(never_touched="system topic"), "system topic"),
    ("shadows", topic(shadows=("a/b/persistent/s",)), "its shadow topics read the bookie copy and nothing else: a/b/persistent/s"),
    ("left_alone", topic(left_alone="over budget: the cluster's"), "over budget: the cluster's"),
]  # fmt: skip
# What the suites judge, and names.
OF_SUITES = {"ml_name", "ledgers", "published", "skew_s", "ledger_id", "index_sha256"}


def decide(evidence, *, now=NOW):
    return decide_release(evidence, lag=LAG, now=now)


def test_a_certified_confirmed_attempt_past_its_lag_is_released():
    assert decide(READY) == MayRelease(UID)


@pytest.mark.parametrize(("_field", "change", "reason"), SINGLE_CHANGES)
def test_one_missing_condition_makes_the_ledger_wait_for_that_alone(_field, change, reason):
    assert decide(change(READY)) == NotNow((reason,))


def test_every_field_of_the_evidence_can_stop_a_release():
    stopped_by = {field for field, _change, _reason in SINGLE_CHANGES}
    known = {field.name for kind in (TopicFacts, CopyFacts, SuitesSaid) for field in fields(kind)}
    assert stopped_by == known - OF_SUITES


def test_what_hangs_on_a_certificate_is_told_with_it():
    assert decide(copy(certificate=None)(READY)) == NotNow(
        (
            UNCERTIFIED,
            f"the ledger differs from the certified one: {LEDGER} instead of None",
            "the data object could not be looked at",
            "the index object could not be looked at",
        )
    )


def test_what_no_publication_counts_for_is_not_confirmed():
    assert decide(copy(publication=None)(READY)) == NotNow((UNCONFIRMED, BROKEN))


def test_the_moment_after_the_lag_releases():
    past = {"at": NOW - LAG - TICK, "stored": NOW - LAG - TICK}
    assert decide(published(**past)(READY)) == MayRelease(UID)
    for name in past:
        assert decide(published(**{**past, name: NOW - LAG})(READY)) != MayRelease(UID)


@pytest.mark.parametrize("step", [timedelta(days=1), timedelta(days=3650)])
def test_no_clock_that_steps_releases_early(step):
    fresh = published(at=NOW - LAG / 2, stored=NOW - LAG / 2)(READY)
    assert isinstance(decide(fresh, now=NOW + step), NotNow)  # ours steps forward
    assert isinstance(decide(topic(store_now=NOW + step)(fresh)), NotNow)  # the store's does
    assert isinstance(decide(READY, now=NOW - step), NotNow)  # ours steps back
    assert isinstance(decide(topic(store_now=NOW - step)(READY)), NotNow)  # the store's does


def test_a_record_dated_ahead_by_a_wrong_clock_waits():
    assert isinstance(decide(published(at=NOW + timedelta(days=1))(READY)), NotNow)


def test_all_reasons_are_told_at_once():
    many = copy(hold="audit", outcome=None, index=None, under_replicated=None)(READY)
    assert decide(many) == NotNow(
        (
            BROKEN,
            "the index object is gone",
            "under a release hold: audit",
            "under-replication is unknown",
        )
    )
    assert str(decide(many)).count("; ") == 3


def test_an_unpublished_ledger_is_asked_for_nothing_else():
    nothing = copy(context=None, data=None, index=None, certificate=None)(READY)
    assert decide(nothing) == NotNow((UNPUBLISHED,))


@given(changes=st.lists(st.sampled_from([change for _field, change, _reason in SINGLE_CHANGES])))
def test_release_only_if_every_condition_holds(changes):
    evidence = READY
    for change in changes:
        try:
            evidence = change(evidence)
        except (AttributeError, TypeError, AssertionError):
            continue  # of a record that another change has taken away
    decision = decide(evidence)
    assert (decision == MayRelease(UID)) is (evidence == READY)
    if isinstance(decision, NotNow):
        assert decision.reasons
        assert len(set(decision.reasons)) == len(decision.reasons)


@given(
    now_s=st.integers(-(10**6), 10**6),
    store_s=st.integers(-(10**6), 10**6),
    recorded_s=st.integers(-(10**6), 10**6),
    stored_s=st.integers(-(10**6), 10**6),
)
def test_release_only_past_the_lag_on_both_clocks(now_s, store_s, recorded_s, stored_s):
    times = published(
        at=NOW + timedelta(seconds=recorded_s), stored=NOW + timedelta(seconds=stored_s)
    )
    evidence = applied([times, topic(store_now=NOW + timedelta(seconds=store_s))], READY)
    past = now_s - recorded_s > LAG.total_seconds() and store_s - stored_s > LAG.total_seconds()
    assert (decide(evidence, now=NOW + timedelta(seconds=now_s)) == MayRelease(UID)) is past


def test_no_user_suite_lets_a_ledger_go_that_the_gate_refuses():
    """A passed one leaves no trace in the evidence, and a failed one only adds its reason."""
    held_by = "held by suite user/age: …"
    for field, change, reason in SINGLE_CHANGES:
        if field == "user_findings" or reason == UNPUBLISHED:
            continue
        held = applied([change, suites(user_findings=(held_by,))], READY)
        assert set(decide(held).reasons) == {reason, held_by}


@pytest.mark.parametrize(("way", "said"), [(1, "ahead of"), (-1, "behind")])
def test_a_clock_that_stands_wrong_is_named_with_its_way(way, said):
    waits = decide(READY, now=NOW + way * timedelta(days=400))
    if way > 0:
        assert waits == MayRelease(UID)
        waits = decide(published(at=NOW, stored=NOW)(READY), now=NOW + timedelta(days=400))
    assert f"this machine's is {400 * 86400} s {said} the store's" in str(waits)
