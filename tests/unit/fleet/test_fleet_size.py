"""Doctor says when dagster.partition_by is to change, and when a fleet is too large to be read."""

import sys
from dataclasses import replace

import pytest

from tests.support.sim_clients import Process
from tests.support.sim_dagster import add_closed_ledgers
from tests.support.sim_world import World
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.fleet.size import check_fleet_size
from tiering_assets.ground.finding import Level
from tiering_assets.resources.kept_tables import KEPT
from tiering_assets.resources.settings import CatalogueSettings

TOPIC = "t/ns/persistent/orders"
DAY_S = 24 * 3600


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def look(world):
    """Eight ledgers are closed, with an open one."""
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    add_closed_ledgers(world, site, TOPIC, 8)
    stack = Process(world, "doctor", site).stack()

    def ask(by, most):
        dagster = replace(stack.settings.dagster, partition_by=by, partitions_max=most)
        now = replace(stack, settings=replace(stack.settings, dagster=dagster))
        [found, _of_catalogue] = check_fleet_size(now)
        return found

    return ask


def test_near_the_bound_a_day_is_advised_with_the_way_there(look):
    found = look("ledger", 10)
    assert found.level is Level.WARN
    assert found.text.startswith("8 ledgers were closed within the deletion lag (")
    assert "Dagster has keys for 10" in found.text
    assert found.next_step.startswith('set dagster.partition_by = "day" in tierkeeper.toml')
    assert "`tierkeeper dagster rebuild`" in found.next_step


@pytest.mark.parametrize(("by", "most"), [("ledger", 11), ("day", 80), ("day", 10)])
def test_what_suits_is_fine(look, by, most):
    found = look(by, most)
    assert found.level is Level.OK
    assert found.text.endswith(f"dagster.partition_by = {by} suits them")


def test_few_ledgers_could_be_shown_one_by_one(look):
    found = look("day", 81)
    assert found.level is Level.OK
    assert 'dagster.partition_by = "ledger" would show each of them' in found.text


def test_ledgers_that_may_be_released_need_no_key(look, world):
    world.scheduler.now += 30 * DAY_S
    assert look("ledger", 10).text.startswith("0 ledgers were closed")


# ----- the catalogue


@pytest.fixture
def stack(world, tmp_path):
    """Of a fleet of nine ledgers."""
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    add_closed_ledgers(world, site, TOPIC, 8)
    stack = Process(world, "doctor", site).stack()
    tables = CatalogueSettings(root=str(tmp_path / "tables"))
    return replace(stack, settings=replace(stack.settings, catalogue=tables))


def of_catalogue(stack):
    [_partitions, found] = check_fleet_size(stack)
    assert found.check == "catalogue"
    return found


def switch_off(stack):
    return replace(
        stack, settings=replace(stack.settings, catalogue=CatalogueSettings(enabled=False))
    )


def have_no_package(monkeypatch):
    KEPT.forget()
    monkeypatch.setitem(sys.modules, "deltalake", None)


@pytest.mark.parametrize(("most", "level"), [(9, Level.OK), (8, Level.WARN)])
def test_before_a_proof_a_large_fleet_is_warned_of(stack, monkeypatch, most, level):
    monkeypatch.setattr("tiering_assets.fleet.size.SURVEYED_MAX", most)
    found = of_catalogue(stack)
    assert found.level is level
    assert found.text.startswith(
        "the catalogue is not proven: sensors, lists and counts read all 9"
    )
    assert ("`tierkeeper catalogue prove`" in found.next_step) is (level is Level.WARN)


def test_so_it_is_where_the_catalogue_is_off_or_its_package_is_missing(stack, monkeypatch):
    monkeypatch.setattr("tiering_assets.fleet.size.SURVEYED_MAX", 8)
    found = of_catalogue(switch_off(stack))
    assert (found.level, found.text[:26]) == (Level.WARN, "catalogue.enabled is false")
    assert found.next_step.startswith("set catalogue.enabled = true")
    have_no_package(monkeypatch)
    found = of_catalogue(stack)
    assert (found.level, found.text[:34]) == (Level.WARN, "package deltalake is not installed")
    assert found.next_step == "pip install deltalake"


def test_a_proven_catalogue_is_fine_until_it_is_behind(stack, world, monkeypatch):
    monkeypatch.setattr("tiering_assets.fleet.size.SURVEYED_MAX", 8)
    prove(stack, Catalogue.of(stack))
    scan(stack, Catalogue.of(stack))
    found = of_catalogue(stack)
    assert found.level is Level.OK
    assert found.text.startswith("it is asked about all 9 ledgers that topics list; as of page ")
    world.scheduler.now += 1900
    found = of_catalogue(stack)
    assert found.level is Level.WARN
    assert "too long ago" in found.text
