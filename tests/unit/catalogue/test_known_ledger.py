"""What records say of a ledger is the same in any order, and its row tells all of it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.catalogue.desk import OTHER_UID, example, stored
from tests.unit.records.examples import AT, ML_NAME, UID
from tiering_assets.catalogue.facts.changes import Change
from tiering_assets.catalogue.facts.known_ledger import (
    KnownAttempt,
    KnownLedger,
    facts_of_row,
    joined,
    row_of_ledger,
    state_of,
    without,
)
from tiering_assets.catalogue.facts.record_facts import told_by
from tiering_assets.records import keys
from tiering_assets.records.broker_models import Undo, WithdrawnContext
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    Damage,
    Publication,
    PublishedLedger,
    Quarantine,
    Release,
    ReleaseIntent,
    Scrub,
)
from tiering_assets.records.sweep_models import Removal

A, B, C = "a", "b", "c"
FIRST, THEN, LAST = AT, AT + timedelta(hours=1), AT + timedelta(hours=2)
TIMES = (FIRST, THEN, LAST)


def ledger(**attempts):
    return KnownLedger(ledger_id=42, attempts=attempts)


def known(**facts):
    return KnownAttempt(**facts)


def told_in_order(*said):
    """What is known of one attempt after each of these."""
    facts = ledger()
    for one in said:
        facts = joined(facts, A, one)
    return facts.of(A)


def of_publication(uid, at):
    one = PublishedLedger(ledger_id=42, uid=uid, certificate_sha256="2" * 64, previous="3" * 64)
    return keys.publication(ML_NAME, 1), example(Publication, ledgers=(one,), confirmed_at=at)


def of_undo(uid, at):
    taken = (WithdrawnContext(ledger_id=42, uid=uid),)
    return keys.undo(ML_NAME, uid), example(Undo, withdrawn=taken, undone_at=at)


def of_scrub(depth):
    def made(uid, at):
        record = example(Scrub, uid=uid, scrubbed_at=at, depth=depth, findings=(), lost=())
        return keys.scrub(42, uid, depth), record

    return made


MADE = (
    lambda uid, at: (keys.attempt(42, uid), example(Attempt, uid=uid, started_at=at)),
    lambda uid, at: (keys.certificate(42, uid), example(Certificate, uid=uid, verified_at=at)),
    of_publication,
    of_undo,
    lambda uid, at: (keys.quarantine(42, uid), example(Quarantine, uid=uid, found_at=at)),
    of_scrub("deep"),
    of_scrub("shallow"),
    lambda uid, at: (keys.release(42, uid), example(Release, uid=uid, released_at=at)),
    lambda uid, at: (keys.release_intent(42, uid), example(ReleaseIntent, uid=uid, intended_at=at)),
    lambda uid, at: (keys.removal(42, uid), example(Removal, uid=uid, seen_again_at=at)),
    lambda uid, at: (keys.damage(42, uid), example(Damage, uid=uid, found_at=at)),
)
RECORDS = st.builds(
    lambda made, uid, at: stored(*made(uid, at), at=at),
    st.sampled_from(MADE),
    st.sampled_from((UID, OTHER_UID)),
    st.sampled_from(TIMES),
)


def after(records):
    facts = KnownLedger(ledger_id=42)
    for one in records:
        for ledger_id, uid, said, of_ledger in told_by(one):
            change = Change(ledger_id=ledger_id, page=1, uid=uid, said=said, of_ledger=of_ledger)
            facts = change.apply(facts)
    return facts


@given(st.data(), st.lists(RECORDS, max_size=12))
def test_in_any_order_and_any_number_of_times_records_say_the_same(data, records):
    again = data.draw(st.lists(st.sampled_from(records), max_size=6)) if records else []
    mixed = data.draw(st.permutations(records + again))
    assert after(mixed) == after(records)


@given(st.lists(RECORDS, max_size=12))
def test_a_row_tells_everything_that_is_known(records):
    facts = after(records)
    assert facts_of_row(row_of_ledger(facts, page=3)) == facts


def test_a_row_of_several_attempts_is_read_as_it_was_made():
    facts = KnownLedger(
        ledger_id=42,
        topic=ML_NAME,
        entries=10,
        bytes=1000,
        held="audit 17",
        attempts={
            A: known(attempted_at=FIRST),
            B: known(certified_at=THEN, certificate_sha256="ab", object_bytes=7),
            C: known(quarantined_at=LAST, verified_at=LAST, verified_depth="deep"),
        },
    )
    row = row_of_ledger(facts, page=3)
    assert (row["uid"], row["attempts"], row["page"]) == (B, 3, 3)
    assert B not in row["others"]
    assert facts_of_row(row) == facts


def test_a_row_without_an_attempt_has_no_uid_and_no_others():
    facts = KnownLedger(ledger_id=42, held="audit 17")
    row = row_of_ledger(facts, page=3)
    assert (row["uid"], row["others"], row["attempts"], row["state"]) == (None, None, 0, "sealed")
    assert facts_of_row(row) == facts


def test_a_row_of_one_attempt_has_no_others():
    assert row_of_ledger(ledger(a=known(attempted_at=FIRST)), page=3)["others"] is None


@pytest.mark.parametrize(
    ("attempts", "uid"),
    [
        ({}, None),
        ({A: known(attempted_at=THEN), B: known(attempted_at=FIRST)}, A),
        ({A: known(certified_at=THEN), B: known(attempted_at=FIRST)}, A),
        ({A: known(published_at=FIRST), B: known(certified_at=LAST)}, A),
        ({A: known(published_at=FIRST), B: known(published_at=THEN)}, B),
        ({A: known(published_at=FIRST, withdrawn_at=THEN), B: known(published_at=FIRST)}, B),
        ({A: known(published_at=THEN, withdrawn_at=FIRST), B: known(attempted_at=LAST)}, A),
        ({A: known(quarantined_at=FIRST), B: known(quarantined_at=FIRST)}, B),
    ],
)
def test_a_row_is_about_the_published_attempt_or_else_the_newest(attempts, uid):
    assert ledger(**attempts).uid == uid


def test_an_attempt_that_was_taken_back_is_published_when_it_is_published_again():
    back = known(published_at=FIRST, withdrawn_at=THEN)
    assert not back.published
    assert not known(published_at=FIRST, withdrawn_at=FIRST).published
    assert told_in_order(back, known(published_at=LAST)).published


@pytest.mark.parametrize(
    ("one", "other", "cleared"),
    [
        (known(attempted_at=FIRST), known(certified_at=THEN), "attempted_at"),
        (known(intended_at=FIRST), known(released_at=THEN), "intended_at"),
    ],
)
def test_what_a_later_record_tells_better_is_not_told(one, other, cleared):
    assert getattr(told_in_order(one), cleared) is not None
    for said in ((one, other), (other, one)):
        assert getattr(told_in_order(*said), cleared) is None


def test_the_newest_of_each_kind_counts():
    said = told_in_order(known(damaged_at=THEN), known(damaged_at=FIRST), known(removed_at=LAST))
    assert said == known(damaged_at=THEN, removed_at=LAST)


@pytest.mark.parametrize(
    ("first", "then"), [((FIRST, "shallow"), (THEN, "deep")), ((FIRST, "deep"), (THEN, "shallow"))]
)
def test_the_depth_is_that_of_the_newest_look(first, then):
    looks = [known(verified_at=at, verified_depth=depth) for at, depth in (first, then)]
    assert told_in_order(*looks) == told_in_order(*reversed(looks)) == looks[1]


def test_of_two_looks_at_one_time_the_same_depth_counts_in_any_order():
    looks = [known(verified_at=FIRST, verified_depth=depth) for depth in ("deep", "shallow")]
    assert told_in_order(*looks) == told_in_order(*reversed(looks))


def test_what_is_said_of_no_attempt_makes_none():
    assert joined(ledger(), "", known()) == ledger()


def test_records_that_go_take_what_they_said_along():
    facts = ledger(a=known(certified_at=FIRST, removed_at=THEN))
    facts = without(facts, A, ["removed_at"])
    assert facts == ledger(a=known(certified_at=FIRST))
    assert without(facts, A, ["certified_at", "certificate_sha256"]) == ledger()


def test_a_ledger_that_was_forgotten_is_expired_and_one_that_is_held_alone_is_not():
    told = KnownLedger(ledger_id=1, topic=ML_NAME, attempts={A: KnownAttempt(attempted_at=FIRST)})
    assert state_of(told) == "sealed"
    assert state_of(without(told, A, ("attempted_at",))) == "expired"
    assert state_of(KnownLedger(ledger_id=1, held="audit")) == "sealed"


def test_what_goes_of_an_attempt_that_nothing_is_known_of_makes_none():
    assert without(ledger(b=known(certified_at=FIRST)), A, ["removed_at"]) == ledger(
        b=known(certified_at=FIRST)
    )


PUBLISHED = {"certified_at": FIRST, "published_at": FIRST}


@pytest.mark.parametrize(
    ("facts", "held", "state"),
    [
        ({"attempted_at": FIRST}, None, "sealed"),
        ({"certified_at": FIRST}, None, "verified"),
        ({"certified_at": FIRST}, "audit", "verified"),
        ({"certified_at": FIRST, "quarantined_at": THEN}, None, "quarantined"),
        ({"attempted_at": FIRST, "quarantined_at": THEN}, None, "quarantined"),
        (PUBLISHED, None, "published"),
        ({**PUBLISHED, "withdrawn_at": THEN}, None, "verified"),
        (PUBLISHED, "audit", "held"),
        ({**PUBLISHED, "intended_at": THEN}, None, "releasing"),
        ({**PUBLISHED, "intended_at": THEN}, "audit", "held"),
        ({**PUBLISHED, "released_at": THEN}, None, "released"),
        ({**PUBLISHED, "released_at": THEN}, "audit", "released"),
        ({**PUBLISHED, "released_at": THEN, "removed_at": LAST}, None, "expired"),
    ],
)
def test_the_state_follows_from_what_is_known(facts, held, state):
    of_one = KnownLedger(ledger_id=42, held=held, attempts={A: known(**facts)})
    assert state_of(of_one) == row_of_ledger(of_one, page=1)["state"] == state
