"""What a run writes into Dagster's event log, counted: in Dagster's own runs on SQLite, with the
simulated servers and the lines of the steps as a run has them.
"""

from collections import Counter
from dataclasses import replace

import dagster as dg
import pytest
from dagster._serdes import serialize_value

from tests.support.admin_sim import running_admin_simulator, tell_broker
from tests.support.sim_clients import Process
from tests.support.sim_dagster import SimulatedTiering, executing
from tests.support.sim_world import World
from tiering_assets.definitions import build_definitions
from tiering_assets.defs.shared.run_history import SENSOR_TAG
from tiering_assets.resources.settings import BrokerSettings, DagsterSettings, Settings

TOPIC = "payments-eu-west/settlement/persistent/card-authorisations-partition-12"
NAME = "persistent://payments-eu-west/settlement/card-authorisations-partition-12"
OPS = {
    "discover": "discovered",
    "offload": "offload_ledgers",
    "verify": "verify_ledgers",
    "release": "release_ledgers",
}
DAY_S = 24 * 3600
EVENTS_A_LEDGER, BYTES_A_LEDGER = 8, 10_000
EVENTS_A_RUN_BY_DAY = 30
NUMBERS_AN_EVENT = 6  # each is a plot of its asset's page
BYTES_A_RUN = 50_000  # whatever its ledgers: of which tables with fifty rows are most
MADE, CHECKED = "ASSET_MATERIALIZATION", "ASSET_CHECK_EVALUATION"


class Lived:
    """A fleet of closed ledgers, and the rows that jobs wrote about it."""

    def __init__(self, tmp_path, admin, *, by, ledgers, apart_s=60, on_disk=False):
        settings = DagsterSettings(partition_by=by, runner="local")
        self.world = World(1)
        self.site = self.world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        self.site.broker.create_topic(TOPIC)
        for _ledger in range(ledgers):
            self.site.broker.produce(TOPIC, [b"first", b"last"])
            self.world.scheduler.now += apart_s
            self.site.broker.roll_over(TOPIC)
        stack = Process(self.world, "dagster", self.site).stack()
        tell_broker(admin, stack.settings)
        self.stack = replace(
            stack,
            settings=replace(
                stack.settings,
                broker=BrokerSettings(admin_url=admin.url, timeout_s=10),
                dagster=settings,
            ),
        )
        self.defs = build_definitions(Settings(dagster=settings))
        self.instance = (
            dg.DagsterInstance.local_temp(str(tmp_path))
            if on_disk  # what is only in memory has no place for daemons' and sensors' states
            else dg.DagsterInstance.ephemeral()
        )
        self.ids = list(range(ledgers))

    def run(self, job, *, fails=False, by_sensor=False, **config):
        """The rows of one run: every one that Dagster keeps, its own included."""
        SimulatedTiering.now_open["stack"] = self.stack
        result = self.defs.resolve_job_def(job).execute_in_process(
            instance=self.instance,
            resources={"tiering_stack": SimulatedTiering()},
            raise_on_error=False,
            tags={SENSOR_TAG: "x"} if by_sensor else None,
            run_config={"ops": {OPS[job]: {"config": executing(job, config)}}},
        )
        assert result.success is not fails
        return self.instance.all_logs(result.run_id)


@pytest.fixture
def lived(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made: list[Lived] = []
    with running_admin_simulator() as admin:

        def make(**how):
            folder = tmp_path / str(len(made))
            folder.mkdir()
            made.append(Lived(folder, admin, **how))
            return made[-1]

        yield make
    for one in made:
        one.instance.dispose()


def size(rows):
    return sum(len(serialize_value(row)) for row in rows)


def told(rows):
    """By kind; a line of people is a `line`."""
    return Counter(
        "line" if row.dagster_event is None else row.dagster_event.event_type_value for row in rows
    )


def life(fleet):
    """The rows of every job that a ledger meets."""
    rows = {"discover": fleet.run("discover")}
    rows["offload"] = fleet.run("offload", ledger_ids=fleet.ids)
    rows["verify"] = fleet.run("verify", ledger_ids=fleet.ids)
    fleet.world.scheduler.now += DAY_S
    rows["release"] = fleet.run("release", ledger_ids=fleet.ids, publish_waiting=False)
    return rows


def test_what_a_ledger_adds_is_bounded_by_events_and_bytes(lived):
    few, many = (life(lived(by="ledger", ledgers=n)) for n in (5, 50))
    for job in few:
        assert len(many[job]) - len(few[job]) <= EVENTS_A_LEDGER * 45, job
        assert size(many[job]) - size(few[job]) <= BYTES_A_LEDGER * 45, job
        assert size(few[job]) <= BYTES_A_RUN + BYTES_A_LEDGER * 5, job
    # One materialization of each asset that it reached, one evaluation where it was copied and one
    # where it was released: eight in its life.
    by_ledger: Counter[tuple[str, str]] = Counter()
    for job in ("discover", "offload", "release"):
        for row in many[job]:
            event = row.dagster_event
            if event is not None and event.partition == "7":
                by_ledger[job, event.event_type_value] += 1
            elif event is not None and event.event_type_value == CHECKED:
                by_ledger[job, CHECKED] += event.event_specific_data.partition == "7"
    assert by_ledger == {
        ("discover", MADE): 1,
        ("discover", CHECKED): 0,
        ("offload", MADE): 4,
        ("offload", CHECKED): 1,
        ("release", MADE): 1,
        ("release", CHECKED): 1,
    }
    assert by_ledger.total() == EVENTS_A_LEDGER


def numbers_told(rows):
    """The names of the numbers that each event of an asset has, Dagster's own among them."""
    told = {}
    for row in rows:
        event = row.asset_materialization or row.asset_observation
        if event is None:
            continue
        told[event.asset_key.path[-1], event.partition] = [
            name
            for name, value in event.metadata.items()
            if isinstance(value, dg.IntMetadataValue | dg.FloatMetadataValue)
        ]
    return told


@pytest.mark.parametrize("by", ["ledger", "day"])
def test_an_event_has_few_numbers_as_each_is_a_plot(lived, by):
    for job, rows in life(lived(by=by, ledgers=2)).items():
        found = numbers_told(rows)
        assert found or job == "verify", job  # which evaluates checks alone
        assert {key: names for key, names in found.items() if len(names) > NUMBERS_AN_EVENT} == {}


def days_told(rows):
    return {row.dagster_event.partition for row in rows if row.dagster_event} - {None}


@pytest.mark.parametrize("apart_s", [60, DAY_S])
def test_where_partitions_are_days_a_run_writes_the_same_whatever_its_ledgers(lived, apart_s):
    few, many = (life(lived(by="day", ledgers=n, apart_s=apart_s)) for n in (5, 50))
    for job in few:
        assert len(many[job]) == len(few[job]) <= EVENTS_A_RUN_BY_DAY, (job, told(many[job]))
        assert len(days_told(many[job])) <= 2
    left = [row.user_message for row in many["offload"] if "of other days" in row.user_message]
    assert [line.split()[1] for line in left] == ([] if apart_s == 60 else ["48"])


@pytest.mark.parametrize("by", ["ledger", "day"])
def test_ledgers_that_fail_or_wait_are_within_the_budget(lived, by):
    """A third is not there, and of the others every copy is damaged on its way."""
    rows = []
    for count in (5, 50):
        fleet = lived(by=by, ledgers=count)
        gone = [10_000 + i for i in range(count // 2)]
        assert fleet.run("offload", ledger_ids=fleet.ids[: count // 2])
        fleet.world.objects.alter_range(lambda body: bytes(byte ^ 1 for byte in body))
        rows.append(fleet.run("offload", fails=True, ledger_ids=[*fleet.ids, *gone]))
    few, many = rows
    if by == "day":
        assert len(many) == len(few) <= EVENTS_A_RUN_BY_DAY, told(many)
    assert len(many) - len(few) <= EVENTS_A_LEDGER * 68
    assert size(many) - size(few) <= BYTES_A_LEDGER * 68
    failed = [
        row.dagster_event.event_specific_data
        for row in many
        if row.dagster_event is not None and row.dagster_event.event_type_value == CHECKED
    ]
    assert any(not one.passed for one in failed)
    assert {one.partition for one in failed} == {None} or by == "ledger"


def test_a_run_that_a_sensor_asked_for_says_nothing_twice(lived):
    fleet = lived(by="ledger", ledgers=3)
    for job, config in (("discover", {}), ("offload", {"ledger_ids": fleet.ids})):
        first = told(fleet.run(job, by_sensor=True, **config))
        again = told(fleet.run(job, by_sensor=True, **config))
        by_hand = told(fleet.run(job, **config))
        assert again[MADE] == first[MADE] - 3 * (1 if job == "discover" else 4), job
        assert by_hand[MADE] == first[MADE], job


def test_what_is_new_of_a_ledger_is_told_by_a_sensors_run_too(lived):
    fleet = lived(by="ledger", ledgers=1)
    fleet.run("offload", by_sensor=True, ledger_ids=[0])
    key = dg.AssetKey(["pulsar", "certificates"])
    [record] = fleet.instance.fetch_materializations(key, limit=9).records
    other = record.asset_materialization.with_metadata({"certificate": "of another attempt"})
    fleet.instance.report_runless_asset_event(other)
    rows = fleet.run("offload", by_sensor=True, ledger_ids=[0])
    made = [row.dagster_event.asset_key for row in rows if told([row])[MADE]]
    assert made == [key]


def test_a_suite_that_had_failed_a_ledger_says_when_it_passes(lived):
    fleet = lived(by="ledger", ledgers=2)
    sound = fleet.stack.judge

    def refuse(facts):
        return {
            i: replace(one, success=False, failed=("overlap",)) for i, one in sound(facts).items()
        }

    fleet.stack = replace(fleet.stack, judge=refuse)
    fleet.run("offload", fails=True, ledger_ids=[0])
    fleet.stack = replace(fleet.stack, judge=sound)
    rows = fleet.run("offload", ledger_ids=[0, 1])
    suite = {
        (
            row.dagster_event.event_specific_data.partition,
            row.dagster_event.event_specific_data.passed,
        )
        for row in rows
        if told([row])[CHECKED]
        and row.dagster_event.event_specific_data.check_name == "index_suite"
    }
    assert suite == {("0", True), (None, True)}


def test_ledgers_without_a_key_are_offloaded_counted_and_told_by_the_records(lived):
    fleet = lived(by="ledger", ledgers=5)
    dagster = replace(fleet.stack.settings.dagster, partitions_max=2)
    fleet.stack = replace(fleet.stack, settings=replace(fleet.stack.settings, dagster=dagster))
    rows = fleet.run("offload", ledger_ids=fleet.ids)
    assert days_told(rows) == {"0", "1"}
    [line] = [row.user_message for row in rows if "no key free" in row.user_message]
    assert "3 ledgers found no key free, from 2 on" in line
    info, _node = fleet.stack.topics.read(TOPIC)
    assert [info.ledger(i).offload.complete for i in fleet.ids] == [True] * 5
    assert len(fleet.instance.get_dynamic_partitions("ledgers_pulsar")) == 2


def test_a_run_takes_two_hundred_ledgers_at_most(lived):
    fleet = lived(by="ledger", ledgers=1)
    rows = fleet.run("offload", fails=True, ledger_ids=list(range(201)))
    assert any("201 ledgers are given by id" in str(row.dagster_event) for row in rows)
