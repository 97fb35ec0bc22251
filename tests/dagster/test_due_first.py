"""In a large fleet what is due is asked for before every topic has been looked at."""

from dataclasses import replace

import pytest

from tests.dagster.test_nominations import catch_up, proven, read_nodes  # noqa: F401 - fixtures
from tests.dagster.test_sensors import UNFINISHED, add_topic, site  # noqa: F401 - fixtures
from tiering_assets.defs.automation import threshold
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy

BELOW = [f"t/ns/persistent/{letter}" for letter in "abc"]
DUE = ["t/ns/persistent/x", "t/ns/persistent/y"]
OWN = OwnPolicies(
    default=OwnPolicy(threshold_bytes=10**9),
    topics={f"persistent://t/ns/{letter}": OwnPolicy(threshold_bytes=0) for letter in "xy"},
)


@pytest.fixture
def fleet(proven, monkeypatch):  # noqa: F811
    """Three topics below their thresholds, and two behind them above theirs."""
    monkeypatch.setattr("tiering_assets.automation.resting.ROTATED", 0)
    for name in (*BELOW, *DUE):
        add_topic(proven.site, name)
    catch_up(proven)
    proven.stack = replace(proven.stack, own_policies=OWN)
    return proven


def test_topics_that_are_due_come_first_and_each_is_looked_at_once(fleet, monkeypatch):
    monkeypatch.setattr(threshold, "SOON_ABOVE", 0)
    read = read_nodes(fleet, monkeypatch)
    [asked] = fleet.asked("offload_threshold")
    assert len(asked) == 2
    assert read == [*DUE, *BELOW, "t/ns/persistent/orders"]


def test_where_one_tick_looks_at_all_they_have_their_order(fleet, monkeypatch):
    read = read_nodes(fleet, monkeypatch)
    assert len(fleet.asked("offload_threshold")) == 1
    assert read == sorted([*DUE, *BELOW, "t/ns/persistent/orders"])


def test_a_tick_that_asks_for_enough_goes_on_with_the_next_that_is_due(fleet, monkeypatch):
    monkeypatch.setattr(threshold, "SOON_ABOVE", 0)
    fleet.set(batch_ledgers_max=1, runs_unfinished_max=1)
    first = fleet.tick("offload_threshold").run_requests
    assert len(first) == 1
    second = fleet.tick("offload_threshold").run_requests
    assert len(second) == 1
    assert first[0].run_config != second[0].run_config


def test_what_only_looks_due_does_not_keep_others_from_being_looked_at(fleet, monkeypatch):
    """Its run is not over: it is asked for no more, though rows say that it is due."""
    monkeypatch.setattr(threshold, "SOON_ABOVE", 0)
    for request in fleet.tick("offload_threshold").run_requests:
        fleet.launch(request, UNFINISHED)
    name = "t/ns/persistent/w"
    add_topic(fleet.site, name)
    catch_up(fleet)
    read = read_nodes(fleet, monkeypatch)
    assert fleet.asked("offload_threshold") == []
    assert read == [*DUE, name]  # the others rest
