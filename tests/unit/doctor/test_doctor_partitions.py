"""Doctor says when to change dagster.partition_by."""

from dataclasses import replace

import pytest

from tests.support.sim_clients import Process
from tests.support.sim_dagster import add_closed_ledgers
from tests.support.sim_world import World
from tiering_assets.doctor.partitions import check_partitions
from tiering_assets.ground.finding import Level

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
        [found] = check_partitions(now)
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
