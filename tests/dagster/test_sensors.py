"""The sensors on simulated servers and Dagster's own instance: what they ask for, and what they do
not.

A tick is evaluated as the daemon does it, its requests become runs of the instance; the runs' work
itself is done by the steps, as the ops call them. The real daemon runs in tests/support/soak.py.
"""

import json
from dataclasses import replace
from datetime import UTC, timedelta
from uuid import uuid4

import dagster as dg
import pytest

from tests.support.admin_sim import running_admin_simulator, tell_broker
from tests.support.default_cluster import CLUSTER, PARTITION_SET, SEALED_LEDGERS
from tests.support.sim_clients import Process
from tests.support.sim_dagster import SimulatedTiering
from tests.support.sim_world import World
from tests.support.topic_halves import release_topic
from tiering_assets.automation.standing import OFF, UNTIL_ON
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.definitions import defs
from tiering_assets.defs.automation.all import define_sensors
from tiering_assets.defs.automation.memory import SensorMemory
from tiering_assets.defs.automation.wake import Wake
from tiering_assets.defs.explain.automation_note import SENSORS as NAMED
from tiering_assets.defs.jobs import define_jobs
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy, TieringMode
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.pauses import pause, resume
from tiering_assets.look.brakes.scopes import ledger_scope, topic_scope
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.records import keys
from tiering_assets.records.models import Claim
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.settings import AutoSettings, BrokerSettings

TOPIC = "t/ns/persistent/orders"
MONTH_S = 30 * 24 * 3600


def no_watches(_settings):
    raise MetadataError("there is no ZooKeeper to watch")


MEMORY = SensorMemory(CLUSTER, Wake(connect=no_watches))
JOBS = define_jobs(CLUSTER)
SENSORS = define_sensors(MEMORY, JOBS, AutoSettings(enabled=True))
BY_NAME = {sensor.name: sensor for sensor in SENSORS}


class Site:
    """A world, an instance, and ticks of sensors that go on from each other's cursors."""

    def __init__(self, instance, world, site, stack, admin):
        self.instance, self.world, self.site, self.admin = instance, world, site, admin
        self.stack = stack
        self.cursors = {}

    def set(self, **auto):
        self.stack = replace(
            self.stack,
            settings=replace(self.stack.settings, auto=replace(self.stack.settings.auto, **auto)),
        )

    def tick(self, name, cursor=None):
        SimulatedTiering.now_open["stack"] = self.stack
        context = dg.build_sensor_context(
            instance=self.instance,
            cursor=cursor if cursor is not None else self.cursors.get(name),
            resources={"tiering_stack": SimulatedTiering()},
            definitions=defs,
        )
        data = BY_NAME[name].evaluate_tick(context)
        if data.cursor is not None:
            self.cursors[name] = data.cursor
        return data

    def asked(self, name, **how):
        """Ledger ids of each run asked for."""
        return [ids_of(request) for request in self.tick(name, **how).run_requests]

    def launch(self, request, status):
        """What the daemon and a run make of a request."""
        self.instance.add_run(
            dg.DagsterRun(
                job_name=request.job_name or "offload",
                run_id=str(uuid4()),
                run_config=request.run_config,
                tags={**request.tags, "dagster/run_key": request.run_key},
                status=status,
            )
        )

    def later(self, seconds):
        self.world.scheduler.now += seconds


def ids_of(request):
    [op] = request.run_config["ops"].values()
    return op["config"]["ledger_ids"]


@pytest.fixture
def site(monkeypatch, tmp_path):
    """Topic `orders` with a closed ledger 0 and an open one; policy takes every closed ledger."""
    monkeypatch.chdir(tmp_path)
    MEMORY.ticks.clear()
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    add_topic(site, TOPIC)
    stack = Process(world, "sensors", site).stack()
    with running_admin_simulator() as admin, dg.DagsterInstance.ephemeral() as instance:
        tell_broker(admin, stack.settings)
        settings = replace(
            stack.settings,
            broker=BrokerSettings(admin_url=admin.url, timeout_s=10),
            auto=AutoSettings(enabled=True),
        )
        own = OwnPolicies(default=OwnPolicy(threshold_bytes=0))
        stack = replace(stack, settings=settings, own_policies=own)
        yield Site(instance, world, site, stack, admin)


def add_topic(site, ml_name, ledgers=1):
    site.broker.create_topic(ml_name)
    for _ in range(ledgers):
        site.broker.produce(ml_name, [b"first", b"last"])
        site.broker.roll_over(ml_name)


UNFINISHED, SUCCESS, FAILURE = (
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
)


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "run_failure"])
def test_a_sensor_that_is_switched_off_asks_for_nothing_and_says_how(site, name):
    site.set(enabled=False)
    data = site.tick(name)
    assert (data.run_requests, data.skip_message) == ([], OFF)


def test_every_sensor_ticks_and_says_what_it_is_for():
    for sensor in SENSORS:
        assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
        assert len(sensor.description or "") > 40
    assert [sensor.name for sensor in SENSORS] == [*NAMED]


def test_loaded_while_automation_is_off_every_sensor_is_off_and_says_so_first():
    for on, off in zip(SENSORS, define_sensors(MEMORY, JOBS, AutoSettings()), strict=True):
        assert off.default_status is dg.DefaultSensorStatus.STOPPED
        assert off.description == f"{UNTIL_ON}\n\n{on.description}"


# ----- offload_threshold


def test_a_sealed_ledger_above_its_threshold_gets_a_run(site):
    [request] = site.tick("offload_threshold").run_requests
    assert request.job_name == "offload"
    assert request.run_config == {
        "ops": {"offload_ledgers": {"config": {"ledger_ids": [0], "when_due": True}}}
    }
    assert not [tag for tag in request.tags if "partition" in tag]
    run = defs.resolve_job_def("offload")  # Dagster accepts the config as it is
    assert dg.validate_run_config(run, request.run_config)


def test_below_the_threshold_nothing_is_asked(site):
    site.stack = replace(site.stack, own_policies=OwnPolicies(default=OwnPolicy(threshold_bytes=9)))
    data = site.tick("offload_threshold")
    assert data.run_requests == []
    assert "nothing is due: 1 topics looked at" in data.skip_message


@pytest.mark.parametrize("mode", [TieringMode.DISABLED, TieringMode.PAUSED])
def test_a_topic_taken_out_by_tiering_toml_is_left(site, mode):
    site.stack = replace(
        site.stack, own_policies=OwnPolicies(default=OwnPolicy(mode=mode, threshold_bytes=0))
    )
    assert site.asked("offload_threshold") == []


def test_a_topic_that_is_paused_by_record_is_left_until_it_is_resumed(site):
    scope = topic_scope("t/ns/orders")
    pause(site.stack, scope, TieringMode.PAUSED, reason="migration", author="ops")
    assert site.asked("offload_threshold") == []
    resume(site.stack, scope, reason="migrated", author="ops")
    assert site.asked("offload_threshold") == [[0]]


def test_a_topics_own_policy_is_asked_for(site):
    off = {"managedLedgerOffloadThresholdInBytes": 9, "managedLedgerOffloadDriver": "aws-s3"}
    site.admin.get("/persistent/t/ns/orders/offloadPolicies", off)
    site.admin.get("/persistent/t/ns/orders/offloadPolicies?applied=true", off)
    assert site.asked("offload_threshold") == []


def test_a_broker_that_is_away_fails_the_tick_and_the_next_one_recovers(site):
    known = dict(site.admin.answers)
    site.admin.answers.clear()
    site.site.cluster.metadata.put("/admin/policies/t/ns", b"{}")
    with pytest.raises(dg.Failure, match="none of 1 topics"):
        site.tick("offload_threshold")
    site.admin.answers.update(known)
    assert site.asked("offload_threshold") == [[0]]


def test_one_topic_that_cannot_be_judged_stops_no_other(site):
    add_topic(site.site, "t/bad/persistent/more")
    data = site.tick("offload_threshold")
    assert [ids_of(request) for request in data.run_requests] == [[0]]


def test_what_an_unfinished_run_has_is_left_to_it(site):
    [request] = site.tick("offload_threshold").run_requests
    site.launch(request, UNFINISHED)
    assert site.asked("offload_threshold") == []


@pytest.mark.parametrize("status", [SUCCESS, FAILURE])
def test_a_ledger_that_a_run_left_where_it_was_waits_longer_each_time(site, status):
    site.set(retry_first_s=60, retry_max_s=10**7)
    keys_used = []
    for waits in (1, 2, 4):
        [request] = site.tick("offload_threshold").run_requests
        keys_used.append(request.run_key)
        site.launch(request, status)
        ended = site.instance.get_run_records(limit=1)[0].create_timestamp
        site.stack = replace(site.stack, now=lambda at=ended, s=60 * waits - 1: later(at, s))
        assert site.asked("offload_threshold") == []
        site.stack = replace(site.stack, now=lambda at=ended, s=60 * waits + 1: later(at, s))
    assert len(set(keys_used)) == 3  # or Dagster would never launch the second


def later(moment, seconds):
    return moment.astimezone(UTC) + timedelta(seconds=seconds)


def test_with_too_many_unfinished_runs_the_sensor_waits(site):
    site.set(runs_unfinished_max=1)
    [request] = site.tick("offload_threshold").run_requests
    site.launch(request, UNFINISHED)
    assert site.tick("offload_threshold").skip_message == "1 offload runs are unfinished"


def test_a_backlog_is_asked_for_in_bounded_runs_and_rounds_go_on(site):
    for number in range(30):
        add_topic(site.site, f"t/ns/persistent/more-{number:02d}", ledgers=2)
    site.set(batch_ledgers_max=4, runs_unfinished_max=10)
    asked = []
    while runs := site.tick("offload_threshold").run_requests:
        assert len(runs) <= 10
        for request in runs:
            assert len(ids_of(request)) <= 4
            asked += ids_of(request)
            site.launch(request, UNFINISHED)
        assert len(runs) + 1 <= 12
        for record in site.instance.get_run_records(dg.RunsFilter(statuses=[UNFINISHED])):
            finish(site, record)
    closed = {
        listed.ledger_id
        for name in site.stack.topics.iter_managed_ledgers()
        for listed in site.stack.topics.read(name)[0].ledgers
        if not listed.is_open
    }
    assert len(closed) == 61
    assert sorted(asked) == sorted(closed)  # each once


def finish(site, record):
    """The run has ended well, a while ago; its ledgers are published."""
    run = record.dagster_run
    site.instance.delete_run(run.run_id)
    outcomes = offload_batch(quiet(site), ids_of(run))
    assert all(one.published for one in outcomes), outcomes


def quiet(site):
    """The stack as a run has it, with the simulated broker."""
    return replace(Process(site.world, "run", site.site).stack(), own_policies=OwnPolicies())


def test_no_ledger_waits_for_a_key(site):
    add_topic(site.site, "t/ns/persistent/more")
    few = replace(site.stack.settings.dagster, partitions_max=1)
    site.stack = replace(site.stack, settings=replace(site.stack.settings, dagster=few))
    asked = site.asked("offload_threshold")
    site.instance.add_dynamic_partitions(PARTITION_SET, [partition_key(0)])
    assert sum(map(len, asked)) == 2
    assert site.asked("offload_threshold") == asked


def test_a_proven_copy_goes_out_when_enough_waits(site):
    [outcome] = offload_batch(quiet(site), [0], publish=False)
    assert outcome.certificate is not None
    publish = replace(site.stack.settings.publish, pending_bytes=10, pending_age_s=10**6)
    site.stack = replace(site.stack, settings=replace(site.stack.settings, publish=publish))
    assert site.asked("offload_threshold") == []
    publish = replace(publish, pending_bytes=9)
    site.stack = replace(site.stack, settings=replace(site.stack.settings, publish=publish))
    [request] = site.tick("offload_threshold").run_requests
    assert request.run_config["ops"]["offload_ledgers"]["config"] == {
        "ledger_ids": [0],
        "when_due": False,
    }


def test_a_quarantined_ledger_waits_for_a_person(site):
    stack = quiet(site)
    offload_batch(stack, [0], publish=False)
    [attempt] = attempts_of(stack, 0)
    quarantine(stack, 0, attempt.record.uid, ml_name=TOPIC, reason="test", previous=attempt.sha256)
    assert site.asked("offload_threshold") == []


def test_a_publication_that_died_before_its_record_is_taken_up_again(site):
    """Its lag never begins, and no other run is asked for: it is published already."""
    published(site)
    assert site.asked("offload_threshold") == []
    MEMORY.ticks.clear()  # the daemon was started again
    for key in [key for key in site.world.objects.peek_keys() if "/publications/" in key]:
        site.world.objects.delete(key)
    [request] = site.tick("offload_threshold").run_requests
    assert request.run_config["ops"]["offload_ledgers"]["config"] == {
        "ledger_ids": [0],
        "when_due": False,
    }
    published(site)  # what the run does
    assert site.asked("offload_threshold") == []


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "[]",
        '{"version": 2, "after": "t/ns/persistent/zzz"}',
        '{"version": 1, "after": 7}',
    ],
)
def test_a_cursor_that_cannot_be_read_starts_a_new_round(site, cursor):
    assert site.asked("offload_threshold", cursor=cursor) == [[0]]


# ----- release_due


def published(site):
    [outcome] = offload_batch(quiet(site), [0])
    assert outcome.published is not None


def release(site):
    assert isinstance(release_topic(quiet(site), TOPIC, [0])[0], Released)


def test_a_published_ledger_is_asked_for_when_its_lag_has_passed(site):
    published(site)
    assert site.asked("release_due") == []
    site.later(MONTH_S)
    [request] = site.tick("release_due").run_requests
    assert (request.job_name, ids_of(request)) == ("release", [0])
    [op] = request.run_config["ops"].values()
    assert op["config"]["dry_run"] is False  # by hand it is a dry run
    assert dg.validate_run_config(defs.resolve_job_def("release"), request.run_config)
    release(site)
    assert site.asked("release_due") == []


def test_a_release_that_died_before_its_record_is_taken_up_again(site):
    published(site)
    site.later(MONTH_S)
    release(site)
    MEMORY.ticks.clear()
    gone = [key for key in site.world.objects.peek_keys() if "/releases/" in key]
    for key in gone:
        if not key.endswith(".intent.json"):
            site.world.objects.delete(key)
    assert site.asked("release_due") == [[0]]
    assert release_topic(quiet(site), TOPIC, [0])[0] == Released(9, noop=True)  # what the run does
    assert site.asked("release_due") == []


def test_a_held_ledger_is_not_asked_for(site):
    published(site)
    site.later(MONTH_S)
    hold(site.stack, ledger_scope(0), reason="audit", author="kim")
    assert site.asked("release_due") == []


def test_a_copy_without_certificate_is_never_asked_for(site):
    published(site)
    site.later(MONTH_S)
    for key in [key for key in site.world.objects.peek_keys() if "/certificates/" in key]:
        site.world.objects.delete(key)
    assert site.asked("release_due") == []


# ----- the others


def test_newly_closed_ledgers_are_told_once_and_the_backlog_is_not(site):
    def told():
        events = site.tick("ledger_rollover").asset_events
        assert {event.asset_key for event in events} <= {SEALED_LEDGERS}
        return [int(r.data["ledger"]) for e in events for r in e.metadata["ledgers"].value.records]

    assert told() == []
    site.later(10)
    site.site.broker.produce(TOPIC, [b"x"])
    site.site.broker.roll_over(TOPIC)
    closed = [one.ledger_id for one in site.stack.topics.read(TOPIC)[0].ledgers if not one.is_open]
    assert told() == [closed[-1]]
    assert told() == []
    site.later(3600)
    assert told() == []
    assert len(site.cursors["ledger_rollover"]) < 1000


@pytest.mark.parametrize(("name", "job"), [("verify_due", "scrub"), ("backlog_due", "discover")])
def test_a_periodic_run_is_asked_for_once_a_period(site, name, job):
    [request] = site.tick(name).run_requests
    assert request.job_name == job
    run = replace_run(site, job, UNFINISHED)
    assert run.run_id in site.tick(name).skip_message
    site.instance.delete_run(run.run_id)
    replace_run(site, job, SUCCESS)
    assert "s ago, the next at" in site.tick(name).skip_message
    site.set(discover_every_s=1e-6, scrub_every_s=1e-6)
    assert len(site.tick(name).run_requests) == 1


def replace_run(site, job, status):
    run = dg.DagsterRun(job_name=job, run_id=str(uuid4()), status=status)
    site.instance.add_run(run)
    return run


def test_a_dead_claim_is_told_once(site):
    now = site.stack.objects.server_time()
    ended = now - timedelta(minutes=5)
    site.stack.book.create(
        keys.claim(0), Claim(ledger_id=0, run_id="run-7", attempt=None, expires_at=ended)
    )
    [event] = site.tick("stuck").asset_events
    assert "run-7 ended without dropping it" in event.metadata["what"].value
    assert site.tick("stuck").asset_events == []


def test_released_ledgers_lose_their_partition_after_a_while(site):
    published(site)
    site.instance.add_dynamic_partitions(PARTITION_SET, [partition_key(0)])
    site.later(MONTH_S)
    assert not site.tick("retire_partitions").dynamic_partitions_requests
    release(site)
    assert not site.tick("retire_partitions").dynamic_partitions_requests
    site.later(site.stack.settings.auto.retire_after_s + 1)
    [request] = site.tick("retire_partitions").dynamic_partitions_requests
    assert request.partition_keys == [partition_key(0)]


def test_a_key_as_it_once_was_goes_with_its_ledger(site):
    published(site)
    padded = [f"{0:019d}", partition_key(0)]
    site.instance.add_dynamic_partitions(PARTITION_SET, padded)
    site.later(MONTH_S)
    release(site)
    site.later(site.stack.settings.auto.retire_after_s + 1)
    [request] = site.tick("retire_partitions").dynamic_partitions_requests
    assert sorted(request.partition_keys) == sorted(padded)


def test_where_partitions_run_out_the_released_go_at_once(site):
    published(site)
    site.instance.add_dynamic_partitions(PARTITION_SET, [partition_key(0)])
    site.later(MONTH_S)
    release(site)
    few = replace(site.stack.settings.dagster, partitions_max=1)
    site.stack = replace(site.stack, settings=replace(site.stack.settings, dagster=few))
    assert len(site.tick("retire_partitions").dynamic_partitions_requests) == 1


def test_a_partition_that_an_unfinished_run_names_stays(site):
    site.instance.add_dynamic_partitions(PARTITION_SET, [partition_key(99)])  # gone everywhere
    run = dg.DagsterRun(
        job_name="offload",
        run_id=str(uuid4()),
        run_config={"ops": {"offload_ledgers": {"config": {"ledger_ids": [99]}}}},
        status=UNFINISHED,
    )
    site.instance.add_run(run)
    assert not site.tick("retire_partitions").dynamic_partitions_requests
    site.instance.delete_run(run.run_id)
    assert len(site.tick("retire_partitions").dynamic_partitions_requests) == 1


def test_a_cursor_is_json_with_a_version(site):
    for name in ("offload_threshold", "release_due", "ledger_rollover", "stuck"):
        site.tick(name)
        assert json.loads(site.cursors[name])["version"] == 1


# ----- between a tick and its run


@pytest.mark.parametrize("again", [False, True])
def test_a_topic_that_is_deleted_between_tick_and_run_loses_nothing(site, again):
    asked = site.asked("offload_threshold")
    site.site.broker.delete_topic(TOPIC)
    if again:
        add_topic(site.site, TOPIC)
    [outcome] = offload_batch(quiet(site), asked[0])
    assert (outcome.published, outcome.certificate) == (None, None)
    assert outcome.wait is not None
    assert [key for key in site.world.objects.peek_keys() if "-ledger-" in key] == []
    fresh = site.asked("offload_threshold")  # the next tick sees what is there now
    listed = site.stack.topics.read(TOPIC)
    closed = [] if listed is None else [i.ledger_id for i in listed[0].ledgers if not i.is_open]
    assert fresh == ([closed] if again else [])
    assert asked[0] != closed


def test_a_listing_that_comes_short_delays_and_forgets_nothing(site, monkeypatch):
    """ZooKeeper behind a lagging follower: half of the topics and of BookKeeper's ledgers are
    missing.
    """
    add_topic(site.site, "t/ns/persistent/more")
    offload_batch(quiet(site), [0])
    site.later(MONTH_S)
    site.instance.add_dynamic_partitions(PARTITION_SET, [partition_key(0)])
    with monkeypatch.context() as short:
        short.setattr(type(site.stack.topics), "iter_managed_ledgers", lambda _self: iter(()))
        short.setattr(type(site.stack.ledgers), "list_ledger_ids", lambda _self: iter(()))
        assert site.asked("offload_threshold") == []
        assert site.asked("release_due") == []
        assert not site.tick("retire_partitions").dynamic_partitions_requests
        site.tick("ledger_rollover")
    assert [len(ids) for ids in site.asked("offload_threshold")] == [1]
    assert site.asked("release_due") == [[0]]


@pytest.mark.parametrize("hours", [-24, 24])
def test_a_clock_that_is_off_asks_at_the_wrong_time_and_the_gate_decides(site, hours):
    published(site)
    clock = site.stack.now
    site.stack = replace(site.stack, now=lambda: clock() + timedelta(hours=hours))
    asked = site.asked("release_due")
    lag_h = site.stack.settings.release.deletion_lag_s / 3600
    assert bool(asked) is (hours > lag_h)
    result = release_topic(quiet(site), TOPIC, [0])[0]
    assert not isinstance(result, Released)  # the lag is the gate's, by the store's clock, too
