"""What each kind of record says of a ledger: every kind has its place, one that is silent, too."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.catalogue.desk import example, stored
from tests.unit.records.examples import AT, EXAMPLES, ML_NAME, UID
from tiering_assets.catalogue.facts.known_ledger import KnownAttempt
from tiering_assets.catalogue.facts.record_facts import (
    LEAVES,
    SAYS,
    SILENT,
    TYPES,
    folder_of,
    ledger_and_attempt,
    told_by,
    type_of,
)
from tiering_assets.records import broker_models, keys, models, scrub_model, sweep_models
from tiering_assets.records.codec import encode_record
from tiering_assets.records.key_kinds import FOLDERS

OF_LEDGER = {"topic": ML_NAME, "entries": 10, "bytes": 1000}
TOPIC = {"topic": ML_NAME}
LATER = AT + timedelta(seconds=9)
GOOD = {"findings": (), "lost": ()}
SAID: list[tuple[str, Any, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (keys.attempt(42, UID), models.Attempt, {}, {"attempted_at": AT}, OF_LEDGER),
    (
        keys.certificate(42, UID),
        models.Certificate,
        {},
        {"certified_at": AT, "certificate_sha256": "5a" * 32, "object_bytes": 1248},
        OF_LEDGER,
    ),
    (keys.broker_copy(42, UID), scrub_model.BrokerCopy, {}, {"object_bytes": 1248}, TOPIC),
    (keys.damage(42, UID), scrub_model.Damage, {}, {"damaged_at": AT}, TOPIC),
    (keys.publication(ML_NAME, 1), models.Publication, {}, {"published_at": LATER}, TOPIC),
    (keys.quarantine(42, UID), models.Quarantine, {}, {"quarantined_at": AT}, TOPIC),
    (keys.quarantine(42, UID), models.Quarantine, {"ml_name": None}, {"quarantined_at": AT}, {}),
    (keys.release(42, UID), models.Release, {}, {"released_at": AT}, TOPIC),
    (keys.release_intent(42, UID), models.ReleaseIntent, {}, {"intended_at": AT}, TOPIC),
    (keys.removal(42, UID), sweep_models.Removal, {}, {"removed_at": AT}, TOPIC),
    (
        keys.scrub(42, UID, "deep"),
        scrub_model.Scrub,
        GOOD,
        {"verified_at": AT, "verified_depth": "deep", "deep_at": AT},
        TOPIC,
    ),
    (
        keys.scrub(42, UID, "shallow"),
        scrub_model.Scrub,
        {**GOOD, "depth": "shallow", "blocks_read": 0},
        {"verified_at": AT, "verified_depth": "shallow"},
        TOPIC,
    ),
    (
        keys.undo(ML_NAME, UID),
        broker_models.Undo,
        {"withdrawn": (broker_models.WithdrawnContext(ledger_id=42, uid=UID),)},
        {"withdrawn_at": AT},
        TOPIC,
    ),
]


def said_by(key, record, at=AT):
    return [*told_by(stored(key, record, at=at))]


@pytest.mark.parametrize(("key", "kind", "changes", "facts", "of_ledger"), SAID)
def test_each_record_says_what_it_stands_for(key, kind, changes, facts, of_ledger):
    record = example(kind, **changes)
    expected = (42, str(UID), KnownAttempt(**facts), of_ledger)
    assert said_by(key, record, LATER if kind is models.Publication else AT) == [expected]


def test_every_kind_that_speaks_is_heard():
    tried = {folder_of(key) for key, *_ in SAID}
    assert tried | {"forget-plans", "holds"} == set(SAYS)


def test_a_forget_plan_says_whose_ledgers_they_were():
    plan = example(sweep_models.ForgetPlan)
    told = said_by(keys.forget_plan("5a" * 32), plan)
    assert told == [
        (one.ledger_id, "", KnownAttempt(), {"topic": one.ml_name}) for one in plan.ledgers
    ]
    assert told


def test_a_hold_is_told_of_its_ledger_and_one_of_a_scope_of_none():
    hold, wider = example(models.Hold), example(models.ScopeHold)
    assert said_by(keys.hold(42), hold) == [(42, "", KnownAttempt(), {"held": "audit 17"})]
    assert said_by(keys.topic_hold(ML_NAME), wider) == []


def test_a_look_that_found_something_or_was_ended_has_verified_nothing():
    look = example(scrub_model.Scrub, **GOOD, blocks=2)
    assert said_by(keys.scrub(42, UID, "partial"), replace(look, blocks_read=1)) == []
    assert said_by(keys.scrub(42, UID, "failed"), example(scrub_model.Scrub)) == []
    assert len(said_by(keys.scrub(42, UID, "deep"), replace(look, blocks_read=2))) == 1


def test_what_an_undo_took_back_is_told_and_its_confirmation_says_nothing():
    undo = keys.undo(ML_NAME, UID)
    assert said_by(undo, example(broker_models.Undo)) == []
    assert said_by(keys.undo_confirmed(undo), example(broker_models.UndoConfirmed)) == []


def test_a_publication_counts_from_the_later_of_two_clocks():
    key, record = keys.publication(ML_NAME, 1), example(models.Publication)
    for at in (AT - timedelta(days=1), AT):
        assert said_by(key, record, at)[0][2].published_at == AT


def test_a_silent_kind_says_nothing():
    assert said_by(keys.outcome(42, UID), example(models.Outcome)) == []


def test_every_folder_speaks_or_is_silent():
    assert sorted([*SAYS, *SILENT]) == sorted(FOLDERS)
    assert TYPES.keys() == SAYS.keys()
    assert LEAVES.keys() <= SAYS.keys()


def test_what_leaves_is_what_was_said():
    names = {name for _k, _t, _c, facts, _o in SAID for name in facts}
    assert {name for some in LEAVES.values() for name in some} <= names


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: record.kind)
def test_a_record_that_speaks_is_read_as_what_it_is(record):
    folders = [folder for folder, types in TYPES.items() if type(record) in types]
    for folder in folders:
        assert type_of(f"{folder}/42.json", encode_record(record)["schema"]) is type(record)


def test_what_names_no_known_schema_is_read_as_the_first_type_and_refused_there():
    assert type_of("holds/42.json", None) is models.Hold


@pytest.mark.parametrize(
    "key",
    [
        keys.attempt(42, UID),
        keys.release(42, UID),
        keys.release_intent(42, UID),
        keys.scrub(42, UID, "deep"),
    ],
)
def test_a_key_of_an_attempt_names_both(key):
    assert ledger_and_attempt(key) == (42, str(UID))


def test_other_keys_name_neither():
    assert ledger_and_attempt(keys.hold(42)) == (42, None)
    for key in (keys.HOLD_ALL, keys.publication(ML_NAME, 1), "plans/x.json", "holds/042.json"):
        assert ledger_and_attempt(key) == (None, None)
