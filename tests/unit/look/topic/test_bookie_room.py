"""How many writable bookies a reload needs, and which placements nobody computes."""

from dataclasses import replace

import pytest

from tiering_assets.ground.reasons import Reason
from tiering_assets.look.topic.bookie_room import (
    BookieSight,
    Placement,
    placement_of,
    why_bookies_short,
)

THREE = ("b1:3181", "b2:3181", "b3:3181")
SIGHT = BookieSight(writable=THREE, readonly=(), cookies=THREE, placement=Placement(ensemble=3))


def why(enough=0, **changes):
    return why_bookies_short(replace(SIGHT, **changes), enough=enough)


def test_as_many_as_the_larger_of_both_ensembles_do():
    assert why() is None
    assert why(data_ensemble=3) is None
    assert why(data_ensemble=2) is None
    assert "a reload needs 4" in why(data_ensemble=4).detail
    assert "a reload needs 3" in why(data_ensemble=2, writable=THREE[:2]).detail  # the cursors'


def test_what_is_there_what_is_not_and_what_helps_is_said():
    wait = why(writable=THREE[:1], readonly=THREE[1:2])
    assert wait.reason is Reason.BOOKIES_SHORT
    assert "1 writable bookies (b1:3181)" in wait.detail
    assert "data ledgers have an ensemble of 3, cursor ledgers of 3" in wait.detail
    assert "read-only: b2:3181; not there: b3:3181" in wait.detail
    assert "start bookies" in wait.detail


def test_without_a_broker_that_would_load_it_again_it_is_left_alone():
    wait = why(silent="no broker is registered")
    assert wait.reason is Reason.LEFT_ALONE
    assert "no broker is registered" in wait.detail


@pytest.mark.parametrize(
    "config",
    [
        {"bookkeeperClientRegionawarePolicyEnabled": "true"},
        {"bookkeeperClientEnforceMinNumRacksPerWriteQuorum": "true"},
        {"bookkeeperClientIsolationGroups": "left"},
        {"bookkeeperClientSecondaryIsolationGroups": "right"},
        {"strictBookieAffinityEnabled": "true"},
        {"bookkeeper_ensemblePlacementPolicy": "com.example.Own"},
        {"ensemblePlacementPolicyClassName": "com.example.Own"},
    ],
    ids=lambda config: next(iter(config)),
)
def test_a_placement_that_is_not_computed_waits_by_name_or_by_a_persons_word(config):
    placement = placement_of({"a:1": {"managedLedgerDefaultEnsembleSize": "2"} | config})
    [(name, value)] = config.items()
    assert f"a:1 has {name}={value}" in why(placement=placement).detail
    assert why(placement=placement, enough=3) is None
    assert "a reload needs 4" in why(placement=placement, enough=4).detail
    assert "a reload needs 5" in why(placement=placement, data_ensemble=5, enough=3).detail


def test_settings_that_change_no_number_are_no_reason():
    config = {
        "managedLedgerDefaultEnsembleSize": "3",
        "bookkeeperClientRackawarePolicyEnabled": "true",
        "bookkeeperClientMinNumRacksPerWriteQuorum": "2",
        "bookkeeperClientEnforceMinNumRacksPerWriteQuorum": "false",
        "bookkeeperClientRegionawarePolicyEnabled": "false",
        "bookkeeperClientIsolationGroups": "",
        "bookkeeperDiskWeightBasedPlacementEnabled": "true",
        "ensemblePlacementPolicyClassName": (
            "org.apache.bookkeeper.client.RackawareEnsemblePlacementPolicy"
        ),
    }
    assert placement_of({"a:1": config}) == Placement(ensemble=3)


def test_the_strictest_broker_counts_and_a_silent_one_is_named():
    def config(size):
        return {"managedLedgerDefaultEnsembleSize": size}

    assert placement_of({"a:1": config("2"), "b:1": config("5")}) == Placement(ensemble=5)
    [unknown] = placement_of({"a:1": config("2"), "b:1": {}}).unknown
    assert unknown == "b:1 does not tell its managedLedgerDefaultEnsembleSize"


def test_an_affinity_group_is_named():
    assert "group x" in why(affinity="group x").detail
    assert why(affinity="group x", enough=3) is None


def test_nothing_is_said_of_what_there_is_none_of():
    wait = why(writable=(), cookies=(), readonly=THREE[:1])
    assert ". read-only: b1:3181. The topic stays loaded" in wait.detail


def test_a_persons_word_counts_only_where_nobody_can_compute():
    assert why(enough=9) is None


@pytest.mark.parametrize("said", ["3", " 3 ", "\N{ARABIC-INDIC DIGIT THREE}", "-3", "3.0", ""])
def test_an_ensemble_is_a_number_as_a_broker_writes_it(said):
    placement = placement_of({"a:1": {"managedLedgerDefaultEnsembleSize": said}})
    if said.strip() == "3":
        assert placement == Placement(ensemble=3)
    else:
        assert placement.unknown == ("a:1 does not tell its managedLedgerDefaultEnsembleSize",)
