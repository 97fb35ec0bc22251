"""`dagster.partition_by`: what definitions it makes, and changing it both ways, in Dagster's own
instance on simulated servers.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from tests.support.sim_clients import Process
from tests.support.sim_dagster import executing, hand_out
from tests.support.sim_world import World
from tiering_assets.definitions import build_definitions
from tiering_assets.defs.prune import find_old_runs
from tiering_assets.defs.rebuild import rebuild
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.partitions import day_key, is_day_key
from tiering_assets.defs.shared.resources import TieringStack
from tiering_assets.defs.telling import by_day
from tiering_assets.defs.telling.days import DayCount, day_event
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import CatalogueSettings, DagsterSettings, Settings

TOPIC = "t/ns/persistent/orders"
OPS = {"discover": "discovered", "offload": "offload_ledgers", "release": "release_ledgers"}
DAY_S = 24 * 3600
OF_LEDGERS = (
    "sealed_ledgers",
    "offloaded_objects",
    "index_objects",
    "certificates",
    "offload_contexts",
    "deleted_bookie_ledgers",
)
BY = {by: DagsterSettings(partition_by=by) for by in ("ledger", "day")}
NAMES = {by: ClusterNames.of(settings) for by, settings in BY.items()}


@pytest.fixture(scope="module")
def built():
    return {by: build_definitions(Settings(dagster=settings)) for by, settings in BY.items()}


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def stack(world):
    """Ledgers 0 and 1 were closed on one day, 2 and 3 on the next."""
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    for ledger_id in range(4):
        site.broker.produce(TOPIC, [b"first", b"last"])
        site.broker.roll_over(TOPIC)
        world.scheduler.now += DAY_S if ledger_id == 1 else 1
    return Process(world, "dagster", site).stack()


@pytest.fixture
def instance(tmp_path):
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


class Driven:
    """Jobs and rebuilds with a setting of one's choice, in one instance."""

    def __init__(self, built, stack, instance, monkeypatch):
        self.built, self.stack, self.instance = built, stack, instance
        self.monkeypatch = monkeypatch

    def set_to(self, by):
        return replace(self.stack, settings=replace(self.stack.settings, dagster=BY[by]))

    def run(self, by, job, tags=None, assets=None, **config):
        with self.monkeypatch.context() as handed:
            hand_out(handed, self.set_to(by))
            result = (
                self.built[by]
                .resolve_job_def(job)
                .execute_in_process(
                    instance=self.instance,
                    tags=tags,
                    asset_selection=assets and [key(name) for name in assets],
                    run_config={"ops": {OPS[job]: {"config": executing(job, config)}}},
                )
            )
        assert result.success
        return result

    def rebuild(self, by, **how):
        return rebuild(self.set_to(by), self.instance, NAMES[by], workers=1, **how)

    def told(self, name):
        """The metadata of every partition's newest materialization."""
        records = self.instance.fetch_materializations(key(name), limit=999, ascending=True).records
        return {
            one.partition_key: {k: v.value for k, v in one.asset_materialization.metadata.items()}
            for one in records
        }

    def keys(self):
        return self.instance.get_dynamic_partitions(NAMES["ledger"].partition_set)

    def materialized(self, by, name):
        """What Dagster itself calls materialized, by the definition of now."""
        definition = NAMES[by].partitions
        keys = definition.get_partition_keys(dynamic_partitions_store=self.instance)
        found = self.instance.get_status_by_partition(key(name), keys, definition)
        return {k for k, status in found.items() if status and status.value == "MATERIALIZED"}


@pytest.fixture
def driven(built, stack, instance, monkeypatch):
    return Driven(built, stack, instance, monkeypatch)


def key(name):
    return dg.AssetKey(["pulsar", name])


def days_of(stack):
    info, _node = stack.topics.read(TOPIC)
    return [
        datetime.fromtimestamp(info.ledger(i).closed_at_ms / 1000, UTC).date().isoformat()
        for i in range(4)
    ]


# ----- definitions


def test_a_partition_is_a_ledger_unless_it_is_set_to_a_day(built):
    assert DagsterSettings().partition_by == "ledger"
    for by, defs in built.items():
        graph = defs.resolve_asset_graph()
        partitioned = {
            k.path[-1]: graph.get(k).partitions_def
            for k in graph.get_all_asset_keys()
            if graph.get(k).partitions_def is not None
        }
        assert set(partitioned) == set(OF_LEDGERS)
        assert set(partitioned.values()) == {NAMES[by].partitions}
        checks = {spec.partitions_def for check in defs.asset_checks for spec in check.check_specs}
        assert checks == ({None} if by == "day" else {NAMES[by].ledger_partitions})
    days = NAMES["day"].partitions.get_partition_keys()
    assert (days[0], days[-1]) == ("2016-01-01", datetime.now(UTC).date().isoformat())
    assert len(days) < 5000


def test_jobs_and_sensors_are_the_same(built):
    ledger, day = (built[by].get_repository_def() for by in ("ledger", "day"))
    assert {job.name: job.tags for job in ledger.get_all_jobs() if job.tags} == {
        job.name: job.tags for job in day.get_all_jobs() if job.tags
    }
    assert [s.name for s in ledger.sensor_defs] == [s.name for s in day.sensor_defs]


def test_a_backfill_of_days_is_a_run_a_day(built):
    for by, most in (("ledger", 100), ("day", 1)):
        made = [one for one in built[by].assets if isinstance(one, dg.AssetsDefinition)]
        assert len(made) == 7
        for one in made:
            assert one.backfill_policy == dg.BackfillPolicy.multi_run(most)


def test_any_other_word_is_refused():
    with pytest.raises(
        SettingsError, match=r"dagster.partition_by is 'hour', expected ledger or day"
    ):
        ClusterNames.of(DagsterSettings(partition_by="hour"))


def test_a_run_refuses_a_setting_that_changed_since_its_definitions(monkeypatch):
    monkeypatch.setattr(TieringStack, "load", lambda _self: Settings(dagster=BY["day"]))
    assert TieringStack().load_for_cluster(NAMES["day"]).dagster == BY["day"]
    with pytest.raises(SettingsError, match="reload the code location"):
        TieringStack().load_for_cluster(NAMES["ledger"])


@pytest.mark.parametrize(
    ("closed_at", "day"),
    [
        (None, None),
        (datetime(2015, 12, 31, 23, 59, tzinfo=UTC), None),
        (datetime(2016, 1, 1, tzinfo=UTC), "2016-01-01"),
        (datetime.fromisoformat("2026-11-28T01:30:00+02:00"), "2026-11-27"),
    ],
)
def test_a_day_is_one_in_utc(closed_at, day):
    assert day_key(closed_at) == day
    assert day is None or is_day_key(day)
    assert not is_day_key("42")


# ----- runs


def test_a_day_says_how_many_and_where_the_others_are(driven, stack):
    first, _first, second, _second = days_of(stack)
    driven.run("day", "offload", ledger_ids=[0, 1, 2])
    told = driven.told("certificates")
    assert {day: one["ledgers"] for day, one in told.items()} == {first: 2, second: 1}
    one = told[first]
    assert (one["payload_bytes"], one["first_ledger"], one["last_ledger"]) == (18, "0", "1")
    assert one["catalogue"] == stack.settings.catalogue.root
    after = datetime.fromisoformat(first) + timedelta(days=1)
    assert (
        f"closed_at >= timestamp '{first}' and closed_at < timestamp '{after:%Y-%m-%d}'"
        in (one["which"])
    )
    assert driven.materialized("day", "certificates") == {first, second}
    assert driven.keys() == []


def test_the_link_into_the_catalogue_is_where_its_tables_are(stack):
    below = replace(stack, settings=replace(stack.settings, catalogue=CatalogueSettings()))
    event = day_event(below, key("certificates"), "2026-03-01", DayCount(1, 9, 7, 7), whole=False)
    assert event.metadata["catalogue"].value == f"s3://sim-bucket/{stack.book.prefix}catalogue/"
    assert event.description == "1 ledgers closed on 2026-03-01, by one run"


def test_a_backfill_of_a_day_takes_that_days_ledgers(driven, stack):
    second = days_of(stack)[2]
    tags = {
        "dagster/asset_partition_range_start": second,
        "dagster/asset_partition_range_end": second,
    }
    driven.run("day", "offload", tags=tags)
    info, _node = stack.topics.read(TOPIC)
    assert [info.ledger(i).offload is not None for i in range(4)] == [False, False, True, True]


# ----- changing it


def test_both_ways_a_rebuild_fills_the_new_keys_and_old_history_stays(driven, stack, world):
    first, _first, second, _second = days_of(stack)
    driven.run("ledger", "discover", max_ledgers=4)
    driven.run("ledger", "offload", ledger_ids=[0, 1, 2])
    world.scheduler.now += DAY_S
    driven.run("ledger", "release", ledger_ids=[0], publish_waiting=False)
    by_ledger = {name: driven.told(name) for name in OF_LEDGERS}

    planned = driven.rebuild("day", dry_run=True)
    found = driven.rebuild("day")
    assert planned == found
    assert (found.ledgers, found.partitions_added, found.partitions_removed) == (3, 0, 4)
    whole = {name: driven.told(name) for name in OF_LEDGERS}
    for name in OF_LEDGERS:
        days = {k: one["ledgers"] for k, one in whole[name].items() if is_day_key(k)}
        assert days == ({first: 1} if name == "deleted_bookie_ledgers" else {first: 2, second: 1})
        assert {k: one for k, one in whole[name].items() if not is_day_key(k)} == by_ledger[name]
        assert driven.materialized("day", name) == set(days)
        assert found.materializations[name] == len(days)
    assert whole["certificates"][first]["whole_day"] is True
    assert driven.keys() == []
    assert driven.rebuild("day").materializations == {}

    driven.run("day", "offload", ledger_ids=[3])
    back = driven.rebuild("ledger")
    assert (back.ledgers, back.partitions_added, back.partitions_removed) == (4, 4, 0)
    assert back.materializations == dict.fromkeys(
        ("offloaded_objects", "index_objects", "certificates", "offload_contexts"), 1
    )  # of ledger 3; what was told of the others before the change is there
    assert driven.keys() == ["0", "1", "2", "3"]
    for name in OF_LEDGERS:
        assert driven.materialized("ledger", name) == set(driven.keys()) & driven.told(name).keys()
        again = driven.told(name)
        assert {k: again[k] for k in by_ledger[name]} == by_ledger[name]
        assert {k for k in again if is_day_key(k)} == {k for k in whole[name] if is_day_key(k)}
    assert driven.rebuild("ledger").materializations == {}


def test_a_rebuild_replaces_keys_as_they_once_were(driven):
    driven.run("ledger", "offload", ledger_ids=[0])
    name = NAMES["ledger"].partition_set
    driven.instance.delete_dynamic_partition(name, "0")
    old = f"{0:019d}"
    driven.instance.add_dynamic_partitions(name, [old])
    driven.instance.report_runless_asset_event(
        dg.AssetMaterialization(key("certificates"), partition=old, metadata={"said": "before"})
    )
    found = driven.rebuild("ledger")
    assert (found.partitions_added, found.partitions_removed) == (1, 1)
    assert driven.keys() == ["0"]
    assert driven.told("certificates")[old] == {"said": "before"}


def test_a_rebuild_by_another_setting_than_the_definitions_is_refused(driven):
    with pytest.raises(SettingsError, match="TIERKEEPER_DAGSTER_PARTITION_BY"):
        rebuild(driven.set_to("day"), driven.instance, NAMES["ledger"])


def test_runs_that_told_of_days_are_not_pruned(driven):
    alone = driven.run("day", "offload", ledger_ids=[0]).run_id
    later = datetime.now(UTC) + timedelta(hours=1)
    assert find_old_runs(driven.instance, NAMES["day"], before=later).going == ()
    driven.run("day", "offload", ledger_ids=[0, 1])
    assert find_old_runs(driven.instance, NAMES["day"], before=later).going == (alone,)


def test_discover_counts_the_sealed_ledgers_of_a_day_from_its_survey(driven, stack, monkeypatch):
    first, _first, second, _second = days_of(stack)
    with monkeypatch.context() as blind:
        blind.setattr(
            by_day, "days_of", lambda _stack, names: {} if not names else pytest.fail("asked")
        )
        driven.run("day", "discover")
    assert {day: one["ledgers"] for day, one in driven.told("sealed_ledgers").items()} == {
        first: 2,
        second: 2,
    }


def test_a_ledger_whose_topic_lists_it_no_more_is_counted_by_no_day(driven, stack, monkeypatch):
    with monkeypatch.context() as trimmed:
        trimmed.setattr(by_day, "days_of", lambda *_any: {})
        result = driven.run("day", "offload", ledger_ids=[0])
    assert driven.told("certificates") == {}
    lines = [row.user_message for row in driven.instance.all_logs(result.run_id)]
    assert any("1 ledgers of other days than none, from 0 on" in line for line in lines)
