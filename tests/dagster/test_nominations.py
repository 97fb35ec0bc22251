"""Sensors look where the catalogue says that something is due, and judge that by what is there."""

import sys
from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pyarrow as pa
import pytest

from tests.dagster.test_sensors import (  # noqa: F401 - a fixture
    MEMORY,
    TOPIC,
    UNFINISHED,
    add_topic,
    ids_of,
    site,
)
from tests.support.default_cluster import PARTITION_SET
from tests.support.sim_clients import Process
from tests.support.topic_halves import release_topic
from tiering_assets.automation import retirable
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.scans_told import ScansTold
from tiering_assets.catalogue.view import Catalogue, carried, rows_of
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy, TieringMode
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.pauses import pause, resume
from tiering_assets.look.brakes.scopes import ledger_scope, topic_scope
from tiering_assets.look.ledger.claims import longest_claim
from tiering_assets.release.work import Released
from tiering_assets.resources.kept_tables import KEPT

OTHER = "t/ns/persistent/other"


@pytest.fixture
def proven(site):  # noqa: F811
    """A site whose catalogue is proven, before anything was offloaded."""
    catch_up(site)
    prove(site.stack, Catalogue.of(site.stack))
    return site


def catch_up(site):  # noqa: F811
    while post(site.stack, Catalogue.of(site.stack)).pages:
        pass
    scan(site.stack, Catalogue.of(site.stack))


def run(site, act):  # noqa: F811
    """As a run does it: with pages."""
    stack = Process(site.world, "run", site.site).stack()
    done = act(stack)
    stack.book.close_page()
    catch_up(site)
    return done


def read_nodes(site, monkeypatch):  # noqa: F811
    """Names of topics whose nodes are read from now on."""
    read = []
    really = type(site.stack.topics).read_many

    def read_many(topics, names):
        names = [*names]
        read.extend(names)
        return really(topics, names)

    monkeypatch.setattr(type(site.stack.topics), "read_many", read_many)
    return read


def plant(site, ledger_id, **lie):  # noqa: F811
    """A row that says something else of a ledger."""
    catalogue = Catalogue.of(site.stack)
    tables = catalogue.opened()
    [row] = rows_of(tables, [ledger_id])
    table = tables["ledger_changes"]
    lying = {**row, **lie, "turn": table.turn + 1}
    made = pa.Table.from_pylist([lying], schema=TABLES["ledger_changes"])
    assert table.append(made, told=carried(table))


# ----- what is due is found


def test_a_ledger_that_is_above_a_threshold_is_asked_for(proven):
    assert proven.asked("offload_threshold") == [[0]]


def test_one_that_was_closed_since_is_found_after_the_next_scan(proven):
    run(proven, lambda stack: offload_batch(stack, [0]))
    assert proven.asked("offload_threshold") == []
    add_topic(proven.site, OTHER)
    assert proven.asked("offload_threshold") == []
    catch_up(proven)
    [asked] = proven.asked("offload_threshold")
    assert len(asked) == 1


def test_a_release_is_asked_for_once_the_lag_is_over(proven):
    run(proven, lambda stack: offload_batch(stack, [0]))
    assert proven.asked("release_due") == []
    proven.later(proven.stack.settings.release.deletion_lag_s + 60)
    assert proven.asked("release_due") == [[0]]
    [done] = run(proven, lambda stack: release_topic(stack, TOPIC, [0])).values()
    assert isinstance(done, Released)
    assert proven.asked("release_due") == []
    assert wrong(proven) == 0


def test_a_release_whose_run_died_behind_the_delete_is_asked_for_again(proven, monkeypatch):
    run(proven, lambda stack: offload_batch(stack, [0]))
    proven.later(proven.stack.settings.release.deletion_lag_s + 60)
    really = Process(proven.world, "run", proven.site).stack()

    with monkeypatch.context() as dying:
        dying.setattr(type(really.book), "create", guarded(type(really.book).create))
        with pytest.raises(KeyboardInterrupt):
            release_topic(really, TOPIC, [0])
    really.book.close_page()
    catch_up(proven)
    MEMORY.ticks.clear()
    assert proven.asked("release_due") == [[0]]
    assert wrong(proven) == 0


def test_what_a_run_published_that_died_before_its_close_page_is_released_in_time(
    proven, monkeypatch
):
    stack = Process(proven.world, "run", proven.site).stack()
    with monkeypatch.context() as dying:
        dying.setattr(type(stack.book), "close_page", lambda _book: None)
        offload_batch(stack, [0])
    proven.later(proven.stack.settings.release.deletion_lag_s + 60)
    catch_up(proven)
    assert proven.asked("release_due") == []  # nobody knows that the copy is ours
    proven.later(longest_claim(proven.stack).total_seconds() + 301)
    for _ in range(2):
        proven.tick("catalogue")
    assert proven.asked("release_due") == [[0]]


def guarded(create):
    def create_or_die(book, key, record):
        if key.startswith("releases/") and not key.endswith(".intent.json"):
            raise KeyboardInterrupt
        return create(book, key, record)

    return create_or_die


@pytest.mark.parametrize("scope", [ledger_scope(0), topic_scope("t/ns/orders")])
def test_what_is_held_is_no_wrong_nomination(proven, scope):
    run(proven, lambda stack: offload_batch(stack, [0]))
    proven.later(proven.stack.settings.release.deletion_lag_s + 60)
    run(proven, lambda stack: hold(stack, scope, reason="audit", author="kim"))
    assert proven.asked("release_due") == []
    assert wrong(proven) == 0


def test_more_than_one_nomination_takes_is_found_in_the_next_ticks(proven, monkeypatch):
    names = [f"t/ns/persistent/n{number}" for number in range(3)]
    for name in names:
        add_topic(proven.site, name)
    catch_up(proven)
    ids = sorted(i for name in [TOPIC, *names] for i in closed(proven, name))
    run(proven, lambda stack: offload_batch(stack, ids))
    proven.later(proven.stack.settings.release.deletion_lag_s + 60)
    monkeypatch.setattr(
        "tiering_assets.catalogue.nominate.ledgers_to_release.__kwdefaults__",
        {"after": None, "most": 2},
    )
    asked = [i for _ in range(3) for ids in proven.asked("release_due") for i in ids]
    assert sorted(asked) == ids


def closed(site, name):  # noqa: F811
    info, _node = site.stack.topics.read(name)
    return [one.ledger_id for one in info.ledgers if not one.is_open]


def test_a_ledger_that_was_closed_is_told_once_by_its_row(proven, monkeypatch):
    assert proven.tick("ledger_rollover").asset_events == []  # it is the backlog
    add_topic(proven.site, OTHER)
    catch_up(proven)
    read = read_nodes(proven, monkeypatch)
    [told] = proven.tick("ledger_rollover").asset_events
    assert told.description == "1 ledgers of 1 topics were closed"
    [row] = told.metadata["ledgers"].value.records
    assert (row.data["ledger"], row.data["topic"]) == ("2", "persistent://t/ns/other")
    assert proven.tick("ledger_rollover").asset_events == []
    run(proven, lambda stack: offload_batch(stack, [2]))
    assert proven.tick("ledger_rollover").asset_events == []
    proven.later(3600)
    catch_up(proven)
    assert proven.tick("ledger_rollover").asset_events == []
    assert set(read) <= {OTHER}  # by the run


def test_more_closed_ledgers_than_one_tick_tells_are_told_in_the_next(proven, monkeypatch):
    proven.tick("ledger_rollover")
    for number in range(5):
        add_topic(proven.site, f"t/ns/persistent/n{number}")
    catch_up(proven)
    monkeypatch.setattr("tiering_assets.defs.automation.rollover.EVENTS_MAX", 2)
    ticks = [proven.tick("ledger_rollover").asset_events for _ in range(4)]
    assert [[one.metadata["closed_ledgers"].value for one in events] for events in ticks] == [
        *([2], [2], [1], []),
    ]


def test_stuck_reads_those_topics_in_which_something_may_stand_still(proven, monkeypatch):
    add_topic(proven.site, OTHER)
    catch_up(proven)
    read = read_nodes(proven, monkeypatch)
    assert proven.tick("stuck").asset_events == []
    assert read == []
    proven.later(proven.stack.settings.auto.open_after_s + 60)
    proven.site.broker.produce(OTHER, [b"new"])
    proven.site.broker.roll_over(OTHER)
    catch_up(proven)
    read.clear()
    [told] = proven.tick("stuck").asset_events
    assert read == [TOPIC]
    assert "t/ns/orders has it open" in told.metadata["what"].value
    assert proven.tick("stuck").asset_events == []


def test_partitions_of_released_ledgers_are_retired_without_a_look_at_the_others(
    proven, monkeypatch
):
    add_topic(proven.site, OTHER)
    keys = [partition_key(i) for i in (0, 2, 99)]  # 99 is nowhere
    proven.instance.add_dynamic_partitions(PARTITION_SET, keys)
    run(proven, lambda stack: offload_batch(stack, [0, 2]))
    proven.later(proven.stack.settings.release.deletion_lag_s + 60)
    [done] = run(proven, lambda stack: release_topic(stack, TOPIC, [0])).values()
    assert isinstance(done, Released)
    looked = []
    really = retirable.find_retirable

    def find(stack, ledger_ids, **how):
        looked.extend(ledger_ids)
        return really(stack, ledger_ids, **how)

    monkeypatch.setattr(retirable, "find_retirable", find)
    proven.later(proven.stack.settings.auto.retire_after_s + 60)  # clocks differ
    catch_up(proven)
    [request] = proven.tick("retire_partitions").dynamic_partitions_requests
    assert looked == [0, 99]
    assert request.partition_keys == [keys[0], keys[2]]


# ----- without the package for tables


@pytest.fixture
def without_package(proven, monkeypatch):
    """A proven site whose tables can no longer be opened, and who waited for half an hour."""
    add_topic(proven.site, OTHER)
    proven.later(3600)
    KEPT.forget()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    return proven


def test_sensors_look_at_every_topic_without_its_package_and_say_which(without_package, capfd):
    assert without_package.asked("offload_threshold") == [[0, 2]]
    assert "package deltalake is not installed" in capfd.readouterr().err
    offload_batch(Process(without_package.world, "run", without_package.site).stack(), [0, 2])
    without_package.later(without_package.stack.settings.release.deletion_lag_s + 60)
    MEMORY.ticks.clear()
    assert sorted(i for ids in without_package.asked("release_due") for i in ids) == [0, 2]


@pytest.mark.parametrize("name", ["ledger_rollover", "stuck", "retire_partitions", "catalogue"])
def test_no_other_sensor_fails_without_its_package(without_package, name):
    without_package.tick(name)


# ----- what runs did is told when it is posted


def test_figures_are_told_behind_what_was_posted(proven):
    assert proven.tick("catalogue").asset_events == []
    stack = Process(proven.world, "run", proven.site).stack()
    offload_batch(stack, [0])
    stack.book.close_page()
    [figures, check, released] = proven.tick("catalogue").asset_events
    assert figures.metadata["copy_lag_bytes"].value == 0
    assert check.passed
    assert released.metadata["dagster/row_count"].value == 0
    proven.later(proven.stack.settings.release.deletion_lag_s + 60)
    stack = Process(proven.world, "run", proven.site).stack()
    release_topic(stack, TOPIC, [0])
    stack.book.close_page()
    [_figures, _check, released] = proven.tick("catalogue").asset_events
    assert released.metadata["dagster/row_count"].value == 1
    assert proven.tick("catalogue").asset_events == []


def test_figures_wait_a_while_and_are_not_forgotten(proven):
    for wanted in (3, 0):
        stack = Process(proven.world, "run", proven.site).stack()
        stack.book.take_up([0])
        stack.book.close_page()
        assert len(proven.tick("catalogue").asset_events) == wanted
    proven.later(61)
    assert len(proven.tick("catalogue").asset_events) == 3
    assert proven.tick("catalogue").asset_events == []


# ----- nothing else is looked at


def test_topics_in_which_nothing_can_become_due_are_not_read(proven, monkeypatch):
    proven.stack = replace(
        proven.stack, own_policies=OwnPolicies(default=OwnPolicy(threshold_seconds=3600))
    )
    assert proven.asked("offload_threshold") == []
    monkeypatch.setattr("tiering_assets.automation.resting.ROTATED", 0)
    read = read_nodes(proven, monkeypatch)
    assert proven.asked("offload_threshold") == []
    assert read == []
    proven.later(3600)
    catch_up(proven)
    assert proven.asked("offload_threshold") == [[0]]


def test_a_pause_that_is_lifted_wakes_every_topic(proven, monkeypatch):
    monkeypatch.setattr("tiering_assets.automation.resting.ROTATED", 0)
    scope = topic_scope("t/ns/orders")
    pause(proven.stack, scope, TieringMode.PAUSED, reason="a test", author="kim")
    assert proven.asked("offload_threshold") == []
    resume(proven.stack, scope, reason="a test", author="kim")
    assert proven.asked("offload_threshold") == [[0]]


def test_a_policy_of_ours_that_changes_wakes_every_topic(proven, monkeypatch):
    monkeypatch.setattr("tiering_assets.automation.resting.ROTATED", 0)
    below = OwnPolicies(default=OwnPolicy(threshold_bytes=10**9))
    above, proven.stack = proven.stack, replace(proven.stack, own_policies=below)
    assert proven.asked("offload_threshold") == []
    proven.stack = above
    assert proven.asked("offload_threshold") == [[0]]


def test_nothing_due_reads_no_node_for_releases(proven, monkeypatch):
    run(proven, lambda stack: offload_batch(stack, [0]))
    read = read_nodes(proven, monkeypatch)
    assert proven.asked("release_due") == []
    assert read == []


# ----- a catalogue that is wrong, late, or not there


def wrong(site):  # noqa: F811
    return ScansTold.by(Catalogue.of(site.stack).opened()["topic_changes"]).wrong


def state(site, ledger_id=0):  # noqa: F811
    [row] = rows_of(Catalogue.of(site.stack).opened(), [ledger_id])
    return row["state"]


def test_a_ledger_that_rows_call_due_and_is_not_is_counted_and_its_row_made_anew(proven):
    run(proven, lambda stack: offload_batch(stack, [0], publish=False))
    then = proven.stack.now() - timedelta(days=365)
    plant(
        proven,
        0,
        state="published",
        listed_as="offloaded",
        offloaded_by="tierkeeper",
        published_at=then,
    )
    assert proven.asked("release_due") == []
    assert wrong(proven) == 1
    assert state(proven) == "verified"
    assert proven.asked("release_due") == []
    assert wrong(proven) == 1


def test_a_ledger_that_rows_call_released_is_found_by_the_next_scan_that_sees_its_topic_move(
    proven,
):
    run(proven, lambda stack: offload_batch(stack, [0]))
    plant(proven, 0, state="released", released_at=proven.stack.now())
    proven.later(proven.stack.settings.release.deletion_lag_s + 60)
    assert proven.asked("release_due") == []


def test_before_it_is_proven_every_topic_is_looked_at(site):  # noqa: F811
    catch_up(site)
    add_topic(site.site, OTHER)
    assert sorted(i for ids in site.asked("offload_threshold") for i in ids) == [0, 2]


def test_one_that_is_behind_fails_the_tick_by_name(proven):
    proven.later(31 * 60)
    for name in ("offload_threshold", "release_due", "ledger_rollover"):
        with pytest.raises(dg.Failure, match="the last whole scan of topics"):
            proven.tick(name)
    [told] = proven.tick("stuck").asset_events
    assert "| catalogue behind | catalogue |" in told.metadata["what"].value
    assert proven.tick("stuck").asset_events == []
    catch_up(proven)
    assert proven.asked("offload_threshold") == [[0]]


def test_switched_off_every_topic_is_looked_at(proven):
    settings = proven.stack.settings
    off = replace(settings, catalogue=replace(settings.catalogue, enabled=False))
    add_topic(proven.site, OTHER)
    proven.stack = replace(proven.stack, settings=off)
    assert sorted(i for ids in proven.asked("offload_threshold") for i in ids) == [0, 2]
